/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/route/worker.h"

#include <stdlib.h>
#include <string.h>

static const double fast_interval = 0.2, suspect_seconds = 0.5;

fm_status fm_worker_create(fm_worker **out, fm_loop *l, const char *url, const char *api_key)
{
    fm_worker *w = calloc(1, sizeof *w);
    if (!w) return fm_fail(FM_E_OOM, "worker");
    w->url     = strdup(url);
    w->api_key = api_key && *api_key ? strdup(api_key) : NULL;
    const fm_status rc =
        w->url ? fm_upstream_create(&w->upstream, l, url) : fm_fail(FM_E_OOM, "worker");
    if (rc != FM_OK) {
        fm_worker_destroy(w);
        return rc;
    }
    *out = w;
    return FM_OK;
}

void fm_worker_destroy(fm_worker *w)
{
    if (!w) return;
    fm_query_fini(&w->probe);
    fm_query_fini(&w->feed.query);
    fm_query_fini(&w->progress.query);
    fm_query_fini(&w->info);
    fm_settings_fini(&w->settings);
    fm_upstream_destroy(w->upstream);
    fm_cache_index_fini(&w->feed.pages);
    free(w->url);
    free(w->api_key);
    free(w);
}

const char *fm_worker_health_name(fm_worker_health h)
{
    static const char *const name[] = {"new", "up", "down"};
    return name[h];
}

int fm_worker_probe_is_due(const fm_worker *w, double interval, double now)
{
    const int    is_sure = w->health == FM_WORKER_UP && !w->n_bad;
    const double after   = is_sure || interval < fast_interval ? interval : fast_interval;
    return !w->probe.fetch && now - w->probed >= after;
}

int fm_worker_take_probe(fm_worker *w, int good, int n_up, int n_down)
{
    const fm_worker_health before = w->health;
    w->n_good                     = good ? w->n_good + 1 : 0;
    w->n_bad                      = good ? 0 : w->n_bad + 1;
    w->counts.n_probe_failure += !good;
    if (w->n_good >= n_up) w->health = FM_WORKER_UP;
    if (w->n_bad >= n_down) w->health = FM_WORKER_DOWN;
    return w->health != before;
}

int fm_worker_is_suspect(const fm_worker *w, double now)
{
    return w->n_bad || (w->probe.fetch && now - w->probed > suspect_seconds);
}
