/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form: the query is carried into the latent space, where all
 * heads share one key and value, the cached latent itself.
 *
 *     q'    = [k_up^T q | qR]                      per row and head
 *     parts of 256 keys, counted from position 0:  (max, sum, z) of each, in parallel
 *     z     = parts merged in ascending order
 *     o     = v_up z
 *
 * The split into parts is fixed, so batch mates and chunking change nothing.
 * A part is read from memory once, for the scores, and is still in the core's
 * cache when the values are summed.
 *
 * Few heads do not fill the 16 lanes of a unit: neighbouring rows of a sequence (drafts under
 * verification) then share them, a bundle.  Its last row sees the most keys; what lies behind an
 * earlier row gets the score -inf in that row's lanes, so its weight is exactly zero, and since
 * no step crosses lanes a row has the bits it has alone. */
#include <math.h>
#include <omp.h>

#include "llm/kernel/rows/exp.h"
#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu/cpu_internal.h"

enum { LANES = FM_LATENT_LANES, PART = FM_LATENT_KEYS };

typedef struct {
    fm_run                *r;
    fm_cpu                *b;
    const fm_attn_weights *w;
    fm_act                 o, q;
    int                    layer;
    const int32_t         *row, *span; /* [n] rows of this wave and their spans */
    int                    n, n_unit;
    int                    most_parts; /* of a row */
    int                    n_group;    /* of 16 heads */
    int                    bundle;     /* rows that can share 16 lanes */
} wave;

/* What a part leaves of a group of heads, beside z. */
typedef struct {
    float max[LANES], sum[LANES];
} part_stat;

static int parts_of(const wave *v, int i)
{
    return v->r->batch->pos[v->row[i]] / PART + 1;
}

static char *q_latent(const wave *v, int i, int head)
{
    const size_t at = (size_t)i * (size_t)v->r->weights->n_head + (size_t)head;
    return v->b->q_latent + at * (size_t)fm_kv_width(v->r->config) * v->b->act_bytes;
}

static char *z_latent(const wave *v, int i, int head)
{
    const size_t at = (size_t)i * (size_t)v->r->weights->n_head + (size_t)head;
    return v->b->z_latent + at * (size_t)v->r->config->kv_lora * v->b->act_bytes;
}

/* lane: of all groups of a unit */
static float *part_of(const wave *v, int unit, int lane)
{
    const size_t at = (size_t)unit * (size_t)v->n_group * LANES + (size_t)lane;
    return v->b->part + at * (size_t)v->r->config->kv_lora;
}

static part_stat *stat_of(const wave *v, int unit, int group)
{
    return (part_stat *)v->b->part_stat + (size_t)unit * (size_t)v->n_group + (size_t)group;
}

static int takes_fp8(const fm_cpu *b, const fm_matrix *up, int m)
{
    return up->dtype == FM_FP8 && b->few_fp8 && m <= FM_GEMM_FEW_ROWS;
}

/* Panels of a head's part of kv_b that m rows are multiplied with at once.  Of FP8, which heads have in
 * whole blocks of 128 outputs, they have the same scales. */
static int up_together(const fm_cpu *b, const fm_matrix *up, int m)
{
    return takes_fp8(b, up, m) ? FM_FP8_BLOCK / FM_PANEL : fm__panels_together(b, up, m);
}

/* t->tile[n][m, 32] = rows x times n panels of a head's part of kv_b; n is 1 or what up_together
 * allows */
static void multiply(const wave *v, const void *const *x, const fm_matrix *up, int panel, int n,
                     int m, fm_thread_scratch *t)
{
    const fm_cpu *b = v->b;
    if (takes_fp8(b, up, m))
        b->few_fp8(t->tile, x, fm__panel_data(up, panel), fm__panel_scale(up, panel), n, m, up->k);
    else if (!fm__multiply_few(b, t->tile, x, up, panel, n, m))
        fm_gemm_for(b->gemm, b->act)(t->tile, x, fm__up_panel(b, up, panel, t->up), NULL, m, up->k);
}

/* q'[i, head] for rows [from, to) of the wave */
static void absorb_head(const wave *v, int head, int from, int to, fm_thread_scratch *t)
{
    const fm_cpu          *b  = v->b;
    const fm_model_config *c  = v->r->config;
    const fm_matrix       *up = &v->w->k_up_t[head];
    const size_t           es = b->act_bytes, at = (size_t)(head * (c->nope + c->rope)) * es;
    const size_t           used  = (size_t)(c->kv_lora + c->rope) * es;
    const size_t           stride = (size_t)v->r->weights->n_head * (size_t)fm_kv_width(c);
    for (int i0 = from; i0 < to; i0 += FM_TILE_ROWS) {
        const int   m = fm__min(to - i0, FM_TILE_ROWS);
        const void *x[FM_TILE_ROWS];
        for (int i = 0; i < m; i++) x[i] = fm__act_at(b, v->q, v->row[i0 + i]) + at;
        const int together = up_together(b, up, m);
        for (int p = 0, n; p < fm__panels(up); p += n) {
            n = fm__min(together, fm__panels(up) - p);
            multiply(v, x, up, p, n, m, t);
            for (int j = 0; j < n; j++)
                fm_tile_store(q_latent(v, i0, head) + (size_t)(p + j) * FM_PANEL * es, b->act,
                              stride, t->tile + j * m * FM_PANEL, m, FM_PANEL);
        }
        for (int i = 0; i < m; i++) {
            char *dst = q_latent(v, i0 + i, head);
            memcpy(dst + (size_t)c->kv_lora * es, (const char *)x[i] + (size_t)c->nope * es,
                   (size_t)c->rope * es);
            memset(dst + used, 0, (size_t)fm_kv_width(c) * es - used);
        }
    }
}

/* Rows that share units are neighbours: how many, from i on. */
static int bundle_from(const wave *v, int i)
{
    int n = 1;
    while (i + n < v->n && v->b->first_unit[i + n] == v->b->first_unit[i]) n++;
    return n;
}

/* The first lane of row i in its units. */
static int lane_of(const wave *v, int i)
{
    int k = 0;
    while (k < i && v->b->first_unit[i - k - 1] == v->b->first_unit[i]) k++;
    return k * v->r->weights->n_head;
}

/* Keys of a part that row i sees; none or less: the part begins behind it. */
static int keys_of(const wave *v, int i, int part)
{
    return fm__min(v->r->batch->pos[v->row[i]] + 1 - part * PART, PART);
}

/* Where the cached tokens of a part lie that row i sees, in whole steps; returns how many. */
static int locate(const wave *v, int i, int part, const void **latent)
{
    const fm_span *span  = &v->r->batch->span[v->span[i]];
    const size_t   bytes = (size_t)fm_kv_width(v->r->config) * v->b->act_bytes;
    const int      key0 = part * PART, page = v->r->limits.page_size;
    const int      n = keys_of(v, i, part);
    for (int k = 0; k < n;) {
        const int   run = fm__min(page - (key0 + k) % page, n - k);
        const char *at  = fm__kv_at(v->r, v->b, v->layer, span, key0 + k);
        for (const int end = k + run; k < end; k++, at += bytes) latent[k] = at;
    }
    for (int k = n; k % FM_LATENT_STEP; k++) latent[k] = latent[n - 1];
    return n;
}

/* The kernel fetches ahead of itself; here is what it starts with. */
static void fetch_first(const void *const *latent, size_t bytes)
{
    for (int k = 0; k < 8; k++)
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch((const char *)latent[k] + at);
}

/* Queries of the unit's lanes: of a group of one row's heads, or of all heads of a bundle. */
static int collect_lanes(const wave *v, int i, int n_row, int group, const void **q)
{
    const int head0 = group * LANES, heads = fm__min(v->r->weights->n_head - head0, LANES);
    int       n     = 0;
    for (int k = 0; k < n_row; k++)
        for (int h = 0; h < heads; h++) q[n++] = q_latent(v, i + k, head0 + h);
    return n;
}

/* Lanes of an earlier row do not see the last ones of the bundle's n keys. */
static void hide_keys(const wave *v, int i, int n_row, int part, int n, float *score)
{
    const int heads = v->r->weights->n_head;
    for (int k = 0; k + 1 < n_row; k++)
        for (int t = keys_of(v, i + k, part); t >= 0 && t < n; t++)
            for (int h = 0; h < heads; h++) score[t * LANES + k * heads + h] = -INFINITY;
}

/* One part of one row for a group of heads, or of a bundle. */
static void run_unit(const wave *v, int unit, int group, fm_thread_scratch *t)
{
    const fm_cpu          *b     = v->b;
    const fm_model_config *c     = v->r->config;
    const fm_latent_fns   *fn    = fm_latent_for(b->latent, b->act);
    const int              i     = b->unit_row[unit], n_row = bundle_from(v, i), width = fm_kv_width(c);
    const int              part  = unit - b->first_unit[i];
    part_stat             *stat  = stat_of(v, unit, group);
    const void            *q[LANES], *latent[PART];

    const int n = locate(v, i + n_row - 1, part, latent);
    fetch_first(latent, (size_t)width * b->act_bytes);
    const int lanes = collect_lanes(v, i, n_row, group, q);
    fn->pack(t->lanes, q, lanes, width);
    fn->score(t->score, t->lanes, latent, n, width);
    hide_keys(v, i, n_row, part, n, t->score);
    fn->weigh(t->weight, t->score, n, fm_attention_scale(c), stat->max, stat->sum);
    fn->value(part_of(v, unit, group * LANES), t->weight, latent, n, lanes, c->kv_lora);
}

/* z[i, head] from its parts, ascending; `at`: its lane.  One part needs no exponentials: e^0 is 1. */
static void merge(const wave *v, int i, int head, int at)
{
    const int L = v->r->config->kv_lora, unit0 = v->b->first_unit[i], n_part = parts_of(v, i);
    const int group = at / LANES, lane = at % LANES;
    float     max = -INFINITY, sum = 0, *z = part_of(v, unit0, at);
    if (n_part == 1) {
        const float share = 1.0f / stat_of(v, unit0, group)->sum[lane];
        fm_row_store_scaled(z_latent(v, i, head), v->b->act, z, share, L);
        return;
    }
    for (int k = 0; k < n_part; k++) max = fmaxf(max, stat_of(v, unit0 + k, group)->max[lane]);
    for (int k = 0; k < n_part; k++) {
        const part_stat *s = stat_of(v, unit0 + k, group);
        sum += s->sum[lane] * fm_exp(s->max[lane] - max);
    }
    for (int k = 0; k < n_part; k++) {
        const float share = fm_exp(stat_of(v, unit0 + k, group)->max[lane] - max) / sum;
        if (k == 0) fm_row_scale(z, share, L);
        else fm_row_scale_add(z, part_of(v, unit0 + k, at), share, L);
    }
    fm_row_store(z_latent(v, i, head), v->b->act, z, L);
}

/* Rows of the wave from i on, at most m, that are neighbours in the batch, too. */
static int neighbours(const wave *v, int i, int m)
{
    int n = 1;
    while (n < m && v->row[i + n] == v->row[i] + n) n++;
    return n;
}

/* The outputs of a panel, of rows [i0, i0 + m) of the wave. */
static void store_values(const wave *v, int head, int i0, int panel, int m, const float *tile)
{
    const fm_cpu *b   = v->b;
    const int     n   = v->w->v_up[head].n;
    const size_t  col = (size_t)(head * n + panel * FM_PANEL);
    for (int i = 0, run; i < m; i += run) {
        run = neighbours(v, i0 + i, m - i);
        fm_tile_store(fm__act_at(b, v->o, v->row[i0 + i]) + col * b->act_bytes, b->act,
                      (size_t)v->o.stride, tile + i * FM_PANEL, run,
                      fm__min(n - panel * FM_PANEL, FM_PANEL));
    }
}

/* o[row, head] = v_up z for rows [from, to) of the wave */
static void value_head(const wave *v, int head, int from, int to, fm_thread_scratch *t)
{
    const fm_cpu    *b  = v->b;
    const fm_matrix *up = &v->w->v_up[head];
    for (int i0 = from; i0 < to; i0 += FM_TILE_ROWS) {
        const int   m = fm__min(to - i0, FM_TILE_ROWS);
        const void *x[FM_TILE_ROWS];
        for (int i = 0; i < m; i++) x[i] = z_latent(v, i0 + i, head);
        const int together = up_together(b, up, m);
        for (int p = 0, n; p < fm__panels(up); p += n) {
            n = fm__min(together, fm__panels(up) - p);
            multiply(v, x, up, p, n, m, t);
            for (int j = 0; j < n; j++) store_values(v, head, i0, p + j, m, t->tile + j * m * FM_PANEL);
        }
    }
}

static void finish_head(const wave *v, int head, int from, int to, fm_thread_scratch *t)
{
    for (int i = from; i < to; i++) merge(v, i, head, lane_of(v, i) + head);
    value_head(v, head, from, to, t);
}

/* Units of the rows before row i, which does not share those of the row before it. */
static int units_before(const wave *v, int i)
{
    return i < v->n ? v->b->first_unit[i] : v->n_unit;
}

static void run_rows(const wave *v, int from, int to, fm_thread_scratch *t)
{
    const int H = v->r->weights->n_head, end = units_before(v, to);
    for (int h = 0; h < H; h++) absorb_head(v, h, from, to, t);
    for (int unit = units_before(v, from); unit < end; unit++)
        for (int g = 0; g < v->n_group; g++) run_unit(v, unit, g, t);
    for (int h = 0; h < H; h++) finish_head(v, h, from, to, t);
}

/* One unit is one thread's work, and what is before and behind it may be too little to share. */
static int is_for_one_thread(const wave *v)
{
    const fm_model_config *c = v->r->config;
    const size_t           n = (size_t)v->r->weights->n_head * (size_t)(c->nope + c->v_dim);
    return v->n_unit * v->n_group == 1 && fm__is_small_product(n, c->kv_lora, v->n);
}

/* With many rows of short texts, and weights of all heads that fit a core's L2, each thread computes all
 * three phases of whole sequences: intermediate results stay in its L2, and no barrier lies between phases. */
static int divides_rows(const wave *v)
{
    enum { EACH = 8, PARTS = 4, SMALL = 512 << 10 };
    const fm_model_config *c = v->r->config;
    const size_t n = (size_t)v->r->weights->n_head * (size_t)(c->nope + c->v_dim) * (size_t)c->kv_lora;
    return v->n >= EACH * v->b->n_thread && v->most_parts <= PARTS && n * v->b->act_bytes <= SMALL;
}

/* The first row from i on whose sequence is not that of the row before. */
static int next_sequence(const wave *v, int i)
{
    while (i < v->n && v->span[i] == v->span[i - 1]) i++;
    return i < v->n ? i : v->n;
}

/* A thread's rows are those that it has in other ops, but for sequences that lie across. */
static void run_wave_by_rows(const wave *v)
{
    const int n = v->b->n_thread;
#pragma omp parallel for schedule(static) num_threads(n)
    for (int k = 0; k < n; k++) {
        const int from = k ? next_sequence(v, v->n * k / n) : 0, to = next_sequence(v, v->n * (k + 1) / n);
        if (from < to) run_rows(v, from, to, &v->b->scratch[omp_get_thread_num()]);
    }
}

/* One thread takes all head groups of a part, so that its keys are read from memory once;
 * where there are enough units to keep every thread busy. */
static void run_wave_together(const wave *v)
{
    fm_cpu   *b = v->b;
    const int H = v->r->weights->n_head, n_group = v->n_group;
    const int together = v->n_unit >= 4 * b->n_thread ? n_group : 1;
#pragma omp parallel num_threads(b->n_thread)
    {
        fm_thread_scratch *t = &b->scratch[omp_get_thread_num()];
#pragma omp for schedule(dynamic)
        for (int h = 0; h < H; h++) absorb_head(v, h, 0, v->n, t);
#pragma omp for schedule(dynamic, together)
        for (int k = 0; k < v->n_unit * n_group; k++) run_unit(v, k / n_group, k % n_group, t);
#pragma omp for schedule(dynamic)
        for (int h = 0; h < H; h++) finish_head(v, h, 0, v->n, t);
    }
}

/* Heads whose v_up a thread without a unit fetches into its L2. */
static int heads_fetched(const wave *v)
{
    const fm_matrix *up    = v->w->v_up;
    const size_t     bytes = (size_t)fm__panels(up) * fm_panel_bytes(up->dtype, up->k);
    const size_t     room  = (size_t)512 << 10;
    return fm__min(v->r->weights->n_head / v->b->n_thread, (int)(room / bytes));
}

static void fetch_heads(const wave *v, int head, int end)
{
    for (; head < end; head++) {
        const fm_matrix *up   = &v->w->v_up[head];
        const size_t     size = (size_t)fm__panels(up) * fm_panel_bytes(up->dtype, up->k);
        for (size_t at = 0; at < size; at += 64)
            __builtin_prefetch((const char *)up->panels + at, 0, 2);
    }
}

/* Fewer units than threads: the other threads fetch weights meanwhile, which they multiply with
 * then.  Loops over k give each thread the same k. */
static void run_wave_of_few_units(const wave *v)
{
    const int n_thread = v->b->n_thread, n = v->n_unit * v->n_group;
    const int H = v->r->weights->n_head, each = heads_fetched(v);
#pragma omp parallel num_threads(n_thread)
    {
        fm_thread_scratch *t = &v->b->scratch[omp_get_thread_num()];
#pragma omp for schedule(static)
        for (int h = 0; h < H; h++) absorb_head(v, h, 0, v->n, t);
#pragma omp for schedule(static, 1)
        for (int k = 0; k < n_thread; k++)
            if (k < n) run_unit(v, k / v->n_group, k % v->n_group, t);
            else fetch_heads(v, (k - n) * each, (k - n + 1) * each);
#pragma omp for schedule(static, 1) nowait
        for (int k = 0; k < n_thread; k++)
            for (int h = (k - n) * each; k >= n && h < (k - n + 1) * each; h++)
                finish_head(v, h, 0, v->n, t);
#pragma omp for schedule(dynamic)
        for (int h = (n_thread - n) * each; h < H; h++) finish_head(v, h, 0, v->n, t);
    }
}

static int collect_rows(const fm_run *r, fm_cpu *b)
{
    int n = 0;
    for (int k = 0; k < r->batch->n_span; k++) {
        const fm_span *s = &r->batch->span[k];
        for (int i = 0; s->form == FM_FORM_GENERATED && i < s->n_row; i++) {
            b->gen_row[n]    = s->row0 + i;
            b->gen_span[n++] = k;
        }
    }
    return n;
}

/* Whether the next row joins the bundle that begins at row `first` of the wave. */
static int joins(const wave *v, int first)
{
    return v->n > 0 && v->n - first < v->bundle && v->span[v->n] == v->span[first];
}

/* Adds the next row with its units; 0: they do not fit.  `first` begins the bundle at hand. */
static int add_row(wave *v, int *first)
{
    fm_cpu   *b      = v->b;
    const int shares = joins(v, *first), n_part = parts_of(v, v->n);
    const int unit0  = shares ? b->first_unit[*first] : v->n_unit;
    if (unit0 + n_part > b->n_unit) return 0;
    if (!shares) *first = v->n;
    if (n_part > v->most_parts) v->most_parts = n_part;
    b->first_unit[v->n] = unit0;
    for (; v->n_unit < unit0 + n_part; v->n_unit++) b->unit_row[v->n_unit] = *first;
    v->n++;
    return 1;
}

/* As many rows as the wave's memory holds, every part of a row in one wave. */
void fm__attend_generated(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    fm_cpu   *b       = fm__cpu(r);
    const int n       = collect_rows(r, b), n_head = r->weights->n_head;
    if (!n_head) return; /* more ranks than heads */
    const int n_group = (n_head + LANES - 1) / LANES, bundle = n_head < LANES ? LANES / n_head : 1;
    for (int done = 0; done < n;) {
        wave v     = {r, b, w, o, q, layer, b->gen_row + done, b->gen_span + done, 0, 0, 0, n_group, bundle};
        int  first = 0;
        while (done + v.n < n && v.n < FM_LATENT_UNITS && add_row(&v, &first)) continue;
        done += v.n;
        if (is_for_one_thread(&v)) run_rows(&v, 0, v.n, &b->scratch[0]);
        else if (divides_rows(&v)) run_wave_by_rows(&v);
        else if (v.n_unit * n_group < b->n_thread) run_wave_of_few_units(&v);
        else run_wave_together(&v);
    }
}
