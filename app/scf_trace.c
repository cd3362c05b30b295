/* SPDX-License-Identifier: Apache-2.0 */
#include "scf_trace.h"

#include <stdio.h>
#include <string.h>

#include "fathom/fathom.h"

static const char *const part_name[FM_SCF_PARTS] = {
    "one-electron integrals", "guess",          "two-electron integrals", "exchange-correlation",
    "DIIS and residual",      "diagonalisation"};

static void read_parts(double out[FM_SCF_PARTS], const fm_scf_times *t)
{
    const double now[FM_SCF_PARTS] = {t->one_electron, t->guess, t->fock, t->xc, t->mix, t->eigen};
    memcpy(out, now, sizeof now);
}

static int key_of(fm_trace *t, fm_trace_class cls, int flags, const char *name)
{
    fm_trace_key k = {.cls = (uint8_t)cls, .flags = (uint8_t)flags};
    snprintf(k.name, sizeof k.name, "%s", name);
    return fm_trace_key_of(t, &k);
}

static void start(fm_scf_trace *t)
{
    for (int i = 0; i < FM_SCF_PARTS; i++)
        t->part[i] = key_of(t->trace, FM_TRACE_WORK, 0, part_name[i]);
    t->iteration = key_of(t->trace, FM_TRACE_STEP, 0, "iteration");
    t->run       = key_of(t->trace, FM_TRACE_PHASE, FM_TRACE_HOLDS_WORK, "iteration");
    t->setup     = key_of(t->trace, FM_TRACE_PHASE, 0, "between tasks");
    t->at        = fm_trace_now();
    fm_trace_calls_begin(&t->calls, t->trace, t->world);
}

/* All ranks record, or none does: one that cannot ends the job for all. */
fm_status fm_scf_trace_begin(fm_scf_trace *t, fm_world *w, const char *file, const char *deck)
{
    const fm_trace_options o = {.path       = file,
                                .ring_bytes = fm_trace_ring_bytes(0, fm_world_comm(w)->n_rank),
                                .program    = "fathom scf " FM_VERSION,
                                .command    = deck,
                                .task       = "task",
                                .row        = "iteration"};
    if (!file || !*file) return FM_OK;
    *t                  = (fm_scf_trace){.world = w};
    const fm_status rc  = fm_trace_open_ranks(&t->trace, w, &o);
    double          bad = rc != FM_OK;
    FM_TRY(fm_all_reduce_f64(fm_world_comm(w), &bad, 1));
    if (rc != FM_OK) return rc;
    if (bad > 0) return fm_fail(FM_E_IO, "another rank cannot write its trace");
    FM_TRY(fm_trace_compare_clocks(t->trace, fm_world_comm(w), 0));
    start(t);
    return FM_OK;
}

static void add(fm_scf_trace *t, int key, uint64_t from, uint64_t to, uint64_t comm_ns,
                uint32_t rows)
{
    fm_trace_add(t->trace, key,
                 &(fm_trace_event){.begin   = from,
                                   .end     = to,
                                   .comm_ns = comm_ns,
                                   .rows    = rows,
                                   .layer   = FM_TRACE_NO_LAYER});
}

static void mark(fm_scf_trace *t)
{
    t->at      = fm_trace_now();
    t->at_comm = t->calls.ns;
}

void fm_scf_trace_task(fm_scf_trace *t)
{
    if (!t->trace) return;
    add(t, t->setup, t->at, fm_trace_now(), t->calls.ns - t->at_comm, 0);
    memset(t->before, 0, sizeof t->before);
    mark(t);
}

/* Calls between ranks lie in the Fock build for the most part, so they are taken out of that. */
void fm_scf_trace_step(fm_scf_trace *t, const fm_scf *s)
{
    enum { FOCK = 2 };
    double now[FM_SCF_PARTS];
    if (!t->trace) return;
    const uint64_t comm = t->calls.ns - t->at_comm, end = fm_trace_now();
    uint64_t       from = t->at;
    read_parts(now, &s->times);
    for (int i = 0; i < FM_SCF_PARTS; i++) {
        const uint64_t ns = now[i] > t->before[i] ? (uint64_t)(1e9 * (now[i] - t->before[i])) : 0;
        if (ns) add(t, t->part[i], from, from + ns, i == FOCK ? (comm < ns ? comm : ns) : 0, 1);
        from += ns;
    }
    add(t, t->run, t->at, end, comm, 0);
    add(t, t->iteration, t->at, end, 0, 1);
    memcpy(t->before, now, sizeof now);
    mark(t);
}

void fm_scf_trace_end(fm_scf_trace *t)
{
    if (!t->trace) return;
    fm_comm *all = fm_world_comm(t->world);
    fm_trace_calls_end(&t->calls);
    if (!all->is_broken) (void)fm_trace_compare_clocks(t->trace, all, 1);
    fm_trace_close(t->trace);
    t->trace = NULL;
}
