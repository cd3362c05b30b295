/* SPDX-License-Identifier: Apache-2.0 */
/* Recording that begins and ends while an engine is open, on all ranks.  Rank 0 tells the leaders
 * of other replicas, a leader tells its followers by a plan that is no step; what to do follows to
 * all. */
#include <stdio.h>
#include <string.h>

#include "llm/engine/engine_internal.h"
#include "llm/engine/replicas.h"

typedef struct {
    int64_t is_on, mib;
    char    file[1024];
} order;

static fm_status obey(fm_engine *e, const order *o)
{
    if (o->is_on) return fm__tracing_open(e, o->file, o->mib, e->config.architecture);
    fm__tracing_close(e);
    return FM_OK;
}

/* Plans of steps in flight lie where the next plan is written: they end first. */
static fm_status tell_followers(fm_engine *e)
{
    const fm_step_plan p = {.head = {.kind = FM_PLAN_TRACE}};
    fm_read_plan       own;
    if (!e->courier) return FM_OK;
    FM_TRY(fm__engine_drain(e));
    return fm_courier_send(e->courier, &p, &own);
}

static fm_status order_all(fm_engine *e, order *o)
{
    if (e->replicas) FM_TRY(fm__replicas_trace(e->replicas));
    FM_TRY(tell_followers(e));
    FM_TRY(fm_broadcast(fm_world_comm(e->world), o, sizeof *o, 0));
    return obey(e, o);
}

fm_status fm_engine_trace_begin(fm_engine *e, const char *file, int64_t mib)
{
    order o = {.is_on = 1, .mib = mib};
    if (e->tracing) return fm_fail(FM_E_ARG, "a trace is being recorded already");
    if (strlen(file) >= sizeof o.file) return fm_fail(FM_E_ARG, "the trace's name is too long");
    snprintf(o.file, sizeof o.file, "%s", file);
    return order_all(e, &o);
}

fm_status fm_engine_trace_end(fm_engine *e)
{
    order o = {.is_on = 0};
    if (!e->tracing) return fm_fail(FM_E_ARG, "no trace is being recorded");
    return order_all(e, &o);
}

/* A file that cannot be written on one rank is recorded on none, and the job goes on. */
fm_status fm__engine_obey_trace(fm_engine *e)
{
    order o = {0};
    FM_TRY(fm_broadcast(fm_world_comm(e->world), &o, sizeof o, 0));
    const fm_status rc = obey(e, &o);
    return rc == FM_E_COMM ? rc : FM_OK;
}

fm_status fm__engine_lead_trace(fm_engine *e)
{
    FM_TRY(tell_followers(e));
    return fm__engine_obey_trace(e);
}
