/* SPDX-License-Identifier: Apache-2.0 */
/* The absorbed form: the query is carried into the latent space, where all
 * heads share one key and value, the cached latent itself.
 *
 *     q'    = [k_up^T q | qR]                      per row and head
 *     parts of 256 keys, counted from position 0:  (max, sum, z) of each, in parallel
 *     z     = parts merged in ascending order
 *     o     = v_up z
 *
 * The split into parts is fixed, so batch mates and chunking change nothing. */
#include <math.h>
#include <omp.h>

#include "llm/kernel/rows/exp.h"
#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu_internal.h"

typedef struct {
    fm_run                *r;
    fm_cpu                *b;
    const fm_attn_weights *w;
    fm_act                 o, q;
    int                    layer;
    const int32_t         *row, *span; /* [n] rows of this wave and their spans */
    int                    n, n_unit;
} wave;

static int keys_of(const wave *v, int i)
{
    return v->r->batch->pos[v->row[i]] + 1;
}

static char *q_latent(const wave *v, int i, int head)
{
    const fm_model_config *c = v->r->config;
    return v->b->q_latent + ((size_t)i * (size_t)v->r->weights->n_head + (size_t)head) * (size_t)fm_kv_width(c) * v->b->act_bytes;
}

static char *z_latent(const wave *v, int i, int head)
{
    const fm_model_config *c = v->r->config;
    return v->b->z_latent + ((size_t)i * (size_t)v->r->weights->n_head + (size_t)head) * (size_t)c->kv_lora * v->b->act_bytes;
}

/* [max, sum, z...] of one unit and head */
static float *part_of(const wave *v, int unit, int head)
{
    const fm_model_config *c = v->r->config;
    return v->b->part + ((size_t)unit * (size_t)v->r->weights->n_head + (size_t)head) * (size_t)(c->kv_lora + 2);
}

/* q'[i, head] for all rows of the wave */
static void absorb_head(const wave *v, int head, float *tile)
{
    const fm_cpu          *b  = v->b;
    const fm_model_config *c  = v->r->config;
    const fm_matrix       *up = &v->w->k_up_t[head];
    const size_t           es = b->act_bytes, at = (size_t)(head * (c->nope + c->rope)) * es;
    const size_t           used = (size_t)(c->kv_lora + c->rope) * es;
    for (int i0 = 0; i0 < v->n; i0 += FM_TILE_ROWS) {
        const int   m = fm__min(v->n - i0, FM_TILE_ROWS);
        const void *x[FM_TILE_ROWS];
        for (int i = 0; i < m; i++) x[i] = fm__act_at(b, v->q, v->row[i0 + i]) + at;
        for (int p = 0; p < fm__panels(up); p++) {
            fm__panel(b, tile, x, up, p, m);
            for (int i = 0; i < m; i++)
                fm_row_store(q_latent(v, i0 + i, head) + (size_t)p * FM_PANEL * es, b->act,
                             tile + i * FM_PANEL, FM_PANEL);
        }
        for (int i = 0; i < m; i++) {
            char *dst = q_latent(v, i0 + i, head);
            memcpy(dst + (size_t)c->kv_lora * es, (const char *)x[i] + (size_t)c->nope * es, (size_t)c->rope * es);
            memset(dst + used, 0, (size_t)fm_kv_width(c) * es - used);
        }
    }
}

/* Brings cached tokens nearer, a row at a time: read across 32 rows at once,
 * they would come from memory one wait after the other. */
static void fetch(const void *const *latent, int first, int last, size_t bytes)
{
    for (int k = first; k < last; k++)
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch((const char *)latent[k] + at, 0, 2);
}

/* One block of n keys for a group of heads: scores, weights, and z += weights c. */
static void meet(const wave *v, fm_thread_scratch *t, const void *const *q, int heads,
                 const void *const *latent, int n, const void *const *next, int n_next, float *max,
                 float *sum)
{
    const fm_cpu          *b = v->b;
    const fm_model_config *c = v->r->config;
    const int   width = fm_kv_width(c), depth = (int)fm_round_up((size_t)n, FM_PANEL);
    fm_gemm_fn *gemm   = fm_gemm_for(b->gemm, b->act);
    fm_pack_fn *across = b->act == FM_BF16 ? b->pack->across_bf16 : b->pack->across_f32;
    fm_pack_fn *along  = b->act == FM_BF16 ? b->pack->along_bf16 : b->pack->along_f32;
    const int   n_panel = c->kv_lora / FM_PANEL;
    const void *p[FM_LATENT_HEADS];
    float       alpha[FM_LATENT_HEADS];
    int         visible[FM_LATENT_HEADS];

    for (int k = 0; k < n; k += FM_PANEL) {
        across(t->k_panel, latent + k, fm__min(n - k, FM_PANEL), width);
        gemm(t->score + k * heads, q, t->k_panel, NULL, heads, width);
    }
    for (int h = 0; h < heads; h++) {
        visible[h] = n;
        p[h]       = (char *)t->weight + (size_t)(h * depth) * b->act_bytes;
    }
    fm_tile_softmax(t->weight, b->act, depth / FM_PANEL, t->score, heads, visible,
                    fm_attention_scale(c), max, sum, alpha);
    along(t->v_panel, latent, n, c->kv_lora);
    for (int i = 0; i < n_panel; i++) {
        fetch(next, n_next * i / n_panel, n_next * (i + 1) / n_panel, (size_t)width * b->act_bytes);
        gemm(t->tile, p, (char *)t->v_panel + (size_t)i * fm_panel_bytes(b->act, depth), NULL, heads,
             depth);
        fm_tile_scale_add(t->out + i * FM_PANEL, (size_t)c->kv_lora, alpha, t->tile, heads);
    }
}

/* Where the cached tokens of the block at `key` lie; returns how many there are. */
static int locate(const wave *v, const fm_span *span, int key, int last, const void **latent)
{
    const int n = fm__min(last - key, FM_LATENT_KEYS);
    for (int k = 0; k < n; k++) latent[k] = fm__kv_at(v->r, v->b, v->layer, span, key + k);
    return n > 0 ? n : 0;
}

static void run_unit(const wave *v, int unit, int head0, fm_thread_scratch *t)
{
    const fm_model_config *c     = v->r->config;
    const int              i     = v->b->unit_row[unit], part = v->b->unit_part[unit];
    const int              heads = fm__min(v->r->weights->n_head - head0, FM_LATENT_HEADS);
    const int              last  = fm__min(keys_of(v, i), (part + 1) * FM_LATENT_PART);
    const fm_span         *span  = &v->r->batch->span[v->span[i]];
    const void            *q[FM_LATENT_HEADS], *latent[2][FM_LATENT_KEYS];
    float                  max[FM_LATENT_HEADS], sum[FM_LATENT_HEADS];

    for (int h = 0; h < heads; h++) q[h] = q_latent(v, i, head0 + h), max[h] = -INFINITY, sum[h] = 0;
    memset(t->out, 0, (size_t)(heads * c->kv_lora) * sizeof(float));
    int n = locate(v, span, part * FM_LATENT_PART, last, latent[0]);
    fetch(latent[0], 0, n, (size_t)fm_kv_width(c) * v->b->act_bytes);
    for (int key = part * FM_LATENT_PART, now = 0; n > 0; key += FM_LATENT_KEYS, now = !now) {
        const int n_next = locate(v, span, key + FM_LATENT_KEYS, last, latent[!now]);
        meet(v, t, q, heads, latent[now], n, latent[!now], n_next, max, sum);
        n = n_next;
    }
    for (int h = 0; h < heads; h++) {
        float *to = part_of(v, unit, head0 + h);
        to[0]     = max[h];
        to[1]     = sum[h];
        memcpy(to + 2, t->out + h * c->kv_lora, (size_t)c->kv_lora * sizeof(float));
    }
}

/* z[i, head] from its parts, ascending; unit0 is the first part's. */
static void merge(const wave *v, int i, int unit0, int n_part, int head)
{
    const int L = v->r->config->kv_lora;
    float    *z = part_of(v, unit0, head);
    for (int k = 1; k < n_part; k++) {
        const float *next = part_of(v, unit0 + k, head);
        const float  max  = next[0] > z[0] ? next[0] : z[0];
        const float  keep = fm_exp(z[0] - max), add = fm_exp(next[0] - max);
        fm_row_scale(z + 2, keep, L);
        fm_row_scale_add(z + 2, next + 2, add, L);
        z[1] = z[1] * keep + next[1] * add;
        z[0] = max;
    }
    fm_row_scale(z + 2, 1.0f / z[1], L);
    fm_row_store(z_latent(v, i, head), v->b->act, z + 2, L);
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

static void run_wave(const wave *v)
{
    fm_cpu   *b = v->b;
    const int H = v->r->weights->n_head, n_group = (H + FM_LATENT_HEADS - 1) / FM_LATENT_HEADS;
#pragma omp parallel num_threads(b->n_thread)
    {
        fm_thread_scratch *t = &b->scratch[omp_get_thread_num()];
#pragma omp for schedule(dynamic)
        for (int h = 0; h < H; h++) absorb_head(v, h, t->tile);
#pragma omp for schedule(dynamic)
        for (int k = 0; k < v->n_unit * n_group; k++)
            run_unit(v, k / n_group, k % n_group * FM_LATENT_HEADS, t);
#pragma omp for schedule(dynamic, 4)
        for (int k = 0; k < v->n_unit * H; k++) {
            const int unit = k / H, i = b->unit_row[unit];
            const int n_part = (keys_of(v, i) + FM_LATENT_PART - 1) / FM_LATENT_PART;
            if (b->unit_part[unit] == 0) merge(v, i, unit, n_part, k % H);
        }
#pragma omp for schedule(dynamic)
        for (int h = 0; h < H; h++) value_head(v, h, t->tile);
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
    fm_cpu   *b = fm__cpu(r);
    const int n = collect_rows(r, b);
    for (int first = 0; first < n;) {
        wave v = {r, b, w, o, q, layer, b->gen_row + first, b->gen_span + first, 0, 0};
        while (first < n && v.n < FM_LATENT_UNITS) {
            const int n_part = (keys_of(&v, v.n) + FM_LATENT_PART - 1) / FM_LATENT_PART;
            if (v.n_unit + n_part > b->n_unit) break;
            for (int k = 0; k < n_part; k++) {
                b->unit_row[v.n_unit]    = v.n;
                b->unit_part[v.n_unit++] = k;
            }
            v.n++;
            first++;
        }
        run_wave(&v);
    }
}
