/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/engine/tracing.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fathom/fathom.h"
#include "llm/engine/engine_internal.h"
#include "llm/open/agree.h"
#include "llm/op/cost.h"
#include "trace/trace_ranks.h"

typedef enum { KIND_NONE, KIND_DENSE, KIND_MOE, N_KIND } layer_kind;
typedef enum { ROLE_ANY, ROLE_Q_DOWN, ROLE_KV_DOWN, ROLE_OUT, ROLE_ROUTER, N_ROLE } linear_role;
typedef enum { STEP_DECODE, STEP_PREFILL, STEP_MIXED, N_STEP } step_kind;
typedef enum { TASK_QUEUED, TASK_PREFILL, TASK_DECODE, TASK_PREEMPTED, N_TASK } task_stage;

struct fm_tracing {
    fm_op_hook     hook; /* first: the run hands it back */
    fm_op_watch    watch;
    fm_trace      *trace;
    fm_trace_calls calls;
    fm_run        *run;
    int            on_host;
    uint32_t       serial;
    uint64_t       op_end, op_comm;                /* when the last op ended, and calls.ns then */
    uint64_t       at, at_comm;                    /* where the phase under way began */
    int            was_busy;                       /* when the last step ended */
    int            op[FM_N_OP][N_ROLE][N_KIND][2]; /* keys, and of ops beside others; -1: not met
                                                    * yet */
    int call[FM_N_OP];
    int phase[FM_N_PHASE], step[N_STEP], task[N_TASK], gap, idle;
};

/* --- keys -------------------------------------------------------------------- */

static int key_of(fm_trace *t, fm_trace_class cls, int flags, const char *name, const char *part,
                  const char *hint)
{
    fm_trace_key k = {.cls = (uint8_t)cls, .flags = (uint8_t)flags};
    snprintf(k.name, sizeof k.name, "%s", name);
    snprintf(k.part, sizeof k.part, "%s", part);
    snprintf(k.hint, sizeof k.hint, "%s", hint);
    return fm_trace_key_of(t, &k);
}

static void make_phase_keys(fm_tracing *t)
{
    static const struct {
        const char *name, *hint;
        int         flags;
    } phase[FM_N_PHASE] = {
        [FM_PHASE_PLAN]   = {"plan", "fewer, longer steps: a larger --chunked-prefill-size", 0},
        [FM_PHASE_SHARE]  = {"share", "", 0},
        [FM_PHASE_RUN]    = {"run", "", FM_TRACE_HOLDS_WORK},
        [FM_PHASE_CHOOSE] = {"choose", "greedy sampling or fewer logprobs", 0},
        [FM_PHASE_COMMIT] = {"commit", "", 0},
        [FM_PHASE_POST]   = {"post", "fewer stop strings, or --skip-tokenizer-init", 0},
        [FM_PHASE_AWAIT]  = {"await plan", "", FM_TRACE_AWAITS},
    };
    for (int i = 0; i < FM_N_PHASE; i++)
        t->phase[i] =
            key_of(t->trace, FM_TRACE_PHASE, phase[i].flags, phase[i].name, "", phase[i].hint);
    if (t->on_host) return;
    /* On a GPU a pass is only launched by "run"; its time shows where tokens are waited for. */
    t->phase[FM_PHASE_RUN] =
        key_of(t->trace, FM_TRACE_PHASE, 0, "launch", "", "CUDA graphs, larger batches");
    t->phase[FM_PHASE_CHOOSE] =
        key_of(t->trace, FM_TRACE_PHASE, FM_TRACE_IS_DEVICE, "wait for the device", "", "");
}

/* Followers wait for the next plan in these collectives: none of the ranks is late then. */
static void make_plan_keys(fm_tracing *t)
{
    key_of(t->trace, FM_TRACE_COLLECTIVE, FM_TRACE_AWAITS, "broadcast", "plan", "");
    key_of(t->trace, FM_TRACE_COLLECTIVE, FM_TRACE_AWAITS, "recv", "heads", "");
}

static void make_keys(fm_tracing *t)
{
    fm_trace *f = t->trace;
    make_phase_keys(t);
    make_plan_keys(t);
    memset(t->op, -1, sizeof t->op);
    memset(t->call, -1, sizeof t->call);
    t->step[STEP_DECODE]  = key_of(f, FM_TRACE_STEP, 0, "decode", "", "");
    t->step[STEP_PREFILL] = key_of(f, FM_TRACE_STEP, 0, "prefill", "", "");
    t->step[STEP_MIXED]   = key_of(f, FM_TRACE_STEP, FM_TRACE_STALLS, "decode behind a prompt", "",
                                   "a smaller --chunked-prefill-size makes these steps shorter");
    t->task[TASK_QUEUED]  = key_of(f, FM_TRACE_TASK, 0, "queued", "", "");
    t->task[TASK_PREFILL] = key_of(f, FM_TRACE_TASK, 0, "prefill", "", "");
    t->task[TASK_DECODE]  = key_of(f, FM_TRACE_TASK, 0, "decode", "", "");
    t->task[TASK_PREEMPTED] =
        key_of(f, FM_TRACE_TASK, 0, "preempted", "",
               "fewer --max-running-requests, or a larger --schedule-conservativeness");
    t->gap  = key_of(f, FM_TRACE_GAP, 0, "between steps", "", "what the caller does between steps");
    t->idle = key_of(f, FM_TRACE_IDLE, 0, "no requests", "", "");
}

/* --- ops --------------------------------------------------------------------- */

static const fm_layer_weights *layer_of(const fm_run *r, const fm_op_call *c)
{
    return c->layer == FM_NO_LAYER ? NULL
                                   : &r->weights->layer[c->layer - r->weights->shard.layer.begin];
}

static linear_role role_of(const fm_layer_weights *w, const fm_op_call *c)
{
    if (c->op != FM_OP_LINEAR || !w) return ROLE_ANY;
    return c->weights == &w->attn.q_down    ? ROLE_Q_DOWN
           : c->weights == &w->attn.kv_down ? ROLE_KV_DOWN
           : c->weights == &w->attn.out     ? ROLE_OUT
           : c->weights == &w->ffn.router   ? ROLE_ROUTER
                                            : ROLE_ANY;
}

static layer_kind kind_of(const fm_layer_weights *w)
{
    return !w ? KIND_NONE : w->ffn.is_moe ? KIND_MOE : KIND_DENSE;
}

static int make_op_key(const fm_tracing *t, const fm_run *r, const fm_op_call *c, linear_role role,
                       layer_kind kind, int beside)
{
    static const char *const role_name[] = {"", " q_down", " kv_down", " out", " router"};
    static const char *const kind_name[] = {"", "dense", "moe"};
    const fm_dtype           factor      = fm_op_factor(r, c, t->on_host);
    const int                flags       = t->on_host ? 0 : FM_TRACE_IS_DEVICE;
    fm_trace_key             k           = {.cls   = FM_TRACE_WORK,
                                            .flags = (uint8_t)(flags | (beside ? FM_TRACE_BESIDE : 0))};
    snprintf(k.name, sizeof k.name, "%s%s", fm_op_name(c->op), role_name[role]);
    snprintf(k.part, sizeof k.part, "%s%s", kind_name[kind], beside ? ", beside" : "");
    snprintf(k.factor, sizeof k.factor, "%s",
             factor == FM_F32   ? "f32"
             : factor == FM_FP8 ? "fp8"
                                : "bf16");
    return fm_trace_key_of(t->trace, &k);
}

static int op_key(fm_tracing *t, const fm_run *r, const fm_op_call *c, int beside)
{
    const fm_layer_weights *w    = layer_of(r, c);
    const layer_kind        kind = kind_of(w);
    const linear_role       role = role_of(w, c);
    int                    *key  = &t->op[c->op][role][kind][beside];
    if (*key < 0) *key = make_op_key(t, r, c, role, kind, beside);
    return *key;
}

/* With one rank, ops that exchange data have nothing to do. */
static int is_nothing(const fm_run *r, const fm_op_call *c)
{
    return r->ranks.replica->n_rank == 1 &&
           (c->op == FM_OP_GATHER_ACT || c->op == FM_OP_DISPATCH || c->op == FM_OP_COLLECT);
}

/* Ops follow each other without a break: one begins where the last one, or the phase before, ended.
 * That saves half of the readings of the clock. */
static void op_ends(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    if (is_nothing(r, c)) return;
    fm_tracing             *t    = (fm_tracing *)h;
    const uint64_t          now  = fm_trace_now();
    const fm_layer_weights *w    = layer_of(r, c);
    const fm_op_cost        cost = fm_op_cost_of(r, c, t->on_host);
    fm_trace_add(t->trace, op_key(t, r, c, 0),
                 &(fm_trace_event){.begin   = t->op_end > t->at ? t->op_end : t->at,
                                   .end     = now,
                                   .comm_ns = t->calls.ns -
                                              (t->op_comm > t->at_comm ? t->op_comm : t->at_comm),
                                   .tag   = t->serial,
                                   .rows  = (uint32_t)c->n_row,
                                   .layer = w ? (uint16_t)c->layer : FM_TRACE_NO_LAYER,
                                   .bytes = cost.bytes,
                                   .flops = cost.flops});
    t->op_end  = now;
    t->op_comm = t->calls.ns;
}

/* --- ops of a device --------------------------------------------------------- */

/* Ops that do nothing but exchange data.  Their group, so that those of one call are found. */
static int group_of(const fm_run *r, fm_op op)
{
    if (r->ranks.replica->n_rank == 1) return 0;
    if (op == FM_OP_DISPATCH) return 1;
    return op == FM_OP_GATHER_ACT || op == FM_OP_GATHER_ADD ? 2 + r->weights->shard.group.index : 0;
}

static void add_device_call(fm_tracing *t, const fm_op_call *c, const fm_op_timed *o, int group)
{
    enum { OPS_BITS = 12, DEVICE_GROUPS = 1 << 30 };
    int *key = &t->call[c->op];
    if (*key < 0)
        *key = key_of(t->trace, FM_TRACE_COLLECTIVE, FM_TRACE_IS_DEVICE, fm_op_name(c->op),
                      "device", "");
    const uint32_t call = (uint32_t)(o->tag << OPS_BITS) | (uint32_t)o->at;
    fm_trace_add(t->trace, *key,
                 &(fm_trace_event){.begin   = o->begin,
                                   .end     = o->begin + o->ns,
                                   .comm_ns = o->ns,
                                   .tag     = (uint64_t)(DEVICE_GROUPS + group) << 32 | call,
                                   .rows    = (uint32_t)(o->ns / 1000),
                                   .layer   = FM_TRACE_NO_LAYER,
                                   .more    = o->times - 1,
                                   .no_span = !o->begin});
}

static void op_was_timed(fm_op_watch *w, fm_run *r, const fm_op_call *c, const fm_op_timed *o)
{
    fm_tracing *t     = (fm_tracing *)((char *)w - offsetof(fm_tracing, watch));
    const int   group = group_of(r, c->op);
    fm_trace_add(t->trace, op_key(t, r, c, o->beside),
                 &(fm_trace_event){.begin   = o->begin,
                                   .end     = o->begin + o->ns,
                                   .comm_ns = group ? o->ns : 0,
                                   .tag     = o->tag,
                                   .rows    = (uint32_t)c->n_row,
                                   .layer = layer_of(r, c) ? (uint16_t)c->layer : FM_TRACE_NO_LAYER,
                                   .bytes = o->bytes,
                                   .flops = o->flops,
                                   .more  = o->times - 1,
                                   .no_span = !o->begin});
    if (group) add_device_call(t, c, o, group);
}

/* --- the loop ---------------------------------------------------------------- */

static void add_since_mark(fm_tracing *t, int key)
{
    const uint64_t now = fm_trace_now();
    fm_trace_add(t->trace, key,
                 &(fm_trace_event){.begin   = t->at,
                                   .end     = now,
                                   .comm_ns = t->calls.ns - t->at_comm,
                                   .tag     = t->serial,
                                   .layer   = FM_TRACE_NO_LAYER});
    t->at      = now;
    t->at_comm = t->calls.ns;
}

void fm__tracing_resume(fm_tracing *t) { add_since_mark(t, t->was_busy ? t->gap : t->idle); }

void fm__tracing_phase(fm_tracing *t, fm_phase p) { add_since_mark(t, t->phase[p]); }

void fm__tracing_rest(fm_tracing *t, int is_busy) { t->was_busy = is_busy; }

void fm__tracing_serial(fm_tracing *t, uint32_t serial) { t->watch.tag = t->serial = serial; }

static uint64_t to_ns(double seconds) { return seconds > 0 ? (uint64_t)(1e9 * seconds) : 0; }

/* Its rows, and how many requests were waiting for their next token (as the layer). */
void fm__tracing_step(fm_tracing *t, const fm_batch *const *batch, int n, uint32_t serial,
                      double began)
{
    uint32_t n_row = 0, n_prompt = 0, n_decode = 0;
    for (int g = 0; g < n; g++) {
        if (!batch[g]) continue;
        n_row += (uint32_t)batch[g]->n_row;
        for (int i = 0; i < batch[g]->n_span; i++) {
            const fm_span *s = &batch[g]->span[i];
            if (s->form == FM_FORM_PROMPT)
                n_prompt += (uint32_t)s->n_row;
            else
                n_decode++;
        }
    }
    const step_kind kind = !n_prompt ? STEP_DECODE : n_decode ? STEP_MIXED : STEP_PREFILL;
    fm_trace_add(
        t->trace, t->step[kind],
        &(fm_trace_event){.begin = to_ns(began),
                          .end   = fm_trace_now(),
                          .tag   = serial,
                          .rows  = n_row,
                          .layer = (uint16_t)(n_decode < UINT16_MAX ? n_decode : UINT16_MAX)});
}

/* --- requests ---------------------------------------------------------------- */

static void add_stage(fm_tracing *t, task_stage stage, const fm_job *j, double from, double to,
                      int rows)
{
    fm_trace_add(t->trace, t->task[stage],
                 &(fm_trace_event){.begin = to_ns(from),
                                   .end   = to_ns(to),
                                   .tag   = j->of->id + ((uint64_t)j->index << 52),
                                   .rows  = (uint32_t)rows,
                                   .layer = FM_TRACE_NO_LAYER});
}

void fm__tracing_first_token(fm_tracing *t, const fm_job *j)
{
    const fm_request *r = &j->request;
    add_stage(t, TASK_QUEUED, j, j->of->when, r->admitted, r->n_prompt);
    add_stage(t, TASK_PREFILL, j, r->admitted, j->first_token, r->n_prompt - r->n_cached);
}

/* A request that ended before its first token gets a queued span only. */
void fm__tracing_ended(fm_tracing *t, const fm_job *j)
{
    const fm_request *r   = &j->request;
    const double      now = fm_now();
    if (j->first_token > 0)
        add_stage(t, TASK_DECODE, j, j->first_token, now, fm_request_n_known(r));
    else
        add_stage(t, TASK_QUEUED, j, j->of->when, now, r->n_prompt);
    if (r->n_preempted)
        add_stage(t, TASK_PREEMPTED, j, r->preempted, r->preempted + r->preempted_s,
                  r->n_preempted);
}

/* --- life -------------------------------------------------------------------- */

static fm_status open_file(fm_engine *e, fm_tracing *t, const char *file, int64_t mib,
                           const char *model)
{
    const int              n_rank = fm_world_comm(e->world)->n_rank;
    const fm_trace_options o      = {.path       = file,
                                     .ring_bytes = fm_trace_ring_bytes(mib, n_rank),
                                     .program    = "fathom " FM_VERSION,
                                     .command    = model,
                                     .task       = "request",
                                     .row        = "token"};
    return fm_trace_open_ranks(&t->trace, e->world, &o);
}

/* Ops of a GPU are only launched where hooks see them: the device times them itself. */
static fm_status watch_device(fm_engine *e, fm_tracing *t)
{
    t->on_host = e->backend->is_host;
    t->watch   = (fm_op_watch){.timed = op_was_timed};
    return t->on_host ? FM_OK : fm_run_watch(e->run, &t->watch);
}

static void start(fm_engine *e, fm_tracing *t)
{
    t->run = e->run;
    make_keys(t);
    t->hook = (fm_op_hook){.end = op_ends};
    t->at   = fm_trace_now();
    if (t->on_host) fm_run_add_hook(e->run, &t->hook);
    fm_trace_calls_begin(&t->calls, t->trace, e->world);
    e->tracing = t;
}

/* Takes the device's last timestamps before the file is closed; a device with a fault has none. */
static void discard(fm_engine *e, fm_tracing *t)
{
    if (t && t->watch.timed && !t->on_host) (void)fm_run_watch(e->run, NULL);
    if (t) fm_trace_close(t->trace);
    free(t);
}

fm_status fm__tracing_open(fm_engine *e, const char *file, int64_t mib, const char *model)
{
    fm_comm    *all = fm_world_comm(e->world);
    fm_tracing *t   = calloc(1, sizeof *t);
    fm_status   rc  = t ? open_file(e, t, file, mib, model) : fm_fail(FM_E_OOM, "trace");
    if (rc == FM_OK) rc = watch_device(e, t);
    rc = fm__agree_all_well(e->world, rc);
    if (rc == FM_OK) rc = fm_trace_compare_clocks(t->trace, all, 0);
    if (rc == FM_OK)
        start(e, t);
    else
        discard(e, t);
    return rc;
}

void fm__tracing_close(fm_engine *e)
{
    fm_tracing *t = e->tracing;
    if (!t) return;
    e->tracing = NULL;
    fm_trace_calls_end(&t->calls);
    if (t->on_host) fm_run_remove_hook(t->run, &t->hook);
    /* A job that lost a rank has a trace without the second comparison. */
    if (!fm_world_comm(e->world)->is_broken)
        (void)fm_trace_compare_clocks(t->trace, fm_world_comm(e->world), 1);
    discard(e, t);
}
