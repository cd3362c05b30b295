/* SPDX-License-Identifier: Apache-2.0 */
/* Weights into device memory: dummy values are made there, what comes from
 * files is packed here and copied. */
#ifndef FM_LLM_OP_CUDA_WEIGHTS_H
#define FM_LLM_OP_CUDA_WEIGHTS_H

#include "llm/load/weights_fill.h"

/* Weights laid out as rows in device memory.  The device is open. */
fm_status fm_cuda_weights_fill(fm_weights *w, const fm_source *source, int n_thread,
                               int show_progress);

#endif
