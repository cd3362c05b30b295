/* SPDX-License-Identifier: Apache-2.0 */
/* What the tiers below the pool have done, for reports. */
#include "llm/engine/engine_internal.h"

static void add_stats(fm_tier_policy_stats *sum, const fm_tier_policy_stats *s)
{
    sum->n_load += s->n_load;
    sum->n_declined += s->n_declined;
    sum->disk_tokens += s->disk_tokens;
    sum->host_tokens += s->host_tokens;
    sum->n_host_page += s->n_host_page;
    sum->n_host_altered += s->n_host_altered;
    sum->n_unsaved += s->n_unsaved;
    sum->load_seconds += s->load_seconds;
    sum->n_loading += s->n_loading;
}

fm_tiers_info fm__tiers_info(const fm_engine *e)
{
    fm_tiers_info info = {0};
    if (!e->tiers.memory) return info;
    info.has_tiers  = 1;
    info.page_size  = e->limits.page_size;
    info.page_bytes = (double)e->tiers.image_bytes;
    if (e->tiers.store) info.store = fm_store_get_stats(e->tiers.store);
    info.has_files = e->tiers.store != NULL;
    for (int i = 0; i < fm__n_partition(e); i++) {
        const fm_tier_policy_stats s = fm_tier_policy_get_stats(fm__partition(e, i)->tier_policy);
        add_stats(&info.policy, &s);
    }
    const int64_t n    = info.policy.disk_tokens + info.policy.host_tokens;
    info.saved_seconds = e->tiers.costs.compute * (double)n - info.policy.load_seconds;
    return info;
}

static void add_store(fm_store_stats *sum, const fm_store_stats *s)
{
    sum->n_read += s->n_read;
    sum->n_written += s->n_written;
    sum->n_gone += s->n_gone;
    sum->n_short += s->n_short;
    sum->n_foreign += s->n_foreign;
    sum->n_altered += s->n_altered;
    sum->n_unreadable += s->n_unreadable;
    sum->n_failed += s->n_failed;
    sum->n_pruned += s->n_pruned;
    sum->n_queued += s->n_queued;
    sum->read_bytes += s->read_bytes;
    sum->written_bytes += s->written_bytes;
    if (s->n_listed > sum->n_listed) sum->n_listed = s->n_listed; /* of one directory */
    sum->is_on &= s->is_on;
}

void fm__add_tiers_info(fm_tiers_info *sum, const fm_tiers_info *i)
{
    add_stats(&sum->policy, &i->policy);
    add_store(&sum->store, &i->store);
    sum->saved_seconds += i->saved_seconds;
}
