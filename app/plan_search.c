/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts for the cluster, for one node more, and for ever larger ones. */
#include <stdlib.h>

#include "base/clock.h"
#include "device/host.h"
#include "machine.h"
#include "plan.h"

enum { MOST_NODES = 64 };

fm_forecast_ask fm_plan_ask(const fm_plan_command *c, const fm_cluster *cluster)
{
    const int here = c->is_here && !c->tuned.is_gpu;
    return (fm_forecast_ask){.options        = c->engine,
                             .model          = fm_plan_model_name(c->engine),
                             .tuned          = &c->tuned,
                             .cluster        = cluster,
                             .wish           = c->wish,
                             .whole          = c->options.all_devices,
                             .request        = c->request,
                             .n_request      = c->rows.n,
                             .concurrency    = (int)c->online.max_concurrency,
                             .slo_ttft       = c->options.slo_ttft * 1e-3,
                             .slo_tpot       = c->options.slo_tpot * 1e-3,
                             .accept_length  = c->options.accept_length,
                             .n_thread       = fm_usable_cpus(),
                             .host_total     = here ? fm_host_total() : 0,
                             .host_available = here ? fm_host_available() : 0};
}

/* The best layout that uses all of a cluster; n_rank 0: none fits. */
static fm_status best_of(fm_forecast *out, const fm_plan_command *c, const fm_cluster *cluster,
                         int concurrency)
{
    fm_forecast_ask a    = fm_plan_ask(c, cluster);
    fm_forecast    *list = calloc(FM_MAX_FORECAST, sizeof *list);
    int             n    = 0;
    if (!list) return fm_fail(FM_E_OOM, "forecasts");
    a.whole = 1;
    if (concurrency) a.concurrency = concurrency;
    const fm_status rc = fm_forecast_all(list, &n, &a);
    *out               = (fm_forecast){0};
    if (rc == FM_OK && n && list[0].rc == FM_OK) *out = list[0];
    free(list);
    return rc == FM_E_ARG ? FM_OK : rc; /* no layout of that size suits the model */
}

static fm_status look_at_one_more(fm_plan_command *c)
{
    fm_cluster larger = c->cluster;
    if (c->is_here || c->wish.tp || c->wish.pp || c->wish.dp) return FM_OK;
    larger.n_node++;
    return best_of(&c->more, c, &larger, 0);
}

static int is_enough(const fm_forecast *f) { return f->n_rank && f->rc == FM_OK && f->meets; }

static fm_status look_for_enough(fm_plan_command *c)
{
    fm_cluster one = c->cluster;
    if (!c->options.users) return FM_OK;
    if (!(c->options.slo_ttft > 0) && !(c->options.slo_tpot > 0))
        return fm_fail(FM_E_ARG,
                       "--users %lld needs --slo-ttft or --slo-tpot: without a bound one "
                       "device serves everybody, slowly",
                       (long long)c->options.users);
    const int per = c->cluster.per_node, users = (int)c->options.users;
    one.n_node = 1;
    for (one.per_node = 1; one.per_node < per && !is_enough(&c->enough); one.per_node *= 2)
        FM_TRY(best_of(&c->enough, c, &one, users));
    one.per_node = per;
    for (one.n_node = 1; one.n_node <= MOST_NODES && !is_enough(&c->enough); one.n_node *= 2)
        FM_TRY(best_of(&c->enough, c, &one, users));
    if (!is_enough(&c->enough)) c->enough.n_rank = 0;
    return FM_OK;
}

fm_status fm_plan_search(fm_plan_command *c)
{
    const double          began = fm_now();
    const fm_forecast_ask a     = fm_plan_ask(c, &c->cluster);
    c->list                     = calloc(FM_MAX_FORECAST, sizeof *c->list);
    if (!c->list) return fm_fail(FM_E_OOM, "forecasts");
    FM_TRY(fm_forecast_all(c->list, &c->n, &a));
    c->seconds = fm_now() - began;
    if (c->list[0].rc != FM_OK) {
        const fm_forecast *f    = &c->list[0];
        fm_str             name = {0};
        fm_forecast_name(&name, &f->size);
        const fm_status rc =
            fm_fail(f->rc, "none of %d layouts fits; %s: %s", c->n, name.text, f->why);
        fm_str_fini(&name);
        return rc;
    }
    FM_TRY(look_at_one_more(c));
    return look_for_enough(c);
}
