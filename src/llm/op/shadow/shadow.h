/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs as one: every op on the CPU and on the GPU, compared.
 *
 *     op ──> CPU ──> output ──┬──────────────> the caller's
 *       └──> GPU ──> output ──┴ compare; then the GPU gets the CPU's
 *
 * An op's inputs are the CPU's on both sides, so differences do not add up, and
 * the first one beyond tolerance is a fault of the run that names op, layer,
 * tensor, row, column, both values and the tolerance. */
#ifndef FM_LLM_OP_SHADOW_SHADOW_H
#define FM_LLM_OP_SHADOW_SHADOW_H

#include "llm/op/run.h"

/* Main memory a shadow run has besides the two runs'. */
size_t fm_run_shadow_bytes(const fm_model_config *c, const fm_run_limits *lim);

/* Takes both runs, also when it fails.  They are of the same model on one rank,
 * made with the same limits; the GPU's ops are done when they return, it records
 * no steps and keeps KV in bf16. */
fm_status fm_run_create_shadow(fm_run **out, fm_run *cpu, fm_run *gpu);

#endif
