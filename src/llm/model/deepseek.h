/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass of DeepSeek V2 and V3: they differ only in their config. */
#ifndef FM_LLM_MODEL_DEEPSEEK_H
#define FM_LLM_MODEL_DEEPSEEK_H

#include "llm/op/run.h"

/* Batch in r->batch -> r->act.logits [n_out, V]; KV of every row is stored. */
void fm_deepseek_forward(fm_run *r);

#endif
