/* SPDX-License-Identifier: Apache-2.0 */
/* Forecasts for the cluster, for one node more, and for the fewest devices that users need. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "device/host.h"
#include "machine.h"
#include "plan.h"

enum { MOST_NODES = 64 };

fm_forecast_ask fm_plan_ask(const fm_plan_command *c, const fm_cluster *cluster)
{
    const int     here  = c->is_here && !c->tuned.is_gpu;
    const int64_t users = c->options.users;
    return (fm_forecast_ask){.options        = c->engine,
                             .model          = fm_plan_model_name(c->engine),
                             .tuned          = &c->tuned,
                             .cluster        = cluster,
                             .wish           = c->wish,
                             .whole          = c->options.all_devices,
                             .request        = c->request,
                             .n_request      = c->n_request,
                             .concurrency    = (int)(users ? users : c->online.max_concurrency),
                             .is_steady      = users > 0,
                             .is_paced       = isfinite(c->rate),
                             .slo_ttft       = c->options.slo_ttft * 1e-3,
                             .slo_tpot       = c->options.slo_tpot * 1e-3,
                             .accept_length  = c->options.accept_length,
                             .n_thread       = fm_usable_cpus(),
                             .host_total     = here ? fm_host_total() : 0,
                             .host_available = here ? fm_host_available() : 0};
}

/* The best layout that uses all of a cluster; n_rank 0: none fits. */
static fm_status best_of(fm_forecast *out, const fm_plan_command *c, const fm_cluster *cluster)
{
    fm_forecast_ask a    = fm_plan_ask(c, cluster);
    fm_forecast    *list = calloc(FM_MAX_FORECAST, sizeof *list);
    int             n    = 0;
    if (!list) return fm_fail(FM_E_OOM, "forecasts");
    a.whole            = 1;
    const fm_status rc = fm_forecast_all(list, &n, &a);
    *out               = (fm_forecast){0};
    if (rc == FM_OK && n && list[0].rc == FM_OK) *out = list[0];
    free(list);
    return rc == FM_E_ARG ? FM_OK : rc; /* no layout of that size suits the model */
}

static fm_status look_at_one_more(fm_plan_command *c)
{
    fm_cluster larger = c->cluster;
    if (c->list[0].keeps_up) return FM_OK; /* nothing is left to answer */
    if (c->is_here || c->wish.tp || c->wish.pp || c->wish.dp) return FM_OK;
    larger.n_node++;
    return best_of(&c->more, c, &larger);
}

static int is_enough(const fm_forecast *f) { return f->n_rank && f->rc == FM_OK && f->meets; }

/* The fewest devices of one host; n_rank 0: all of them are too few. */
static fm_status look_on_a_host(fm_plan_command *c)
{
    fm_cluster some = c->cluster;
    some.n_node     = 1;
    for (some.per_node = 1; some.per_node <= c->cluster.per_node; some.per_node++) {
        FM_TRY(best_of(&c->enough, c, &some));
        if (is_enough(&c->enough)) return FM_OK;
    }
    c->enough.n_rank = 0;
    return FM_OK;
}

/* The fewest hosts: twice as many until they are enough, then one by one from the last that were
 * too few.  Another host can always hold another replica, so fewer than those need no look. */
static fm_status look_on_hosts(fm_plan_command *c)
{
    fm_cluster some = c->cluster;
    for (some.n_node = 2; some.n_node <= MOST_NODES; some.n_node *= 2) {
        FM_TRY(best_of(&c->enough, c, &some));
        if (is_enough(&c->enough)) break;
    }
    if (!is_enough(&c->enough)) {
        c->enough.n_rank = 0;
        return FM_OK;
    }
    const int most = some.n_node;
    for (some.n_node = most / 2 + 1; some.n_node < most; some.n_node++) {
        fm_forecast fewer;
        FM_TRY(best_of(&fewer, c, &some));
        if (!is_enough(&fewer)) continue;
        c->enough = fewer;
        return FM_OK;
    }
    return FM_OK;
}

static fm_status look_for_enough(fm_plan_command *c)
{
    if (!c->options.users) return FM_OK;
    FM_TRY(look_on_a_host(c));
    return c->enough.n_rank ? FM_OK : look_on_hosts(c);
}

fm_status fm_plan_search(fm_plan_command *c)
{
    const double          began = fm_now();
    const fm_forecast_ask a     = fm_plan_ask(c, &c->cluster);
    c->list                     = calloc(FM_MAX_FORECAST, sizeof *c->list);
    if (!c->list) return fm_fail(FM_E_OOM, "forecasts");
    FM_TRY(fm_forecast_all(c->list, &c->n, &a));
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
    FM_TRY(look_for_enough(c));
    c->seconds = fm_now() - began;
    return FM_OK;
}

int fm_plan_is_online(const fm_plan_command *c)
{
    const fm_plan_options *o = &c->options;
    return isfinite(c->rate) || c->online.max_concurrency || o->users || o->slo_ttft > 0 ||
           o->slo_tpot > 0;
}

const fm_forecast *fm_plan_choice(const fm_plan_command *c)
{
    if (c->options.users) return c->enough.n_rank ? &c->enough : NULL;
    return c->list[0].meets ? &c->list[0] : NULL;
}
