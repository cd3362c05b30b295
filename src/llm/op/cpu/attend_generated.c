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
 * cache when the values are summed. */
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
    int                    n_group; /* of 16 heads */
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

static float *part_of(const wave *v, int unit, int head)
{
    const size_t at = (size_t)unit * (size_t)v->n_group * LANES + (size_t)head;
    return v->b->part + at * (size_t)v->r->config->kv_lora;
}

static part_stat *stat_of(const wave *v, int unit, int group)
{
    return (part_stat *)v->b->part_stat + (size_t)unit * (size_t)v->n_group + (size_t)group;
}

/* q'[i, head] for all rows of the wave */
static void absorb_head(const wave *v, int head, float *tile)
{
    const fm_cpu          *b  = v->b;
    const fm_model_config *c  = v->r->config;
    const fm_matrix       *up = &v->w->k_up_t[head];
    const size_t           es = b->act_bytes, at = (size_t)(head * (c->nope + c->rope)) * es;
    const size_t           used  = (size_t)(c->kv_lora + c->rope) * es;
    const size_t           stride = (size_t)v->r->weights->n_head * (size_t)fm_kv_width(c);
    for (int i0 = 0; i0 < v->n; i0 += FM_TILE_ROWS) {
        const int   m = fm__min(v->n - i0, FM_TILE_ROWS);
        const void *x[FM_TILE_ROWS];
        for (int i = 0; i < m; i++) x[i] = fm__act_at(b, v->q, v->row[i0 + i]) + at;
        for (int p = 0; p < fm__panels(up); p++) {
            fm__panel(b, tile, x, up, p, m);
            fm_tile_store(q_latent(v, i0, head) + (size_t)p * FM_PANEL * es, b->act, stride, tile, m,
                          FM_PANEL);
        }
        for (int i = 0; i < m; i++) {
            char *dst = q_latent(v, i0 + i, head);
            memcpy(dst + (size_t)c->kv_lora * es, (const char *)x[i] + (size_t)c->nope * es,
                   (size_t)c->rope * es);
            memset(dst + used, 0, (size_t)fm_kv_width(c) * es - used);
        }
    }
}

/* Where the cached tokens of a part lie, in whole steps; returns how many there are. */
static int locate(const wave *v, int i, int part, const void **latent)
{
    const fm_span *span  = &v->r->batch->span[v->span[i]];
    const size_t   bytes = (size_t)fm_kv_width(v->r->config) * v->b->act_bytes;
    const int      key0 = part * PART, page = v->r->limits.page_size;
    const int      n = fm__min(v->r->batch->pos[v->row[i]] + 1 - key0, PART);
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

/* One part of one row for a group of heads. */
static void run_unit(const wave *v, int unit, int group, fm_thread_scratch *t)
{
    const fm_cpu          *b     = v->b;
    const fm_model_config *c     = v->r->config;
    const fm_latent_fns   *fn    = fm_latent_for(b->latent, b->act);
    const int              i     = b->unit_row[unit], head0 = group * LANES, width = fm_kv_width(c);
    const int              heads = fm__min(v->r->weights->n_head - head0, LANES);
    part_stat             *stat  = stat_of(v, unit, group);
    const void            *q[LANES], *latent[PART];

    const int n = locate(v, i, unit - b->first_unit[i], latent);
    fetch_first(latent, (size_t)width * b->act_bytes);
    for (int h = 0; h < heads; h++) q[h] = q_latent(v, i, head0 + h);
    fn->pack(t->lanes, q, heads, width);
    fn->score(t->score, t->lanes, latent, n, width);
    fn->weigh(t->weight, t->score, n, fm_attention_scale(c), stat->max, stat->sum);
    fn->value(part_of(v, unit, head0), t->weight, latent, n, heads, c->kv_lora);
}

/* z[i, head] from its parts, ascending. */
static void merge(const wave *v, int i, int head)
{
    const int L = v->r->config->kv_lora, unit0 = v->b->first_unit[i], n_part = parts_of(v, i);
    const int group = head / LANES, lane = head % LANES;
    float     max = -INFINITY, sum = 0, *z = part_of(v, unit0, head);
    for (int k = 0; k < n_part; k++) max = fmaxf(max, stat_of(v, unit0 + k, group)->max[lane]);
    for (int k = 0; k < n_part; k++) {
        const part_stat *s = stat_of(v, unit0 + k, group);
        sum += s->sum[lane] * fm_exp(s->max[lane] - max);
    }
    for (int k = 0; k < n_part; k++) {
        const float share = fm_exp(stat_of(v, unit0 + k, group)->max[lane] - max) / sum;
        if (k == 0) fm_row_scale(z, share, L);
        else fm_row_scale_add(z, part_of(v, unit0 + k, head), share, L);
    }
    fm_row_store(z_latent(v, i, head), v->b->act, z, L);
}

/* o[row, head] = v_up z for all rows of the wave */
static void value_head(const wave *v, int head, float *tile)
{
    const fm_cpu    *b  = v->b;
    const fm_matrix *up = &v->w->v_up[head];
    for (int i0 = 0; i0 < v->n; i0 += FM_TILE_ROWS) {
        const int   m = fm__min(v->n - i0, FM_TILE_ROWS);
        const void *x[FM_TILE_ROWS];
        for (int i = 0; i < m; i++) x[i] = z_latent(v, i0 + i, head);
        for (int p = 0; p < fm__panels(up); p++) {
            const size_t col = (size_t)(head * up->n + p * FM_PANEL);
            fm__panel(b, tile, x, up, p, m);
            for (int i = 0; i < m; i++)
                fm_row_store(fm__act_at(b, v->o, v->row[i0 + i]) + col * b->act_bytes, b->act,
                             tile + i * FM_PANEL, fm__min(up->n - p * FM_PANEL, FM_PANEL));
        }
    }
}

/* A unit's neighbours read the same part for other heads: where there are units
 * enough for everybody, one thread takes them all. */
static void run_wave(const wave *v)
{
    fm_cpu   *b = v->b;
    const int H = v->r->weights->n_head, n_group = v->n_group;
    const int together = v->n_unit >= 4 * b->n_thread ? n_group : 1;
#pragma omp parallel num_threads(b->n_thread)
    {
        fm_thread_scratch *t = &b->scratch[omp_get_thread_num()];
#pragma omp for schedule(dynamic)
        for (int h = 0; h < H; h++) absorb_head(v, h, t->tile);
#pragma omp for schedule(dynamic, together)
        for (int k = 0; k < v->n_unit * n_group; k++) run_unit(v, k / n_group, k % n_group, t);
#pragma omp for schedule(dynamic)
        for (int h = 0; h < H; h++) {
            for (int i = 0; i < v->n; i++) merge(v, i, h);
            value_head(v, h, t->tile);
        }
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

/* As many rows as the wave's memory holds, every part of a row in one wave. */
void fm__attend_generated(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    fm_cpu   *b       = fm__cpu(r);
    const int n       = collect_rows(r, b);
    const int n_group = (r->weights->n_head + LANES - 1) / LANES;
    for (int first = 0; first < n;) {
        wave v = {r, b, w, o, q, layer, b->gen_row + first, b->gen_span + first, 0, 0, n_group};
        while (first < n && v.n < FM_LATENT_UNITS) {
            const int n_part = parts_of(&v, v.n);
            if (v.n_unit + n_part > b->n_unit) break;
            b->first_unit[v.n] = v.n_unit;
            for (int k = 0; k < n_part; k++) b->unit_row[v.n_unit++] = v.n;
            v.n++;
            first++;
        }
        run_wave(&v);
    }
}
