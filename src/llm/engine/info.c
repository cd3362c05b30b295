/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and facts about an engine, for commands and metrics. */
#include "base/clock.h"
#include "llm/engine/engine_internal.h"
#include "llm/engine/replicas.h"

void fm__engine_count_time(fm_engine *e, double began, double forward)
{
    const double now = fm_now();
    if (e->was_busy) e->gap_seconds += began - e->stepped;
    e->host_seconds += now - began - forward;
    e->stepped  = now;
    e->was_busy = fm__engine_busy_own(e);
    if (e->tracing) fm__tracing_rest(e->tracing, e->was_busy);
}

fm_engine_info fm__engine_info_own(const fm_engine *e)
{
    fm_engine_info info = {.plan                = e->plan,
                           .sched               = fm__partitions_stats(e),
                           .tiers               = fm__tiers_info(e),
                           .n_thread            = e->limits.n_thread,
                           .steps_per_round     = e->n_micro,
                           .load_seconds        = e->load_seconds,
                           .forward_seconds     = e->forward_seconds,
                           .host_seconds        = e->host_seconds,
                           .gap_seconds         = e->gap_seconds,
                           .last_gen_throughput = e->last_gen_throughput,
                           .max_draft           = e->draft.most,
                           .simulated_accept_length = e->draft.simulated};
    info.plan.n_page    = 0;
    for (int i = 0; i < fm__n_partition(e); i++) {
        const fm_kv      *kv = fm__partition(e, i)->kv;
        const fm_kv_stats k  = fm_kv_get_stats(kv);
        fm_kv_add_stats(&info.kv, &k);
        info.n_free_page += fm_kv_free_pages(kv);
        info.n_idle_page += fm_kv_evictable_pages(kv);
        info.plan.n_page += fm_kv_get_options(kv)->n_page;
    }
    info.plan.max_tokens = (int64_t)info.plan.n_page * info.plan.page_size;
    return info;
}

fm_engine_info fm_engine_get_info(const fm_engine *e)
{
    fm_engine_info info = fm__engine_info_own(e);
    if (e->replicas) fm__replicas_add_info(e->replicas, &info);
    return info;
}

const fm_model_config *fm_engine_config(const fm_engine *e)
{
    return &e->config;
}

const fm_tokenizer *fm_engine_tokenizer(const fm_engine *e)
{
    return e->tokenizer;
}

fm_page_feed *fm_engine_page_feed(fm_engine *e)
{
    return e->page_feed;
}

int fm_engine_max_running(const fm_engine *e)
{
    return e->max_running;
}

int fm_engine_context(const fm_engine *e)
{
    return e->limits.max_context;
}

void fm__engine_flush_own(fm_engine *e)
{
    for (int i = 0; i < fm__n_partition(e); i++) {
        fm_kv_flush(fm__partition(e, i)->kv);
        if (fm__partition(e, i)->tier_policy) fm_tier_policy_flush(fm__partition(e, i)->tier_policy);
    }
}

void fm_engine_flush_cache(fm_engine *e)
{
    fm__engine_flush_own(e);
    if (e->replicas) fm__replicas_flush(e->replicas);
}
