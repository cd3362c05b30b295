/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands see of an engine beyond the public header. */
#ifndef FM_LLM_ENGINE_H
#define FM_LLM_ENGINE_H

#include "fathom/fathom.h"
#include "llm/options.h"
#include "llm/kv/kv_cache.h"
#include "llm/plan/plan.h"
#include "llm/sched/sched.h"
#include "llm/text/tokenizer.h"

typedef struct {
    fm_plan        plan;
    fm_sched_stats sched;
    fm_kv_stats    kv;
    double         load_seconds;
    double         forward_seconds; /* inside forward passes */
    double         last_gen_throughput; /* tokens per second over the last decode steps */
} fm_engine_info;

fm_engine_info         fm_engine_get_info(const fm_engine *e);
const fm_model_config *fm_engine_config(const fm_engine *e);
const fm_tokenizer    *fm_engine_tokenizer(const fm_engine *e); /* NULL: ids alone */
void                   fm_engine_flush_cache(fm_engine *e);

/* Logits of every position of one text, each computed as it would be when
 * the first n_prompt tokens are the prompt and the rest was generated:
 * logits [n - n_prompt + 1][V], position n_prompt-1 onwards.  For comparing
 * with goldens. */
fm_status fm_engine_score(fm_engine *e, const int32_t *token, int n, int n_prompt, float *logits);

#endif
