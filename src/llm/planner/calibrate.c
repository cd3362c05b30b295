/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/op/run.h"
#include "llm/open/foresee.h"
#include "llm/planner/step_model.h"

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

/* A step of known shape: n_text rows that continue texts of `context` tokens, or n_row rows of one
 * prompt behind `context` tokens (n_text prompts from their beginning with 0). */
typedef struct {
    int    is_prompt, n_text, n_row, context;
    double seconds;
    double work[FM_N_WORK]; /* seconds of ops by kind, where they are seen */
    double roof[FM_N_WORK]; /* what the limits of the machine allow */
} sample;

typedef struct {
    fm_tuned             *tuned;
    fm_engine            *engine;
    const fm_calibration *how;
    fm_stage_work         work; /* of the model */
    double                began;

    fm_op_hook hook;
    fm_run    *run; /* NULL: ops are not seen */
    double     op_ended, spent[FM_N_WORK];

    sample  *list;
    int      n, cap;
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

static fm_status keep(calibration *k, const sample *s)
{
    if (k->n == k->cap) {
        const int cap = k->cap ? 2 * k->cap : 256;
        sample *new   = realloc(k->list, (size_t)cap * sizeof *new);
        if (!new) return fm_fail(FM_E_OOM, "samples");
        k->list = new;
        k->cap  = cap;
    }
    k->list[k->n++] = *s;
    return FM_OK;
}

/* What the engine did since `was`. A sample counts only if it was one step, of rows of one kind,
 * with every text of the shot; on a GPU also if it read whole prompts and nothing else. */
static int is_telling(const calibration *k, sample *out, const shot *s, const fm_sched_stats *was,
                      const fm_sched_stats *is)
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
        sample               one = {0};
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
    k->n = 0;
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

/* --- from samples to tables ---------------------------------------------------- */

/* The batch of a sample, as the step model wants it. */
typedef struct {
    fm_batch batch;
    fm_span *span;
} drawn;

static fm_status draw(drawn *d, const sample *s)
{
    const int n = s->is_prompt && s->context ? 1 : s->n_text, each = s->n_row / n;
    d->span = calloc((size_t)n, sizeof *d->span);
    if (!d->span) return fm_fail(FM_E_OOM, "spans");
    for (int i = 0; i < n; i++)
        d->span[i] = (fm_span){.row0  = i * each,
                               .n_row = each,
                               .pos0  = s->context,
                               .form  = s->is_prompt ? FM_FORM_PROMPT : FM_FORM_GENERATED};
    d->batch = (fm_batch){.n_row = s->n_row, .n_span = n, .n_out = n, .span = d->span};
    return FM_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int is_alike(const sample *a, const sample *b)
{
    return a->is_prompt == b->is_prompt && a->n_text == b->n_text && a->n_row == b->n_row &&
           abs(a->context - b->context) < 32;
}

/* One number of all samples that are like list[i], from there on: its median, and how far the
 * middle half of them is spread around it. */
static double median_of(const calibration *k, int i, int work, double *spread)
{
    enum { MOST = 256 };
    double x[MOST];
    int    n = 0;
    for (int j = i; j < k->n && n < MOST; j++)
        if (is_alike(&k->list[i], &k->list[j]))
            x[n++] = work < 0 ? k->list[j].seconds : k->list[j].work[work];
    qsort(x, (size_t)n, sizeof *x, ascending);
    *spread = n > 4 && x[n / 2] > 0 ? (x[3 * n / 4] - x[n / 4]) / x[n / 2] / 2 : 0;
    return x[(n - 1) / 2]; /* of two the shorter: what disturbs makes longer */
}

static int is_merged(const calibration *k, int n, int i)
{
    for (int j = 0; j < n; j++)
        if (is_alike(&k->list[j], &k->list[i])) return 1;
    return 0;
}

/* Samples of one shape become one: the median of each number. */
static void merge(calibration *k)
{
    int    n = 0, n_spread = 0;
    double spread, sum     = 0;
    for (int i = 0; i < k->n; i++) {
        if (is_merged(k, n, i)) continue;
        sample one  = k->list[i];
        one.seconds = median_of(k, i, -1, &spread);
        sum += spread;
        n_spread += spread > 0;
        for (int w = 0; w < FM_N_WORK; w++) one.work[w] = median_of(k, i, w, &spread);
        k->list[n++] = one;
    }
    k->n             = n;
    k->tuned->spread = n_spread ? sum / n_spread : k->tuned->spread;
}

/* The place in its table of one kind of work in this step; 0: the step has no such work. */
static int place_in_table(const calibration *k, fm_work_kind kind, const sample *s, double *row,
                          double *context)
{
    const double met = fm_experts_met(&k->work, s->n_row);
    *row             = s->n_row;
    *context         = 1;
    switch (kind) {
    case FM_WORK_EXPERTS: *row = met > 0 ? s->n_row * k->work.top_k / met : 0; return met > 0;
    case FM_WORK_HEAD: *row = s->is_prompt && s->context ? 1 : s->n_text; return !s->is_prompt;
    case FM_WORK_GENERATED: *context = s->context; return !s->is_prompt;
    case FM_WORK_PROMPT: *context = s->context + s->n_row; return s->is_prompt && s->n_text == 1;
    default: return 1;
    }
}

static fm_step_model bare_model(const calibration *k, const fm_tuned *t, const fm_cluster *c)
{
    return (fm_step_model){.tuned   = t,
                           .cluster = c,
                           .size    = {.tp = 1, .pp = 1, .dp = 1, .ep = 1},
                           .n_group = 1,
                           .stage   = &k->work,
                           .slow    = 1,
                           .op_s    = t->op_s};
}

/* Ops of a pass together took so much of the step. */
static double seen(const sample *s)
{
    double sum = 0;
    for (int w = 0; w < FM_N_WORK; w++) sum += s->work[w];
    return sum;
}

/* A table has few places: 256 and 8192 keys are told apart, 512 and 520 are not. */
static double nearby(double context)
{
    return context <= 1 ? 1 : exp2(round(2 * log2(context)) / 2);
}

/* Seconds of each kind of work if everything reached the limits. */
static fm_status find_roofs(calibration *k)
{
    fm_tuned         bare = *k->tuned;
    const fm_cluster none = {.n_node = 1, .per_node = 1};
    memset(bare.share, 0, sizeof bare.share);
    bare.op_s             = 0;
    const fm_step_model m = bare_model(k, &bare, &none);
    for (int i = 0; i < k->n; i++) {
        drawn d = {0};
        FM_TRY(draw(&d, &k->list[i]));
        fm_step_work(&m, &d.batch, k->list[i].roof);
        free(d.span);
    }
    return FM_OK;
}

/* Samples of several contexts and of prompts and generated rows may have one place: it gets their
 * mean. */
typedef struct {
    double row, context, sum;
    int    n;
} mean_at;

static void add_to_place(mean_at *list, int *n, double row, double context, double value)
{
    int i = 0;
    while (i < *n && (list[i].row != row || list[i].context != context)) i++;
    if (i == *n) list[(*n)++] = (mean_at){.row = row, .context = context};
    list[i].sum += log(value);
    list[i].n++;
}

static void put_places(fm_table *to, const mean_at *list, int n)
{
    for (int i = 0; i < n; i++)
        fm_table_put(to, list[i].row, list[i].context, exp(list[i].sum / list[i].n));
    fm_table_complete(to);
}

static void fill_share(const calibration *k, fm_work_kind w, mean_at *list)
{
    int n = 0;
    for (int i = 0; i < k->n; i++) {
        const sample *s = &k->list[i];
        double        row, context;
        if (place_in_table(k, w, s, &row, &context) && s->work[w] > 0 && s->roof[w] > 0)
            add_to_place(list, &n, row, nearby(context), s->roof[w] / s->work[w]);
    }
    k->tuned->share[w] = (fm_table){0};
    put_places(&k->tuned->share[w], list, n);
}

static fm_status fill_shares(calibration *k)
{
    mean_at *list = calloc((size_t)k->n + 1, sizeof *list);
    if (!list) return fm_fail(FM_E_OOM, "shares");
    const fm_status rc = find_roofs(k);
    for (int w = 0; rc == FM_OK && w < FM_N_WORK; w++) fill_share(k, (fm_work_kind)w, list);
    free(list);
    return rc;
}

/* Least squares of what steps take beside their ops: a part for each, and one for each text. */
static void fit_host(calibration *k)
{
    double n = 0, x = 0, xx = 0, y = 0, xy = 0;
    for (int i = 0; i < k->n; i++) {
        const sample *s = &k->list[i];
        if (s->is_prompt) continue;
        const double rest = s->seconds - seen(s), weight = 1 / (1e-4 + fabs(rest));
        n += weight;
        x += weight * s->n_text;
        xx += weight * s->n_text * s->n_text;
        y += weight * rest;
        xy += weight * s->n_text * rest;
    }
    const double d = n * xx - x * x;
    if (n <= 0) return;
    k->tuned->out_s  = d > 0 ? fmax((n * xy - x * y) / d, 0) : 0;
    k->tuned->step_s = fmax((y - k->tuned->out_s * x) / n, 0);
}

/* Attention is in the shares where ops are seen; elsewhere a usual context is what steps are
 * corrected at. */
static int corrects(const calibration *k, const sample *s)
{
    enum { NOT_LONG = 600 };
    return k->run || (s->is_prompt ? s->context == 0 : s->context < NOT_LONG);
}

static fm_status fill_corrections(const calibration *k, const fm_step_model *bare, fm_table *to,
                                  int of_prompts, mean_at *list)
{
    fm_step_model m = *bare;
    int           n = 0;
    for (int i = 0; i < k->n; i++) {
        const sample *s = &k->list[i];
        fm_sim_times  t = {0};
        drawn         d = {0};
        if (s->is_prompt != of_prompts || !corrects(k, s)) continue;
        FM_TRY(draw(&d, s));
        const fm_batch *const one = &d.batch;
        fm_step_seconds(&m, &one, &t);
        free(d.span);
        add_to_place(list, &n, s->n_row, 1, s->seconds / t.stage[0]);
    }
    *to = (fm_table){0};
    put_places(to, list, n);
    return FM_OK;
}

static fm_status fill_steps(calibration *k)
{
    fm_tuned_steps  *to   = fm_tuned_add_steps(k->tuned, k->how->model);
    const fm_cluster none = {.n_node = 1, .per_node = 1};
    fm_step_model    m    = bare_model(k, k->tuned, &none);
    mean_at         *list = calloc((size_t)k->n + 1, sizeof *list);
    if (!list) return fm_fail(FM_E_OOM, "steps");
    fm_status rc = FM_OK;
    if (!to) rc = fm_fail(FM_E_FULL, "the table holds the steps of %d models", FM_TUNED_MODELS);
    m.hides_host = k->tuned->is_gpu;
    if (rc == FM_OK) rc = fill_corrections(k, &m, &to->generated, 0, list);
    if (rc == FM_OK) rc = fill_corrections(k, &m, &to->prompt, 1, list);
    free(list);
    return rc;
}

static fm_status count_work(calibration *k)
{
    enum { PLENTY = 1 << 10 };
    fm_foreseen    seen  = {0};
    const fm_place place = {
        .n_rank   = 1,
        .on_gpu   = k->tuned->is_gpu,
        .n_thread = 1,
        .memory   = {.total = (size_t)PLENTY << 30, .available = (size_t)PLENTY << 30}};
    FM_TRY(fm_engine_foresee(&seen, k->how->options, &place));
    fm_stage_work_of(&k->work, &seen.weights,
                     (double)fm_plane_token_bytes(&seen.limits.planes.plane[0]), k->tuned->is_gpu);
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
    return rc != FM_OK || k->n ? rc
                               : fm_fail(FM_E_ARG, "the engine is too small for any measurement");
}

static fm_status conclude(calibration *k)
{
    merge(k);
    if (k->run) FM_TRY(fill_shares(k));
    if (k->run) fit_host(k);
    return fill_steps(k);
}

fm_status fm_calibrate(fm_tuned *t, fm_engine *e, const fm_calibration *how)
{
    calibration k = {
        .tuned = t, .engine = e, .how = how, .began = fm_now(), .run = fm_engine_run(e)};
    fm_status rc = count_work(&k);
    if (rc == FM_OK) rc = measure(&k);
    if (rc == FM_OK) rc = conclude(&k);
    free(k.list);
    return rc;
}
