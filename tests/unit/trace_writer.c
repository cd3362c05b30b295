/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_writer.h"

#include <stdio.h>
#include <string.h>

enum { MAX_RANK = 8, DECODES = 31, PROMPT_ROWS = 2048 };

typedef struct {
    fm_trace *trace;
    int       attend, experts, gather, plan, run, gap, step, stalled, queued, decode;
    uint64_t  at;
    uint64_t  from; /* when the job began */
    double    fast; /* its clock */
} writer;

static int make_key(fm_trace *t, fm_trace_class cls, int flags, const char *name, const char *part)
{
    fm_trace_key k = {.cls = (uint8_t)cls, .flags = (uint8_t)flags};
    snprintf(k.name, sizeof k.name, "%s", name);
    snprintf(k.part, sizeof k.part, "%s", part);
    snprintf(k.factor, sizeof k.factor, "%s", cls == FM_TRACE_WORK ? "bf16" : "");
    if (flags & FM_TRACE_STALLS) snprintf(k.hint, sizeof k.hint, "smaller chunks");
    return fm_trace_key_of(t, &k);
}

void written_path(char *out, size_t size, const written_job *w, int rank)
{
    if (w->n_rank > 1)
        snprintf(out, size, "%s.rank%d", w->stem, rank);
    else
        snprintf(out, size, "%s", w->stem);
}

static void begin(writer *r, const written_job *w, int rank)
{
    char                   path[300], host[8];
    const fm_trace_options o = {.path       = path,
                                .ring_bytes = w->ring_bytes ? w->ring_bytes : 1 << 20,
                                .job        = 42,
                                .rank       = rank,
                                .n_rank     = w->n_rank,
                                .host       = host,
                                .program    = "test",
                                .command    = "written",
                                .task       = "request",
                                .row        = "token"};
    written_path(path, sizeof path, w, rank);
    snprintf(host, sizeof host, "node%c", 'a' + (w->one_host ? 0 : rank / 2));
    const fm_status rc = fm_trace_open(&r->trace, &o);
    FM_BUG_UNLESS(rc == FM_OK);
    fm_trace *t = r->trace;
    r->attend   = make_key(t, FM_TRACE_WORK, 0, "attend", "moe");
    r->experts  = make_key(t, FM_TRACE_WORK, 0, "experts", "moe");
    r->gather   = make_key(t, FM_TRACE_COLLECTIVE, 0, "all_gather", "attn");
    r->plan     = make_key(t, FM_TRACE_PHASE, 0, "plan", "");
    r->run      = make_key(t, FM_TRACE_PHASE, FM_TRACE_HOLDS_WORK, "run", "");
    r->gap      = make_key(t, FM_TRACE_GAP, 0, "between steps", "");
    r->step     = make_key(t, FM_TRACE_STEP, 0, "decode", "");
    r->stalled  = make_key(t, FM_TRACE_STEP, FM_TRACE_STALLS, "decode behind a prompt", "");
    r->queued   = make_key(t, FM_TRACE_TASK, 0, "queued", "");
    r->decode   = make_key(t, FM_TRACE_TASK, 0, "decode", "");
}

static uint64_t by_its_clock(const writer *r, uint64_t t)
{
    return t + (uint64_t)(int64_t)(r->fast * (double)(t - r->from));
}

static void add(writer *r, int key, const fm_trace_event *e)
{
    fm_trace_event c = *e;
    c.begin          = by_its_clock(r, e->begin);
    c.end            = by_its_clock(r, e->end);
    fm_trace_add(r->trace, key, &c);
}

static void span(writer *r, int key, double us, fm_trace_event e)
{
    e.begin = r->at;
    e.end   = r->at += (uint64_t)(1e3 * us);
    add(r, key, &e);
}

/* 100 MB and 100 MFLOP in every call of an op. */
static void compute(writer *r, int key, double us, int step)
{
    span(r, key, us,
         (fm_trace_event){
             .tag = (uint64_t)step, .rows = DECODES, .layer = 3, .bytes = 1e8, .flops = 1e8});
}

static void step(writer *all, const written_job *w, int s)
{
    const int prompt  = w->prompt_every && s % w->prompt_every == w->prompt_every - 1;
    uint64_t  arrived = 0, began[MAX_RANK];
    for (int i = 0; i < w->n_rank; i++) {
        writer *r = &all[i];
        if (w->gap_us > 0) span(r, r->gap, w->gap_us, (fm_trace_event){0});
        if (w->plan_us > 0) span(r, r->plan, w->plan_us, (fm_trace_event){0});
        began[i] = r->at;
        compute(r, r->attend, w->attend_us * (i == w->slow_rank ? w->slow_attend : 1), s);
        compute(r, r->experts, prompt ? w->prompt_us : w->experts_us, s);
        if (r->at > arrived) arrived = r->at;
    }
    const int      held     = w->held_every && s % w->held_every == 0;
    const uint64_t all_have = arrived + (uint64_t)(1e3 * (w->move_us + (held ? w->held_us : 0)));
    for (int i = 0; i < w->n_rank; i++) {
        enum { LEAVES_LATER = 5000 }; /* ns: who was stopped sends first, then reads */
        writer        *r    = &all[i];
        const uint64_t end  = all_have + (held && i == w->slow_rank ? LEAVES_LATER : 0);
        const uint64_t busy = end - r->at;
        if (w->n_rank > 1)
            add(r, r->gather,
                &(fm_trace_event){.begin   = r->at,
                                  .end     = end,
                                  .comm_ns = busy,
                                  .rows    = (uint32_t)(busy / 1000),
                                  .tag     = (uint64_t)7 << 32 | (uint64_t)s,
                                  .bytes   = 1e6});
        r->at = end;
        add(r, r->run,
            &(fm_trace_event){.begin = began[i], .end = end, .comm_ns = w->n_rank > 1 ? busy : 0});
        add(r, prompt ? r->stalled : r->step,
            &(fm_trace_event){.begin = began[i],
                              .end   = end,
                              .tag   = (uint64_t)s,
                              .rows  = DECODES + (prompt ? PROMPT_ROWS : 0),
                              .layer = DECODES});
    }
}

/* Each waits a millisecond longer than the one before, then runs to the end. */
static void write_tasks(writer *r, const written_job *w, uint64_t from)
{
    const int n = w->n_task ? w->n_task : 10;
    for (int i = 0; i < n; i++) {
        const fm_trace_event queued = {.begin = from,
                                       .end   = from + 1000000u * (uint64_t)(i + 1),
                                       .tag   = (uint64_t)i,
                                       .rows  = 100};
        const fm_trace_event decode = {
            .begin = queued.end, .end = r->at, .tag = (uint64_t)i, .rows = 50};
        add(r, r->queued, &queued);
        add(r, r->decode, &decode);
    }
}

/* What comparing clocks at `t` of rank 0 would have found. */
static void set_clock(const writer *r, const written_job *w, int end, uint64_t t)
{
    const uint64_t at = by_its_clock(r, t) + (uint64_t)w->clock_ahead_ns;
    fm_trace_set_clock(r->trace, end, (fm_trace_clock){at, (int64_t)(t - at), 0});
}

/* The recorder reads this machine's clock: a clock that is ahead has another epoch. */
static void move_epoch(const written_job *w)
{
    char          path[300];
    fm_trace_head h;
    written_path(path, sizeof path, w, w->clock_rank);
    FILE *f = fopen(path, "r+b");
    FM_BUG_UNLESS(f && fread(&h, sizeof h, 1, f) == 1);
    h.epoch_ns += (uint64_t)w->clock_ahead_ns;
    rewind(f);
    FM_BUG_UNLESS(fwrite(&h, sizeof h, 1, f) == 1 && fclose(f) == 0);
}

void write_job(const written_job *w)
{
    writer   all[MAX_RANK] = {{0}};
    uint64_t from;
    for (int i = 0; i < w->n_rank; i++) begin(&all[i], w, i);
    from = fm_trace_now();
    for (int i = 0; i < w->n_rank; i++) all[i].at = all[i].from = from;
    all[w->clock_rank].fast = w->clock_fast;
    for (int s = 0; s < w->n_step; s++) step(all, w, s);
    write_tasks(&all[0], w, from);
    if (w->clock_rank) set_clock(&all[w->clock_rank], w, 0, from);
    if (w->clock_rank) set_clock(&all[w->clock_rank], w, 1, all[0].at);
    for (int i = 0; i < w->n_rank; i++) fm_trace_close(all[i].trace);
    if (w->clock_rank) move_epoch(w);
}
