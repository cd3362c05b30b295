/* SPDX-License-Identifier: Apache-2.0 */
/* The transport of a group with one rank: collectives are copies, nothing is sent. */
#ifndef FM_COMM_SELF_SELF_H
#define FM_COMM_SELF_SELF_H

#include "comm/comm.h"

/* A group of one on the heap, for fm_comm_close. */
fm_status fm__self_create(fm_comm **out, fm_world *world);

#endif
