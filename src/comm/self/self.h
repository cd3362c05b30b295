/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_COMM_SELF_SELF_H
#define FM_COMM_SELF_SELF_H

#include "comm/comm.h"

/* A group of one on the heap, for fm_comm_close. */
fm_status fm__self_create(fm_comm **out, fm_world *world);

#endif
