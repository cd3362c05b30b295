/* SPDX-License-Identifier: Apache-2.0 */
/* Routed experts: each phase at the shapes of V2-Lite and R1, over several
 * layers so that nothing is found in L2.  Routing is uniform.  Bytes are the
 * weights of the experts that are touched and the activations once. */
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>

#include "bench/cuda/sections.h"
#include "bench/cuda/stand.h"
#include "llm/kernel/cuda/experts/experts.h"
#include "llm/kernel/cuda/route/route.h"

enum { LAYERS = 4 };

typedef struct {
    const char *name;
    int         E, top_k, D, I, e4m3;
} model_shape;

static const model_shape shapes[] = {
    {"v2lite", 64, 6, 2048, 1408, 0},
    {"r1", 256, 8, 7168, 2048, 0},
    {"r1-e4m3", 256, 8, 7168, 2048, 1},
};

static const int token_counts[] = {256, 32,  1,   4096,
                                   8,   128, 512, 1024}; /* the telling ones first */

/* One layer's arguments. */
typedef struct {
    fm_cuda_experts_args tiles;
    int                  n_pair, n_touched;
} layer;

typedef struct {
    layer at[LAYERS];
    void (*run)(const layer *l, fm_stream stream);
} replay;

static size_t up_to_128(int n) { return (size_t)(n + 127) / 128; }

static fm_cuda_expert_matrix random_matrix(const model_shape *s, int E, int parts, int rows, int k,
                                           uint64_t seed)
{
    const size_t          n = (size_t)E * (size_t)parts * (size_t)rows * (size_t)k;
    fm_cuda_expert_matrix m = {};
    m.weight = stand_random(s->e4m3 ? n : 2 * n, s->e4m3 ? STAND_E4M3 : STAND_BF16, seed);
    if (s->e4m3)
        m.scale = (const float *)stand_random((size_t)E * (size_t)parts * up_to_128(rows) *
                                                  up_to_128(k) * 4,
                                              STAND_FACTORS, seed + 1);
    return m;
}

static void take_weights(layer *l, const model_shape *s, uint64_t seed)
{
    l->tiles.gate_up = random_matrix(s, s->E, 2, s->I, s->D, seed);
    l->tiles.down    = random_matrix(s, s->E, 1, s->D, s->I, seed + 2);
}

static void free_matrix(fm_cuda_expert_matrix m)
{
    stand_free((void *)m.weight);
    stand_free((void *)m.scale);
}

static void free_weights(layer *l)
{
    free_matrix(l->tiles.gate_up);
    free_matrix(l->tiles.down);
}

/* top_k different experts for each token. */
static void draw_experts(int32_t *expert, const model_shape *s, int T)
{
    for (int t = 0; t < T; t++)
        for (int j = 0; j < s->top_k; j++) {
            int32_t *e = &expert[t * s->top_k + j], again;
            do {
                *e    = rand() % s->E;
                again = 0;
                for (int i = 0; i < j; i++) again |= e[-1 - i] == *e;
            } while (again);
        }
}

static int count_touched(const int32_t *expert, int n, int E)
{
    int touched = 0;
    for (int e = 0; e < E; e++) touched += std::find(expert, expert + n, e) < expert + n;
    return touched;
}

static int32_t *ints(size_t n) { return (int32_t *)stand_take(n * sizeof(int32_t)); }

/* The pairs by expert, in blocks, as in a step. */
static void take_pairs(layer *l, const model_shape *s, const int32_t *expert, int T, int width)
{
    const int          n = T * s->top_k, most = n / width + s->E;
    fm_cuda_pairs_args p = {};
    p.expert             = (const int32_t *)stand_upload(expert, (size_t)n * sizeof *expert);
    p.count              = ints((size_t)s->E);
    p.offset             = ints((size_t)s->E + 1);
    p.pair_row           = ints((size_t)n);
    p.pair_of            = ints((size_t)n);
    p.block              = ints((size_t)most * 3);
    p.n_block            = ints(1);
    p.n_row = T, p.top_k = s->top_k, p.n_expert = s->E, p.block_rows = width;
    p.box = fm_cuda_experts_box(width);
    stand_need(fm_cuda_pairs(&p, NULL));
    stand_wait();
    fm_cuda_experts_args *a = &l->tiles;
    a->pair_row             = p.pair_row;
    a->block                = p.block;
    a->n_block              = p.n_block;
    a->max_block            = n < most ? n : most;
    a->n_expert             = s->E;
    a->n_pair               = n;
    a->block_rows           = width;
    l->n_pair               = n;
    l->n_touched            = count_touched(expert, n, s->E);
    for (const void *x : {(const void *)p.expert, (const void *)p.count, (const void *)p.offset,
                          (const void *)p.pair_of})
        stand_free((void *)x);
}

static void take_step(layer *l, const model_shape *s, int T, int width, int n_layer_before)
{
    const size_t n      = (size_t)T * (size_t)s->top_k;
    int32_t     *expert = (int32_t *)malloc(n * sizeof *expert);
    srand(1u + (unsigned)n_layer_before); /* the same routing for every shape */
    draw_experts(expert, s, T);
    take_pairs(l, s, expert, T, width);
    l->tiles.h        = (const uint16_t *)stand_random((size_t)T * (size_t)s->D * 2, STAND_BF16,
                                                       77 + (uint64_t)n_layer_before);
    l->tiles.middle   = (uint16_t *)stand_take(n * (size_t)s->I * 2);
    l->tiles.pair_out = (uint16_t *)stand_take(n * (size_t)s->D * 2);
    l->tiles.D        = s->D;
    l->tiles.I        = s->I;
    l->tiles.n_sm     = stand_sm();
    free(expert);
}

static void free_step(layer *l)
{
    const void *all[] = {l->tiles.pair_row, l->tiles.block,  l->tiles.n_block,
                         l->tiles.h,        l->tiles.middle, l->tiles.pair_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) stand_free((void *)all[i]);
}

static void tiles_up(const layer *l, fm_stream stream)
{
    stand_need(fm_cuda_experts_up(&l->tiles, stream));
}
static void tiles_down(const layer *l, fm_stream stream)
{
    stand_need(fm_cuda_experts_down(&l->tiles, stream));
}

static void record(void *arg, fm_stream stream)
{
    const replay *r = (const replay *)arg;
    for (int i = 0; i < LAYERS; i++) r->run(&r->at[i], stream);
}

/* Bytes of one row's width of weights for each of the experts touched. */
static double weight_bytes(const replay *r, const model_shape *s)
{
    double experts = 0;
    for (int i = 0; i < LAYERS; i++) experts += r->at[i].n_touched;
    return experts / LAYERS * s->I * s->D * (s->e4m3 ? 1 : 2);
}

static void time_one(replay *r, const char *phase, const model_shape *s, int T, int matrices,
                     void (*run)(const layer *, fm_stream))
{
    const fm_cuda_experts_args *t     = &r->at[0].tiles;
    const double                pairs = (double)T * s->top_k;
    const double                flop  = 2 * pairs * s->I * s->D * matrices;
    const double                acts =
        matrices == 2 ? T * 2.0 * s->D + pairs * s->I * 2 : pairs * s->I * 2 + pairs * 2.0 * s->D;
    char kernel[32];
    snprintf(kernel, sizeof kernel, "%s, %d tokens", phase, t->block_rows);
    r->run = run;
    (s->e4m3 ? stand_line_fp8 : stand_line)(kernel, s->name, T, stand_time(record, r) / LAYERS,
                                            matrices * weight_bytes(r, s) + acts, flop);
}

/* Both phases with blocks of `width` tokens. */
static void time_shape(replay *r, const model_shape *s, int T, int width)
{
    for (int i = 0; i < LAYERS; i++) take_step(&r->at[i], s, T, width, i);
    time_one(r, "up", s, T, 2, tiles_up);
    time_one(r, "down", s, T, 1, tiles_down);
    for (int i = 0; i < LAYERS; i++) free_step(&r->at[i]);
}

/* The width that is chosen, and what else could be. */
static void time_tokens(replay *r, const model_shape *s, int T)
{
    const int width = fm_cuda_experts_block_rows(T * s->top_k, s->E, s->e4m3);
    time_shape(r, s, T, width);
    if (width > 8) time_shape(r, s, T, width == 256 ? 64 : width / 2);
    if (width < 64 && T > 64) time_shape(r, s, T, 2 * width);
}

static void time_model(const model_shape *s)
{
    replay r = {};
    for (int i = 0; i < LAYERS; i++) take_weights(&r.at[i], s, 100 * (uint64_t)(i + 1));
    for (int T : token_counts)
        if (!stand_is_over()) time_tokens(&r, s, T);
    for (int i = 0; i < LAYERS; i++) free_weights(&r.at[i]);
}

void section_experts(void)
{
    stand_need(fm_cuda_experts_init());
    for (const model_shape &s : shapes) time_model(&s);
}
