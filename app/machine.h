/* SPDX-License-Identifier: Apache-2.0 */
/* What trials and cells of this machine may use. */
#ifndef FM_APP_MACHINE_H
#define FM_APP_MACHINE_H

#include "base/status.h"
#include "word_list.h"

int fm_usable_cpus(void); /* of this process */

/* GPUs that a command with these words would compute on; 0 where it, or FM_DEVICE, says cpu. */
fm_status fm_usable_gpus(int *out, const fm_word_list *words);

#endif
