/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that do what the leader of their replica plans. */
#include "base/alloc_guard.h"
#include "base/clock.h"
#include "llm/engine/engine_internal.h"
#include "llm/engine/replicas.h"

static int n_decode(const fm_batch *b)
{
    int n = 0;
    for (int i = 0; i < b->n_span; i++)
        n += b->span[i].form == FM_FORM_GENERATED && b->span[i].n_row == 1;
    return n;
}

static void say_step(fm_engine *e, const fm_batch *b, uint32_t serial)
{
    const int decodes = n_decode(b);
    fm_world_doing(e->world, "step %u: %d prompts, %d decodes, %d rows", serial,
                   b->n_span - decodes, decodes, b->n_row);
}

void fm__engine_doing(fm_engine *e, const fm_batch *b, uint32_t serial)
{
    if (fm_world_comm(e->world)->n_rank == 1) return;
    if (b)
        say_step(e, b, serial);
    else
        fm_world_doing(e->world, "step %u: rows of other groups", serial);
}

static fm_status follow_step(fm_engine *e, int *quit)
{
    fm_read_plan p;
    FM_TRY(fm_courier_receive(e->courier, &p));
    *quit = p.head.kind == FM_PLAN_QUIT;
    if (*quit) return FM_OK;
    if (p.head.kind == FM_PLAN_TRACE) return fm__engine_obey_trace(e);
    if (p.head.kind == FM_PLAN_MOVES) return fm__tiers_follow(e, &p);
    say_step(e, &p.batch, p.head.serial);
    const double began = fm_now();
    if (e->tracing) fm__tracing_serial(e->tracing, p.head.serial);
    fm__trace_phase(e, FM_PHASE_AWAIT);
    fm_alloc_guard_begin();
    const fm_status rc = p.head.kind == FM_PLAN_DRAFT
                             ? fm__chain_run(e, &p.batch, p.head.n_link, NULL)
                             : fm__engine_forward(e, &p.batch);
    fm_alloc_guard_end();
    fm__trace_phase(e, FM_PHASE_RUN);
    if (e->tracing)
        fm__tracing_step(e->tracing, &(const fm_batch *){&p.batch}, 1, p.head.serial, began);
    fm_world_doing(e->world, "after step %u, waiting for the next plan", p.head.serial);
    return rc;
}

static fm_status follow_steps(fm_engine *e)
{
    fm_threads_pin(e->threads);
    fm_world_doing(e->world, "waiting for the first plan");
    for (int quit = 0; !quit;) FM_TRY(follow_step(e, &quit));
    return FM_OK;
}

int fm_engine_is_leader(const fm_engine *e) { return e && fm_world_comm(e->world)->rank == 0; }

fm_status fm_engine_follow(fm_engine *e)
{
    if (!e) return fm_fail(FM_E_ARG, "fm_engine_follow: engine is NULL");
    if (fm_engine_is_leader(e))
        return fm_fail(FM_E_ARG, "this process leads: it submits and steps, the others follow");
    const fm_status rc = e->layout.is_leader ? fm__replicas_serve(e) : follow_steps(e);
    if (rc != FM_OK) fm_world_abort(e->world, "%s", fm_why());
    return FM_OK;
}
