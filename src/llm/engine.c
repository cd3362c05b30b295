/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's step: this is the whole loop; everything else is a room it
 * visits. */
#include <omp.h>

#include "base/alloc_guard.h"
#include "base/clock.h"
#include "llm/engine_internal.h"
#include "llm/model/deepseek.h"

/* One row of logits: a token, or how likely the prompt's next one was. */
static void read_logits(fm_engine *e, fm_sampler *s, int i)
{
    const fm_model_config *c      = &e->config;
    const fm_request      *q      = e->row[i];
    const int32_t          pos    = fm_sched_out_pos(e->sched, i);
    float                 *logits = e->run->act.logits.data + (size_t)i * (size_t)c->vocab;

    if (fm_request_scores(q, pos)) {
        fm_score(s, logits, q->token[pos + 1], q->sampling.top_logprobs, &e->sampled[i]);
        return;
    }
    if (q->allowed) fm_sample_only(logits, c->vocab, q->allowed);
    fm_sample(s, &q->sampling, logits, q->token + q->n_prompt, fm_request_n_output(q), c->eos,
              c->n_eos, &e->sampled[i]);
}

static void sample(fm_engine *e, const fm_batch *b)
{
    for (int i = 0; i < b->n_out; i++) e->row[i] = fm_sched_out(e->sched, i);
#pragma omp parallel for schedule(dynamic) num_threads(e->limits.n_thread)
    for (int i = 0; i < b->n_out; i++) {
        read_logits(e, e->sampler[omp_get_thread_num()], i);
        e->token[i] = e->sampled[i].id;
    }
}

static fm_status forward(fm_engine *e, const fm_batch *b)
{
    fm_run_start(e->run, b);
    fm_deepseek_forward(e->run);
    return fm_run_finish(e->run); /* the only wait, the only error check */
}

fm_status fm_engine_step(fm_engine *e)
{
    const double began = fm_now();
    fm_threads_pin(e->threads);
    fm_alloc_guard_begin();
    fm_sched_set_time(e->sched, began);
    const fm_batch *b  = fm_sched_plan(e->sched); /* prefill chunks + decodes, pages reserved */
    const int       n  = b ? b->n_out : 0;
    const int64_t   n_before = fm_sched_get_stats(e->sched).n_output;
    const double    planned = fm_now();
    fm_status       rc      = b ? forward(e, b) : FM_OK;
    if (b && rc == FM_OK) {
        sample(e, b);
        e->forward_seconds += fm_now() - planned;
        fm_sched_commit(e->sched, e->token); /* append, publish prefixes, retire */
    } else if (b) {
        fm_sched_give_up(e->sched);
    }
    fm_alloc_guard_end();
    FM_TRY(rc);

    const double took = fm_now() - began;
    const double n_new = (double)(fm_sched_get_stats(e->sched).n_output - n_before);
    if (n_new > 0) e->last_gen_throughput = n_new / took;
    fm__engine_post(e, n); /* text and events for whoever polls */
    return FM_OK;
}

int fm_engine_busy(const fm_engine *e)
{
    const fm_sched_stats s = fm_sched_get_stats(e->sched);
    return s.n_running + s.n_waiting > 0;
}

fm_engine_info fm_engine_get_info(const fm_engine *e)
{
    return (fm_engine_info){.plan                = e->plan,
                            .sched               = fm_sched_get_stats(e->sched),
                            .kv                  = fm_kv_get_stats(e->kv),
                            .n_free_page         = fm_kv_free_pages(e->kv),
                            .n_idle_page         = fm_kv_evictable_pages(e->kv),
                            .n_thread            = e->limits.n_thread,
                            .load_seconds        = e->load_seconds,
                            .forward_seconds     = e->forward_seconds,
                            .last_gen_throughput = e->last_gen_throughput};
}

const fm_model_config *fm_engine_config(const fm_engine *e)
{
    return &e->config;
}

const fm_tokenizer *fm_engine_tokenizer(const fm_engine *e)
{
    return e->tokenizer;
}

int fm_engine_context(const fm_engine *e)
{
    return e->limits.max_context;
}

void fm_engine_flush_cache(fm_engine *e)
{
    fm_kv_flush(e->kv);
}
