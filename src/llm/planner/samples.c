/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascending.h"
#include "llm/planner/step_model.h"

/* --- the batch of a sample ----------------------------------------------------- */

/* The batch of a sample, as the step model wants it. */
typedef struct {
    fm_batch batch;
    fm_span *span;
} drawn;

static fm_status draw(drawn *d, const fm__sample *s)
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

static int is_alike(const fm__sample *a, const fm__sample *b)
{
    return a->is_prompt == b->is_prompt && a->n_text == b->n_text && a->n_row == b->n_row &&
           abs(a->context - b->context) < 32;
}

/* One number of all samples that are like list[i], from there on: its median, and how far the
 * middle half of them is spread around it. */
static double median_of(const fm__samples *k, int i, int work, double *spread)
{
    enum { MOST = 256 };
    double x[MOST];
    int    n = 0;
    for (int j = i; j < k->n && n < MOST; j++)
        if (is_alike(&k->list[i], &k->list[j]))
            x[n++] = work < 0 ? k->list[j].seconds : k->list[j].work[work];
    fm_sort_ascending(x, (size_t)n);
    *spread = n > 4 && x[n / 2] > 0 ? (x[3 * n / 4] - x[n / 4]) / x[n / 2] / 2 : 0;
    return x[(n - 1) / 2]; /* of two the shorter: what disturbs makes longer */
}

static int is_merged(const fm__samples *k, int n, int i)
{
    for (int j = 0; j < n; j++)
        if (is_alike(&k->list[j], &k->list[i])) return 1;
    return 0;
}

/* Samples of one shape become one: the median of each number. */
static void merge(fm__samples *k)
{
    int    n = 0, n_spread = 0;
    double spread, sum     = 0;
    for (int i = 0; i < k->n; i++) {
        if (is_merged(k, n, i)) continue;
        fm__sample one = k->list[i];
        one.seconds    = median_of(k, i, -1, &spread);
        sum += spread;
        n_spread += spread > 0;
        for (int w = 0; w < FM_N_WORK; w++) one.work[w] = median_of(k, i, w, &spread);
        k->list[n++] = one;
    }
    k->n             = n;
    k->tuned->spread = n_spread ? sum / n_spread : k->tuned->spread;
}

/* The place in its table of one kind of work in this step; 0: the step has no such work. */
static int place_in_table(const fm__samples *k, fm_work_kind kind, const fm__sample *s, double *row,
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

static fm_step_model bare_model(const fm__samples *k, const fm_tuned *t, const fm_cluster *c)
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
static double seen(const fm__sample *s)
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
static fm_status find_roofs(fm__samples *k)
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

static void fill_share(const fm__samples *k, fm_work_kind w, mean_at *list)
{
    int n = 0;
    for (int i = 0; i < k->n; i++) {
        const fm__sample *s = &k->list[i];
        double            row, context;
        if (place_in_table(k, w, s, &row, &context) && s->work[w] > 0 && s->roof[w] > 0)
            add_to_place(list, &n, row, nearby(context), s->roof[w] / s->work[w]);
    }
    k->tuned->share[w] = (fm_table){0};
    put_places(&k->tuned->share[w], list, n);
}

static fm_status fill_shares(fm__samples *k)
{
    mean_at *list = calloc((size_t)k->n + 1, sizeof *list);
    if (!list) return fm_fail(FM_E_OOM, "shares");
    const fm_status rc = find_roofs(k);
    for (int w = 0; rc == FM_OK && w < FM_N_WORK; w++) fill_share(k, (fm_work_kind)w, list);
    free(list);
    return rc;
}

/* Least squares of what steps take beside their ops: a part for each, and one for each text. */
static void fit_host(fm__samples *k)
{
    double n = 0, x = 0, xx = 0, y = 0, xy = 0;
    for (int i = 0; i < k->n; i++) {
        const fm__sample *s = &k->list[i];
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
static int corrects(const fm__samples *k, const fm__sample *s)
{
    enum { NOT_LONG = 600 };
    return k->sees_ops || (s->is_prompt ? s->context == 0 : s->context < NOT_LONG);
}

static fm_status fill_corrections(const fm__samples *k, const fm_step_model *bare, fm_table *to,
                                  int of_prompts, mean_at *list)
{
    fm_step_model m = *bare;
    int           n = 0;
    for (int i = 0; i < k->n; i++) {
        const fm__sample *s = &k->list[i];
        fm_sim_times      t = {0};
        drawn             d = {0};
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

static fm_status fill_steps(fm__samples *k)
{
    fm_tuned_steps  *to   = fm_tuned_add_steps(k->tuned, k->model);
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

fm_status fm__samples_fit(fm__samples *k)
{
    merge(k);
    if (k->sees_ops) FM_TRY(fill_shares(k));
    if (k->sees_ops) fit_host(k);
    return fill_steps(k);
}
