/* SPDX-License-Identifier: Apache-2.0 */
/* Attention at the shapes of V2-Lite (16 heads) and R1 (128): decode over
 * several layers of cache that together exceed L2, and prefill.  T is the number
 * of sequences, or of prompt tokens. */
#include <stdio.h>
#include <stdlib.h>

#include <initializer_list>

#include "bench/cuda/sections.h"
#include "bench/cuda/stand.h"
#include "llm/kernel/cuda/attention/mla.h"
#include "llm/kernel/cuda/attention/mla_internal.h"

enum { LORA = 512, WIDTH = 576, NOPE = 128, ROPE = 64, V_DIM = 128, PAGE = 64, MAX_LAYERS = 512 };
static const double ROTATING = 250e6; /* bytes */

static int32_t *upload_ints(const int32_t *x, size_t n)
{
    return (int32_t *)stand_upload(x, n * sizeof *x);
}

/* The numbers 0 .. n-1 in another order: a cache that has been in use. */
static int32_t *shuffled(size_t n)
{
    int32_t *v = (int32_t *)malloc(n * sizeof *v);
    uint32_t r = 1;
    if (!v) exit(1);
    for (size_t i = 0; i < n; i++) v[i] = (int32_t)i;
    for (size_t i = n; i-- > 1;) {
        const size_t  j = (r = r * 1664525u + 1013904223u) % (i + 1);
        const int32_t x = v[i];
        v[i] = v[j], v[j] = x;
    }
    int32_t *on_device = upload_ints(v, n);
    free(v);
    return on_device;
}

/* --- absorbed ------------------------------------------------------------------- */

typedef struct {
    fm_mla_absorbed_args a;
    char                *cache;
    size_t               layer_bytes;
    int                  n_layer;
} decode;

static void record_decode(void *arg, fm_stream stream)
{
    decode *d = (decode *)arg;
    for (int l = 0; l < d->n_layer; l++) {
        d->a.cache.latent = d->cache + (size_t)l * d->layer_bytes;
        stand_need(fm_cuda_mla_absorbed(&d->a, stream));
    }
}

/* All sequences have the same length and their own pages. */
static void take_rows(fm_mla_rows *rows, int B, int H, int context, int part)
{
    int32_t *keys = (int32_t *)malloc((size_t)B * 2 * sizeof *keys);
    if (!keys) exit(1);
    for (int i = 0; i < B; i++) keys[i] = context, keys[B + i] = i;
    rows->max_row  = B;
    rows->max_unit = B * fm_mla_parts(context, part);
    rows->part     = part;
    rows->n_row    = upload_ints(&B, 1);
    rows->n_key    = upload_ints(keys, (size_t)B);
    rows->table    = upload_ints(keys + B, (size_t)B);
    rows->unit0    = (int32_t *)stand_take(((size_t)B + 2) * sizeof(int32_t));
    rows->unit     = (fm_mla_unit *)stand_take((size_t)rows->max_unit * sizeof(fm_mla_unit));
    rows->n_done   = rows->max_unit * FM_MLA_SLICES * ((H + 15) / 16);
    rows->done     = (int32_t *)stand_take((size_t)rows->n_done * sizeof(int32_t));
    free(keys);
}

/* What one line is about. */
typedef struct {
    int B, context, H, part, e4m3, few;
} decode_case;

static void take_decode(decode *d, const decode_case *c)
{
    const int             pages = (c->context + PAGE - 1) / PAGE;
    const int             B = c->B, H = c->H, e4m3 = c->e4m3;
    fm_mla_absorbed_args *a     = &d->a;
    take_rows(&a->rows, B, H, c->context, c->part);
    d->layer_bytes = (size_t)B * (size_t)pages * PAGE * WIDTH * (e4m3 ? 1 : 2);
    d->n_layer     = (int)(ROTATING / (double)d->layer_bytes) + 2;
    if (d->n_layer > MAX_LAYERS) d->n_layer = MAX_LAYERS;
    d->cache = (char *)stand_random(d->layer_bytes * (size_t)d->n_layer,
                                    e4m3 ? STAND_E4M3 : STAND_BF16, 1);

    a->cache.e4m3      = e4m3;
    a->cache.scale     = 0.01f;
    a->cache.width     = WIDTH;
    a->cache.page_size = PAGE;
    a->cache.page      = shuffled((size_t)B * (size_t)pages);
    a->cache.max_page  = pages;
    a->n_head          = H;
    a->kv_lora         = LORA;
    a->scale           = 0.05f;
    a->n_sm            = stand_sm();
    a->q               = (uint16_t *)stand_random((size_t)B * (size_t)H * WIDTH * 2, STAND_BF16, 2);
    a->part_z   = (uint16_t *)stand_take((size_t)a->rows.max_unit * (size_t)H * LORA * 2);
    a->part_sum = (float *)stand_take((size_t)a->rows.max_unit * (size_t)H * 2 * sizeof(float));
    a->z        = (uint16_t *)stand_take((size_t)B * (size_t)H * LORA * 2);
    a->few      = c->few;
    a->settled  = 1;
    a->score    = (float *)stand_take((size_t)(c->few ? a->rows.max_unit : 1) *
                                      (size_t)(H * fm_mla_last_max(c->part)) * sizeof(float));
}

static void free_decode(decode *d)
{
    const fm_mla_absorbed_args *a    = &d->a;
    const void *const           of[] = {a->rows.n_row, a->rows.n_key, a->rows.table, a->rows.unit0,
                                        a->rows.unit,  d->cache,      a->cache.page, a->q,
                                        a->part_z,     a->part_sum,   a->z,          a->score,
                                        a->rows.done};
    for (const void *p : of) stand_free((void *)p);
}

static void time_decode(decode_case c)
{
    decode d = {};
    char   name[40], shape[40];
    if (stand_is_over()) return;
    take_decode(&d, &c);
    stand_need(fm_cuda_mla_plan(&d.a.rows, NULL));
    stand_wait(); /* other streams do not wait for this one */
    const double us = stand_time(record_decode, &d) / d.n_layer, keys = (double)c.B * c.context;
    snprintf(name, sizeof name, "absorbed%s%s", c.e4m3 ? " e4m3" : "", c.few ? ", few" : "");
    snprintf(shape, sizeof shape, "H %d keys %d / %d", c.H, c.context, c.part);
    stand_line(name, shape, c.B, us,
               keys * WIDTH * (c.e4m3 ? 1 : 2) + 2.0 * c.B * c.H * (WIDTH + LORA),
               2 * keys * c.H * (WIDTH + LORA));
    free_decode(&d);
}

/* --- expanded --------------------------------------------------------------------- */

typedef struct {
    fm_mla_gather_args   g;
    fm_mla_expanded_args a;
} prefill;

static void record_gather(void *arg, fm_stream stream)
{
    stand_need(fm_cuda_mla_gather(&((prefill *)arg)->g, stream));
}

static void record_expanded(void *arg, fm_stream stream)
{
    stand_need(fm_cuda_mla_expanded(&((prefill *)arg)->a, stream));
}

static void record_any_width(void *arg, fm_stream stream)
{
    stand_need(fm__mla_expanded_any(&((prefill *)arg)->a, stream));
}

/* `count` prompts of n tokens. */
static void take_spans(fm_mla_spans *s, int count, int n)
{
    fm_mla_span *span = (fm_mla_span *)malloc((size_t)count * sizeof *span);
    if (!span) exit(1);
    for (int i = 0; i < count; i++) span[i] = {i * n, n, 0, i};
    s->max_span = count;
    s->max_tile = count * ((n + FM_MLA_TILE_ROWS - 1) / FM_MLA_TILE_ROWS);
    s->n_span   = upload_ints(&count, 1);
    s->span     = (fm_mla_span *)stand_upload(span, (size_t)count * sizeof *span);
    s->key_end  = 1 << 20;
    s->key0     = (int32_t *)stand_take(((size_t)count + 1) * sizeof(int32_t));
    s->n_tile   = (int32_t *)stand_take(sizeof(int32_t));
    s->tile     = (fm_mla_tile *)stand_take((size_t)s->max_tile * sizeof(fm_mla_tile));
    free(span);
}

static void take_prefill(prefill *p, int count, int n, int H)
{
    const int    pages = (n + PAGE - 1) / PAGE, keys = count * n;
    const size_t rows = (size_t)keys * (size_t)H, slots = (size_t)count * (size_t)pages * PAGE;
    take_spans(&p->a.spans, count, n);
    p->g.spans           = p->a.spans;
    p->g.cache.latent    = stand_random(slots * WIDTH * 2, STAND_BF16, 1);
    p->g.cache.width     = WIDTH;
    p->g.cache.page_size = PAGE;
    p->g.cache.max_page  = pages;
    p->g.cache.page      = shuffled((size_t)count * (size_t)pages);
    p->g.max_key         = keys;
    p->g.latent          = (uint16_t *)stand_take((size_t)keys * WIDTH * 2);

    fm_mla_expanded_args *a = &p->a;
    a->n_head = H, a->nope = NOPE, a->rope = ROPE, a->v_dim = V_DIM;
    a->scale       = 0.07f;
    a->q           = (uint16_t *)stand_random(rows * (NOPE + ROPE) * 2, STAND_BF16, 2);
    a->key         = (uint16_t *)stand_random(rows * (NOPE + V_DIM) * 2, STAND_BF16, 3);
    a->value       = a->key + NOPE;
    a->key_rope    = p->g.latent + LORA;
    a->key_stride  = H * (NOPE + V_DIM);
    a->head_stride = NOPE + V_DIM;
    a->rope_stride = WIDTH;
    a->o           = (uint16_t *)stand_take(rows * V_DIM * 2);
}

static void free_prefill(prefill *p)
{
    const fm_mla_spans *s    = &p->a.spans;
    const void *const   of[] = {s->n_span, s->span,           s->key0,         s->n_tile,
                                s->tile,   p->g.cache.latent, p->g.cache.page, p->g.latent,
                                p->a.q,    p->a.key,          p->a.o};
    for (const void *at : of) stand_free((void *)at);
}

static void time_prefill(int count, int n, int H)
{
    prefill      p     = {};
    const double pairs = 0.5 * count * n * (n + 1.0), row = 2.0 * count * n * H;
    char         shape[40];
    take_prefill(&p, count, n, H);
    stand_need(fm_cuda_mla_tiles(&p.a.spans, NULL));
    stand_wait();
    snprintf(shape, sizeof shape, "H %d, %d of %d", H, count, n);
    n *= count;
    stand_line("gather", shape, n, stand_time(record_gather, &p), 4.0 * n * WIDTH, 0);
    const double bytes = row * (2 * NOPE + ROPE + 2 * V_DIM),
                 flop  = 2 * pairs * H * (NOPE + ROPE + V_DIM);
    stand_line("expanded", shape, n, stand_time(record_expanded, &p), bytes, flop);
    stand_line("any width", shape, n, stand_time(record_any_width, &p), bytes, flop);
    free_prefill(&p);
}

/* Cut small for a lone row, and through the ring where there are many: which is
 * better where, no bits. */
static void time_ways(int H, int context, int e4m3)
{
    for (int B : {256, 128, 32, 8, 1})
        for (int few : {0, 1})
            if (!few || B * H <= 512) time_decode({B, context, H, 512, e4m3, few});
}

/* A tail that the last part takes along, and one that does not fit any more. */
static void time_tails(int H)
{
    for (int B : {256, 32, 1})
        for (int context : {560, 760, 800}) time_decode({B, context, H, 512, 0, B == 1});
}

/* Lengths of a part move bits, so one is chosen for all; the others say what it costs. */
static void time_parts(int H, int context)
{
    for (int B : {256, 32})
        for (int part : {256, 128}) time_decode({B, context, H, part, 0, 0});
}

/* Many heads over long rows: parts written and read again cost as much as the keys, but a lone
 * row has only its parts to divide. */
static void time_long_parts(void)
{
    for (int part : {1024, 2048, 4096}) {
        for (int B : {256, 8, 1}) time_decode({B, 4096, 128, part, 0, 0});
        for (int B : {32, 1}) time_decode({B, 32768, 128, part, 0, 0});
    }
    time_decode({1, 32768, 128, 512, 0, 0});
    time_decode({256, 4096, 128, 4096, 1, 0});
}

void section_attention(void)
{
    stand_need(fm_cuda_mla_init());
    for (int H : {16, 128}) time_ways(H, 500, 0);
    time_tails(16);
    for (int H : {16, 128})
        for (int n : {4096, 1024, 16384})
            if (!stand_is_over()) time_prefill(1, n, H);
    if (!stand_is_over()) time_prefill(8, 500, 16);
    for (int H : {16, 128}) time_ways(H, 4096, 0);
    for (int H : {16, 128}) time_ways(H, 4096, 1);
    for (int H : {16, 128}) time_decode({32, 32768, H, 512, 0, 0});
    for (int e4m3 : {0, 1}) {
        time_decode({256, 1024, 128, 512, e4m3, 0});
        time_decode({32, 16384, 128, 512, e4m3, 0});
    }
    time_parts(16, 500);
    time_long_parts();
}
