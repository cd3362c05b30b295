/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs and GPUs that trials of `fathom tune` and cells of `fathom ablate` may use. */
#ifndef FM_APP_MACHINE_H
#define FM_APP_MACHINE_H

#include "base/status.h"
#include "word_list.h"

int fm_usable_cpus(void); /* of this process */

/* GPUs that a command with these words would compute on; 0 where it, or FM_DEVICE, says cpu. */
fm_status fm_usable_gpus(int *out, const fm_word_list *words);

#endif
