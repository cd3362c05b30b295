/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/calibrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/op/run.h"
#include "llm/open/foresee.h"
#include "llm/planner/samples.h"

/* --- shots -------------------------------------------------------------------- */

/* Texts of one length that are read and then continued together. */
typedef struct {
    int n_text, n_prompt, n_output;
    int n_same; /* leading tokens that all shots with some have in common: cached from the second on
                 */
} shot;

/* Short texts for batches of every size, prompts alone and behind cached ones, then long texts for
 * attention, which have most of their prompt in common: reading it would take longer than what is
 * measured.  The last are for a GPU: large batches, and prompts one behind the other, since a step
 * that follows another takes longer than one by itself (12 % on an H200). */
static const shot shots[] = {
    {1, 32, 12, 0},     {2, 32, 10, 0},     {4, 32, 10, 0},     {8, 32, 10, 0},
    {16, 32, 8, 0},     {32, 32, 8, 0},     {64, 32, 6, 0},     {1, 8, 1, 0},
    {1, 16, 1, 0},      {1, 64, 1, 0},      {1, 128, 1, 0},     {1, 256, 1, 0},
    {1, 512, 1, 0},     {1, 528, 1, 512},   {1, 544, 1, 512},   {1, 576, 1, 512},
    {1, 640, 1, 512},   {1, 1024, 10, 0},   {128, 32, 6, 0},    {256, 32, 6, 0},
    {1, 2048, 1, 0},    {1, 1568, 1, 1536}, {1, 1552, 1, 1536}, {1, 1600, 1, 1536},
    {1, 1664, 1, 1536}, {8, 1552, 8, 1536}, {8, 528, 8, 512},   {64, 272, 6, 256},
    {1, 6000, 8, 0},    {512, 32, 12, 0},   {1024, 32, 12, 0},  {256, 500, 16, 0},
    {8, 512, 1, 0},     {24, 2048, 1, 0},   {48, 1024, 1, 0},
};
/* A machine that is shared with others changes its speed by the minute: shots up to the last that
 * is cheap are repeated, and the median of all rounds counts. */
enum {
    N_SHOT        = sizeof shots / sizeof shots[0],
    FIRST_FOR_GPU = N_SHOT - 6,
    N_CHEAP       = 17,
    N_ROUND       = 4
};

typedef struct {
    fm__samples           all;
    fm_engine            *engine;
    const fm_calibration *how;
    double                began;

    fm_op_hook hook;
    fm_run    *run; /* NULL: ops are not seen */
    double     op_ended, spent[FM_N_WORK];

    int      cap;      /* of the samples */
    uint64_t n_prompt; /* drawn so far: none is like another */
} calibration;

/* --- ops ---------------------------------------------------------------------- */

static fm_work_kind kind_of(const fm_run *r, const fm_op_call *c)
{
    switch (c->op) {
    case FM_OP_LINEAR:
    case FM_OP_LINEAR_ACT: return FM_WORK_LINEAR;
    case FM_OP_MLP: return FM_WORK_MLP;
    case FM_OP_EXPERTS: return FM_WORK_EXPERTS;
    case FM_OP_HEAD: return FM_WORK_HEAD;
    case FM_OP_ATTEND:
        return r->batch->n_span && r->batch->span[0].form == FM_FORM_PROMPT ? FM_WORK_PROMPT
                                                                            : FM_WORK_GENERATED;
    default: return FM_WORK_ROWS;
    }
}

/* Ops follow each other without a break. */
static void op_begins(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    calibration *k = (calibration *)((char *)h - offsetof(calibration, hook));
    (void)r;
    if (c->op == FM_OP_EMBED) k->op_ended = fm_now();
}

static void op_ends(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    calibration *k   = (calibration *)((char *)h - offsetof(calibration, hook));
    const double now = fm_now();
    k->spent[kind_of(r, c)] += now - k->op_ended;
    k->op_ended = now;
}

/* --- running a shot ----------------------------------------------------------- */

/* Steps of a batch that are not like those behind them: a GPU's are recorded in the second. */
static int n_cold(const calibration *k) { return k->run ? 0 : 3; }

/* Prompts of a large batch are read in several steps, in which the first texts are continued. */
static int n_output(const calibration *k, const shot *s)
{
    enum { LONGER = 24 };
    return k->run || s->n_output == 1 ? s->n_output : s->n_output + LONGER;
}

static fm_status submit(calibration *k, const shot *s)
{
    const int vocab = fm_engine_config(k->engine)->vocab;
    int32_t  *token = malloc((size_t)s->n_prompt * sizeof *token);
    fm_status rc    = token ? FM_OK : fm_fail(FM_E_OOM, "prompts");
    for (int i = 0; rc == FM_OK && i < s->n_text; i++) {
        k->n_prompt++;
        for (int p = 0; p < s->n_prompt; p++)
            token[p] = (int32_t)(fm_rng_u32(p < s->n_same ? 0 : k->n_prompt, (uint64_t)p) %
                                 (uint32_t)vocab);
        fm_prompt q = {.token = token, .n_token = s->n_prompt, .sampling = fm_sampling_default()};
        q.sampling.temperature    = 0;
        q.sampling.ignore_eos     = 1;
        q.sampling.max_new_tokens = n_output(k, s);
        rc                        = fm_engine_submit(k->engine, &q, NULL);
    }
    free(token);
    return rc;
}

static fm_status keep(calibration *k, const fm__sample *s)
{
    fm__samples *all = &k->all;
    if (all->n == k->cap) {
        const int cap   = k->cap ? 2 * k->cap : 256;
        fm__sample *new = realloc(all->list, (size_t)cap * sizeof *new);
        if (!new) return fm_fail(FM_E_OOM, "samples");
        all->list = new;
        k->cap    = cap;
    }
    all->list[all->n++] = *s;
    return FM_OK;
}

/* What the engine did since `was`. A sample counts only if it was one step, of rows of one kind,
 * with every text of the shot; on a GPU also if it read whole prompts and nothing else. */
static int is_telling(const calibration *k, fm__sample *out, const shot *s,
                      const fm_sched_stats *was, const fm_sched_stats *is)
{
    const int64_t read = is->n_prefill_row - was->n_prefill_row, all = is->n_row - was->n_row;
    out->is_prompt = read > 0;
    out->n_text    = s->n_text;
    out->n_row     = (int)all;
    if (!k->run && s->n_text > 1 && read > 0 && read % s->n_prompt == 0)
        out->n_text = (int)(read / s->n_prompt);
    if (is->n_step - was->n_step != 1) return 0;
    if (!read) return all == s->n_text;
    return read == all && (s->n_text == 1 || read == (int64_t)out->n_text * s->n_prompt);
}

static fm_status timed_step(calibration *k, double *seconds)
{
    fm_event     ev;
    const double began = fm_now();
    memset(k->spent, 0, sizeof k->spent);
    FM_TRY(fm_engine_step(k->engine));
    while (fm_engine_poll(k->engine, &ev)) continue;
    *seconds = fm_now() - began;
    return FM_OK;
}

static fm_status run_shot(calibration *k, const shot *s)
{
    int n_generated = 0, n_whole = 0, n_read = 0;
    if (!s->n_same) fm_engine_flush_cache(k->engine);
    FM_TRY(submit(k, s));
    while (fm_engine_busy(k->engine)) {
        fm__sample           one = {0};
        const fm_sched_stats was = fm_engine_get_info(k->engine).sched;
        FM_TRY(timed_step(k, &one.seconds));
        const fm_sched_stats is = fm_engine_get_info(k->engine).sched;
        const int            ok = is_telling(k, &one, s, &was, &is);
        if (s->n_same && !n_read) n_read = s->n_prompt - one.n_row; /* that were cached */
        one.context = one.is_prompt ? (s->n_text == 1 ? n_read : 0) : s->n_prompt + n_generated;
        n_read += (int)(is.n_prefill_row - was.n_prefill_row);
        n_generated += is.n_decode_row > was.n_decode_row;
        memcpy(one.work, k->spent, sizeof one.work);
        n_whole += !one.is_prompt && ok;
        if (ok && (one.is_prompt || (n_generated > 1 && n_whole > n_cold(k))))
            FM_TRY(keep(k, &one)); /* the first is cold */
    }
    return FM_OK;
}

static int suits(const calibration *k, const shot *s, int index)
{
    const fm_engine_info info = fm_engine_get_info(k->engine);
    if (!k->run && s->n_output == 1 && s->n_prompt < 64) return 0;
    return s->n_prompt + n_output(k, s) < fm_engine_context(k->engine) &&
           s->n_text <= fm_engine_max_running(k->engine) && (!k->run || index < FIRST_FOR_GPU) &&
           (int64_t)s->n_text * (s->n_prompt + n_output(k, s)) < info.plan.max_tokens;
}

static fm_status run_shots(calibration *k)
{
    const shot warm = {4, 64, 8, 0};
    char       line[96];
    FM_TRY(run_shot(k, &warm));
    k->all.n = 0;
    for (int i = 0; i < N_SHOT + (N_ROUND - 1) * N_CHEAP; i++) {
        const int at = i < N_SHOT ? i : (i - N_SHOT) % N_CHEAP;
        if (!suits(k, &shots[at], at)) continue;
        if (k->how->seconds > 0 && fm_now() - k->began > k->how->seconds) return FM_OK;
        snprintf(line, sizeof line, "%d texts of %d tokens", shots[at].n_text, shots[at].n_prompt);
        if (k->how->tell) k->how->tell(line);
        FM_TRY(run_shot(k, &shots[at]));
    }
    return FM_OK;
}

/* --- all of it ------------------------------------------------------------------ */

static fm_status count_work(calibration *k)
{
    enum { PLENTY = 1 << 10 };
    fm_foreseen    seen  = {0};
    const fm_place place = {
        .n_rank   = 1,
        .on_gpu   = k->all.tuned->is_gpu,
        .n_thread = 1,
        .memory   = {.total = (size_t)PLENTY << 30, .available = (size_t)PLENTY << 30}};
    FM_TRY(fm_engine_foresee(&seen, k->how->options, &place));
    fm_stage_work_of(&k->all.work, &seen.weights,
                     (double)fm_plane_token_bytes(&seen.limits.planes.plane[0]),
                     k->all.tuned->is_gpu, seen.limits.draft_head);
    fm_foreseen_fini(&seen);
    return FM_OK;
}

static fm_status measure(calibration *k)
{
    fm_status rc;
    k->hook = (fm_op_hook){.begin = op_begins, .end = op_ends};
    if (k->run) fm_run_add_hook(k->run, &k->hook);
    rc = run_shots(k);
    if (k->run) fm_run_remove_hook(k->run, &k->hook);
    return rc != FM_OK || k->all.n
               ? rc
               : fm_fail(FM_E_ARG, "the engine is too small for any measurement");
}

fm_status fm_calibrate(fm_tuned *t, fm_engine *e, const fm_calibration *how)
{
    calibration k = {.all = {.tuned = t, .model = how->model, .sees_ops = fm_engine_run(e) != NULL},
                     .engine = e,
                     .how    = how,
                     .began  = fm_now(),
                     .run    = fm_engine_run(e)};
    fm_status   rc = count_work(&k);
    if (rc == FM_OK) rc = measure(&k);
    if (rc == FM_OK) rc = fm__samples_fit(&k.all);
    free(k.all.list);
    return rc;
}
