/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/cuda/stamps_internal.h"

#include <stdlib.h>
#include <string.h>

#include "llm/kernel/cuda/stamp/stamp.h"
#include "llm/op/cost.h"
#include "llm/op/cuda/cuda_internal.h"

/* --- stamping ---------------------------------------------------------------- */

/* The number of a stamp behind what is in the current stream; -1: there are too many. */
static int stamp(fm_run *r)
{
    fm_cuda_run  *g   = fm__gpu(r);
    fm_cuda_tape *ops = &g->stamps.at->ops;
    if (ops->n_stamp == FM_CUDA_STAMPS || r->fault != FM_OK) return -1;
    r->fault = fm_cuda_stamp(g->stamps.there + ops->n_stamp, g->stream);
    return ops->n_stamp++;
}

static void add_op(fm_run *r, const fm_op_call *c, int begin, int end, int beside)
{
    fm_cuda_tape *ops = &fm__gpu(r)->stamps.at->ops;
    if (begin < 0 || end < 0 || ops->n == FM_CUDA_STAMPS) return;
    const fm_op_cost cost = fm_op_cost_of(r, c, 0);
    ops->op[ops->n++]     = (fm_cuda_timed){.call   = *c,
                                            .bytes  = cost.bytes,
                                            .flops  = cost.flops,
                                            .begin  = begin,
                                            .end    = end,
                                            .beside = beside};
}

static void op_begins(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    fm_cuda_stamps *s = (fm_cuda_stamps *)h;
    (void)c;
    s->side_begin = s->side_end = -1;
    if (s->at && !s->at->ops.n_stamp) s->at->ops.last = stamp(r);
}

/* With one rank these launch nothing. */
static int is_nothing(const fm_run *r, const fm_op_call *c)
{
    return r->ranks.replica->n_rank == 1 &&
           (c->op == FM_OP_GATHER_ACT || c->op == FM_OP_DISPATCH || c->op == FM_OP_COLLECT);
}

static void op_ends(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    fm_cuda_stamps *s = (fm_cuda_stamps *)h;
    if (!s->at || is_nothing(r, c)) return;
    if (s->side_begin >= 0) {
        add_op(r, c, s->side_begin, s->side_end, 1);
        return;
    }
    const int end = stamp(r);
    add_op(r, c, s->at->ops.last, end, 0);
    s->at->ops.last = end;
}

void fm__cuda_stamps_side(fm_run *r, int is_end)
{
    fm_cuda_stamps *s = &fm__gpu(r)->stamps;
    if (s->at) *(is_end ? &s->side_end : &s->side_begin) = stamp(r);
}

/* --- what was stamped -------------------------------------------------------- */

static void tell(fm_run *r, const fm_cuda_timed *o, fm_op_timed t)
{
    fm_cuda_stamps *s = &fm__gpu(r)->stamps;
    t.ns              = o->ns;
    t.bytes           = o->bytes;
    t.flops           = o->flops;
    t.beside          = o->beside;
    s->watch->timed(s->watch, r, &o->call, &t);
}

static void read_slot(fm_run *r, fm_cuda_stamp_slot *p)
{
    const fm_cuda_stamps *s = &fm__gpu(r)->stamps;
    for (int i = 0; i < p->ops.n; i++) {
        fm_cuda_timed *o    = &p->ops.op[i];
        const uint64_t from = p->time[o->begin], to = p->time[o->end];
        o->ns = to > from + s->own_ns ? to - from - s->own_ns : 0;
        tell(r, o,
             (fm_op_timed){.begin = fm_device_clock_to_host(&s->clock, from),
                           .times = p->times,
                           .at    = i,
                           .tag   = p->tag});
    }
    if (!p->of || p->of->tape.n > p->ops.n) return;
    memcpy(p->of->tape.op, p->ops.op, (size_t)p->of->tape.n * sizeof *p->ops.op);
    p->of->tape.is_timed = 1;
}

/* Steps since a size was last stamped are taken to be like that one. */
static void tell_rest(fm_run *r)
{
    fm_cuda_run *g = fm__gpu(r);
    for (int k = 0; k < g->n_recorded; k++) {
        fm_cuda_recorded *e = &g->recorded[k];
        for (int i = 0; e->tape.is_timed && e->n_unseen && i < e->tape.n; i++)
            tell(r, &e->tape.op[i], (fm_op_timed){.times = e->n_unseen, .at = i});
        e->n_unseen = 0;
    }
}

/* The stamps of the last pass, and of what was chosen from it, go to the host. */
static fm_status send(fm_cuda_run *g)
{
    fm_cuda_stamp_slot *p = g->stamps.at;
    g->stamps.at          = NULL;
    if (!p) return FM_OK;
    FM_TRY(fm_cuda_download(p->time, g->stamps.there, (size_t)p->ops.n_stamp * sizeof *p->time,
                            g->stream));
    return fm_cuda_mark_set(p->done, g->stream);
}

static fm_status read_known(fm_run *r)
{
    fm_cuda_stamps *s = &fm__gpu(r)->stamps;
    for (int known = 1; s->n_read != s->n_taken;) {
        fm_cuda_stamp_slot *p = &s->slot[s->n_read % FM_CUDA_STAMP_SLOTS];
        FM_TRY(fm_cuda_mark_is_reached(p->done, &known));
        if (!known) break;
        FM_TRY(fm_device_clock_keep(&s->clock));
        read_slot(r, p);
        s->n_read++;
    }
    return FM_OK;
}

/* --- a pass ------------------------------------------------------------------ */

/* Steps are stamped more often at first: the 1st, 2nd, 4th, 7th, 11th ... */
static int is_due(fm_cuda_stamps *s, int is_step)
{
    if (!is_step) return 1;
    if (s->n_step++ < s->next) return 0;
    if (s->apart < FM_CUDA_STAMP_EVERY) s->apart++;
    s->next = s->n_step - 1 + s->apart;
    return 1;
}

void fm__cuda_stamps_pass(fm_run *r, int is_step)
{
    fm_cuda_run    *g = fm__gpu(r);
    fm_cuda_stamps *s = &g->stamps;
    if (!s->watch || !fm__is_well(r, send(g)) || !fm__is_well(r, read_known(r))) return;
    const int is_free = s->n_taken - s->n_read < FM_CUDA_STAMP_SLOTS;
    if (!is_due(s, is_step) || !is_free) {
        s->n_unseen += (uint32_t)is_step;
        return;
    }
    s->at        = &s->slot[s->n_taken++ % FM_CUDA_STAMP_SLOTS];
    s->at->ops.n = s->at->ops.n_stamp = 0;
    s->at->of                         = NULL;
    s->at->tag                        = s->watch->tag;
    s->at->times                      = is_step ? 1 + s->n_unseen : 1;
    if (is_step) s->n_unseen = 0;
}

/* The ops of a replayed pass are those of its tape, at the cost of this batch. */
static void take_tape(fm_run *r, const fm_cuda_tape *tape, fm_cuda_tape *ops)
{
    memcpy(ops->op, tape->op, (size_t)tape->n * sizeof *tape->op);
    ops->n       = tape->n;
    ops->n_stamp = tape->n_stamp;
    ops->last    = tape->last;
    for (int i = 0; i < ops->n; i++) {
        const fm_op_cost cost = fm_op_cost_of(r, &ops->op[i].call, 0);
        ops->op[i].bytes      = cost.bytes;
        ops->op[i].flops      = cost.flops;
    }
}

/* Counted by its size, not with those that have none. */
void fm__cuda_stamps_recorded(fm_run *r, fm_cuda_recorded *e, int is_replayed)
{
    fm_cuda_stamps *s = &fm__gpu(r)->stamps;
    if (!s->watch) return;
    e->n_unseen++;
    if (!s->at) {
        s->n_unseen -= s->n_unseen > 0;
        return;
    }
    s->n_unseen  = s->at->times - 1;
    s->at->of    = e;
    s->at->times = e->n_unseen;
    e->n_unseen  = 0;
    if (is_replayed) take_tape(r, &e->tape, &s->at->ops);
}

/* A size's tape is kept when it is first stamped. */
void fm__cuda_stamps_end(fm_run *r)
{
    fm_cuda_stamps   *s = &fm__gpu(r)->stamps;
    fm_cuda_recorded *e = s->at ? s->at->of : NULL;
    if (!e || e->tape.n || r->fault != FM_OK || s->n_tape + s->at->ops.n > FM_CUDA_TAPES) return;
    e->tape    = s->at->ops;
    e->tape.op = s->tapes + s->n_tape;
    s->n_tape += e->tape.n;
    memcpy(e->tape.op, s->at->ops.op, (size_t)e->tape.n * sizeof *e->tape.op);
}

/* --- life -------------------------------------------------------------------- */

/* Between two stamps that follow each other as they do in a recording. */
static fm_status measure_own(fm_cuda_run *g)
{
    enum { N = 64 };
    fm_cuda_stamps *s    = &g->stamps;
    uint64_t       *time = s->slot[0].time;
    fm_graph        many = NULL;
    fm_status       rc   = FM_OK;
    FM_TRY(fm_cuda_record_begin(g->stream));
    for (int i = 0; i < N && rc == FM_OK; i++) rc = fm_cuda_stamp(s->there + i, g->stream);
    const fm_status ended = fm_cuda_record_end(g->stream, &many);
    if (rc == FM_OK) rc = ended;
    for (int i = 0; i < 2 && rc == FM_OK; i++) rc = fm_cuda_graph_start(many, g->stream);
    if (rc == FM_OK) rc = fm_cuda_download(time, s->there, N * sizeof *time, g->stream);
    if (rc == FM_OK) rc = fm_cuda_stream_wait(g->stream);
    if (rc == FM_OK) s->own_ns = (time[N - 1] - time[0]) / (N - 1);
    fm_cuda_graph_destroy(many);
    return rc;
}

static fm_status open_slots(fm_cuda_stamps *s)
{
    for (int i = 0; i < FM_CUDA_STAMP_SLOTS; i++) {
        fm_cuda_stamp_slot *p = &s->slot[i];
        FM_TRY(fm_cuda_mark_create(&p->done));
        FM_TRY(fm_cuda_alloc_pinned((void **)&p->time, FM_CUDA_STAMPS * sizeof *p->time,
                                    "timestamps"));
        if (!(p->ops.op = calloc(FM_CUDA_STAMPS, sizeof *p->ops.op)))
            return fm_fail(FM_E_OOM, "timestamps");
    }
    return FM_OK;
}

/* Recorded graphs hold the address of the timestamps: what is opened here stays allocated for the
 * next trace. */
static fm_status open_stamps(fm_cuda_run *g)
{
    fm_cuda_stamps *s = &g->stamps;
    if (s->is_open) return FM_OK;
    fm__cuda_stamps_destroy(s);
    FM_TRY(open_slots(s));
    if (!(s->tapes = calloc(FM_CUDA_TAPES, sizeof *s->tapes)))
        return fm_fail(FM_E_OOM, "timestamps");
    FM_TRY(fm_cuda_alloc((void **)&s->there, FM_CUDA_STAMPS * sizeof *s->there, "timestamps"));
    FM_TRY(fm_device_clock_open(&s->clock));
    FM_TRY(measure_own(g));
    s->is_open = 1;
    return FM_OK;
}

void fm__cuda_stamps_destroy(fm_cuda_stamps *s)
{
    for (int i = 0; i < FM_CUDA_STAMP_SLOTS; i++) {
        fm_cuda_mark_destroy(s->slot[i].done);
        fm_cuda_free_pinned(s->slot[i].time);
        free(s->slot[i].ops.op);
    }
    free(s->tapes);
    fm_cuda_free(s->there);
    fm_device_clock_close(&s->clock);
    *s = (fm_cuda_stamps){0};
}

static fm_status begin(fm_run *r, fm_op_watch *w)
{
    fm_cuda_run    *g = fm__gpu(r);
    fm_cuda_stamps *s = &g->stamps;
    FM_TRY(open_stamps(g));
    FM_TRY(fm_device_clock_compare(&s->clock));
    s->watch  = w;
    s->n_step = s->next = s->apart = 0;
    s->n_unseen                    = 0;
    for (int i = 0; i < g->n_recorded; i++)
        g->recorded[i].tape.is_timed = 0, g->recorded[i].n_unseen = 0;
    s->hook = (fm_op_hook){.begin = op_begins, .end = op_ends};
    fm_run_add_hook(r, &s->hook);
    return FM_OK;
}

/* With a device that hangs or a lost rank, the timestamps taken before are kept. */
static fm_status end(fm_run *r)
{
    fm_cuda_run    *g = fm__gpu(r);
    fm_cuda_stamps *s = &g->stamps;
    if (!s->watch) return FM_OK;
    fm_run_remove_hook(r, &s->hook);
    fm_status rc = send(g);
    if (rc == FM_OK) rc = fm__cuda_wait(r);
    if (rc == FM_OK) rc = fm_device_clock_compare(&s->clock);
    if (rc == FM_OK) rc = read_known(r);
    if (rc == FM_OK) tell_rest(r);
    s->n_read = s->n_taken;
    s->watch  = NULL;
    return rc;
}

fm_status fm__cuda_watch(fm_run *r, fm_op_watch *w)
{
    FM_TRY(end(r));
    return w ? begin(r, w) : FM_OK;
}
