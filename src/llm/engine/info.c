/* SPDX-License-Identifier: Apache-2.0 */
/* What an engine says of itself. */
#include "llm/engine/engine_internal.h"
#include "llm/engine/replicas.h"

fm_engine_info fm__engine_info_own(const fm_engine *e)
{
    fm_engine_info info = {.plan                = e->plan,
                           .sched               = fm__partitions_stats(e),
                           .n_thread            = e->limits.n_thread,
                           .steps_per_round     = e->n_micro,
                           .load_seconds        = e->load_seconds,
                           .forward_seconds     = e->forward_seconds,
                           .last_gen_throughput = e->last_gen_throughput};
    info.plan.n_page    = 0;
    for (int i = 0; i < fm__n_partition(e); i++) {
        const fm_kv      *kv = fm__partition(e, i)->kv;
        const fm_kv_stats k  = fm_kv_get_stats(kv);
        info.kv.hit_tokens += k.hit_tokens;
        info.kv.asked_tokens += k.asked_tokens;
        info.kv.evicted_pages += k.evicted_pages;
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
    for (int i = 0; i < fm__n_partition(e); i++) fm_kv_flush(fm__partition(e, i)->kv);
}

void fm_engine_flush_cache(fm_engine *e)
{
    fm__engine_flush_own(e);
    if (e->replicas) fm__replicas_flush(e->replicas);
}
