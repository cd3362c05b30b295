/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to single rows, routing and sampling, at the shapes of V2-Lite
 * and R1.  As in a step, activations are found in L2: few of these wait for
 * memory, most for their own start. */
#include <stdio.h>
#include <stdlib.h>

#include <initializer_list>

#include "bench/cuda/sections.h"
#include "bench/cuda/stand.h"
#include "llm/kernel/cuda/route/route.h"
#include "llm/kernel/cuda/rows/rows.h"
#include "llm/kernel/cuda/sample/sample.h"

enum { LORA = 512, ROPE = 64, NOPE = 128, WIDTH = 576, CONTEXT = 4096, BLOCK_ROWS = 64 };

typedef struct {
    const char     *name;
    int             D, H, E, top_k, n_group, top_group, vocab;
    fm_route_method method;
    fm_score_func   func;
} model_shape;

static const model_shape shapes[] = {
    {"v2lite", 2048, 16, 64, 6, 1, 1, 102400, FM_ROUTE_GREEDY, FM_SCORE_SOFTMAX},
    {"r1", 7168, 128, 256, 8, 8, 4, 129280, FM_ROUTE_NOAUX_TC, FM_SCORE_SIGMOID},
};

static const int row_counts[] = {1, 32, 256, 4096};

typedef struct {
    fm_cuda_embed_args    embed;
    fm_cuda_rmsnorm_args  norm;
    fm_cuda_add_args      add;
    fm_cuda_rope_args     rope;
    fm_cuda_rope_args     generated; /* queries that end in the latent space */
    fm_cuda_store_kv_args store;
    fm_cuda_route_args    route;
    fm_cuda_pairs_args    pairs;
    fm_cuda_combine_args  combine;
    void                 *own[32];
    int                   n_own;
} step;

/* --- memory of a step -------------------------------------------------------- */

static void *keep(step *s, void *p)
{
    FM_BUG_UNLESS(s->n_own < (int)(sizeof s->own / sizeof *s->own));
    return s->own[s->n_own++] = p;
}

static float *floats(step *s, size_t n) /* positive and below 1/64: any op takes them */
{
    return (float *)keep(s, stand_random(n * 4, STAND_FACTORS, (uint64_t)s->n_own + 1));
}

static uint16_t *halves(step *s, size_t n)
{
    return (uint16_t *)keep(s, stand_random(n * 2, STAND_BF16, (uint64_t)s->n_own + 1));
}

/* n numbers below `limit`. */
static int32_t *indices(step *s, size_t n, int limit)
{
    int32_t *v = (int32_t *)malloc(n * sizeof *v);
    FM_BUG_UNLESS(v != NULL);
    for (size_t i = 0; i < n; i++) v[i] = (int32_t)((i * 7919 + 13) % (size_t)limit);
    int32_t *p = (int32_t *)keep(s, stand_upload(v, n * sizeof *v));
    free(v);
    return p;
}

static int32_t *ints(step *s, size_t n)
{
    return (int32_t *)keep(s, stand_take(n * sizeof(int32_t)));
}

static void take_rows(step *s, const model_shape *m, int T)
{
    const size_t n = (size_t)T, D = (size_t)m->D, H = (size_t)m->H;
    float       *x = floats(s, n * D), *y = floats(s, n * D), *w = floats(s, D);
    float       *cos = floats(s, (size_t)CONTEXT * ROPE / 2);
    int32_t     *pos = indices(s, n, CONTEXT);
    uint16_t    *q   = halves(s, n * H * (NOPE + ROPE));
    s->embed = {x,   halves(s, (size_t)m->vocab * D), indices(s, n, m->vocab), T, m->D, m->vocab,
                NULL};
    s->norm  = {halves(s, n * D), x, y, NULL, w, 1e-6f, T, m->D, {}};
    s->add   = {x, y, T, m->D};
    s->rope  = {q, cos, cos, pos, T, m->H, NOPE, ROPE, 1, NULL, 0, LORA, WIDTH};
    s->generated        = s->rope;
    s->generated.latent = halves(s, n * H * WIDTH), s->generated.n_latent = T;

    fm_cuda_store_kv_args *k = &s->store;
    k->cache                 = halves(s, n * WIDTH);
    k->ckv                   = floats(s, n * (LORA + ROPE));
    k->norm                  = w;
    k->cos = k->sin = cos;
    k->pos          = pos;
    k->slot         = indices(s, n, T);
    k->eps          = 1e-6f;
    k->n_row = T, k->kv_lora = LORA, k->rope = ROPE, k->width = WIDTH, k->interleaved = 1;
}

static void take_experts(step *s, const model_shape *m, int T)
{
    const size_t pairs = (size_t)T * (size_t)m->top_k, E = (size_t)m->E;
    fm_cuda_route_args *r = &s->route;
    r->expert             = ints(s, pairs);
    r->weight             = (float *)keep(s, stand_take(pairs * 4));
    r->score              = floats(s, (size_t)T * E);
    r->bias               = m->method == FM_ROUTE_NOAUX_TC ? floats(s, E) : NULL;
    r->n_row = T, r->n_expert = m->E, r->top_k = m->top_k;
    r->n_group = m->n_group, r->top_group = m->top_group;
    r->norm_top_k = 1, r->routed_scale = 2.5f, r->method = m->method, r->func = m->func;

    fm_cuda_pairs_args *p = &s->pairs;
    p->expert             = r->expert;
    p->count              = ints(s, E);
    p->offset             = ints(s, E + 1);
    p->pair_row           = ints(s, pairs);
    p->pair_of            = ints(s, pairs);
    p->block              = ints(s, 3 * (pairs / BLOCK_ROWS + E));
    p->n_block            = ints(s, 1);
    p->scratch            = ints(s, (pairs / 1024 + 1) * E);
    p->n_row = T, p->top_k = m->top_k, p->n_expert = m->E, p->block_rows = BLOCK_ROWS;
    s->combine = {(float *)s->add.y,
                  halves(s, pairs * (size_t)m->D),
                  p->pair_of,
                  r->weight,
                  1,
                  T,
                  m->top_k,
                  m->D};
}

static void give_back(step *s)
{
    for (int i = 0; i < s->n_own; i++) stand_free(s->own[i]);
}

/* --- ops ----------------------------------------------------------------------- */

#define RECORD(op, call)                                                                           \
    static void record_##op(void *arg, fm_stream stream)                                           \
    {                                                                                              \
        stand_need(call(&((const step *)arg)->op, stream));                                        \
    }
RECORD(embed, fm_cuda_embed)
RECORD(norm, fm_cuda_rmsnorm)
RECORD(add, fm_cuda_add)
RECORD(rope, fm_cuda_rope)
RECORD(generated, fm_cuda_rope)
RECORD(route, fm_cuda_route)
RECORD(pairs, fm_cuda_pairs)
RECORD(combine, fm_cuda_combine)
#undef RECORD

static void record_store(void *arg, fm_stream stream)
{
    stand_need(fm_cuda_store_kv(&((const step *)arg)->store, stream));
}

static void record_route_and_sort(void *arg, fm_stream stream)
{
    const step *s = (const step *)arg;
    stand_need(fm_cuda_route_and_sort(&s->route, &s->pairs, stream));
}

static void record_experts_norm(void *arg, fm_stream stream)
{
    const step          *s = (const step *)arg;
    fm_cuda_rmsnorm_args a = s->norm;
    if (a.width > FM_CUDA_NORM_EXPERTS) {
        stand_need(fm_cuda_combine(&s->combine, stream));
    } else {
        a.experts = s->combine;
    }
    stand_need(fm_cuda_rmsnorm(&a, stream));
}

static void record_plain_norm(void *arg, fm_stream stream)
{
    fm_cuda_rmsnorm_args a = ((const step *)arg)->norm;
    a.add                  = NULL;
    stand_need(fm_cuda_rmsnorm(&a, stream));
}

static void time_ops(step *s, const model_shape *m, int T)
{
    const double D = m->D, H = m->H, n = T, k = m->top_k;
    const struct {
        const char *name;
        void (*record)(void *, fm_stream);
        double bytes; /* of a row */
    } op[] = {
        {"embed", record_embed, 6 * D},
        {"add, rmsnorm", record_norm, 14 * D},
        {"rmsnorm", record_plain_norm, 6 * D},
        {"add", record_add, 12 * D},
        {"rope", record_rope, H * ROPE * 4},
        {"rope, latent", record_generated, H * ROPE * 6},
        {"store kv", record_store, WIDTH * 6.0},
        {"route", record_route, m->E * 4 + k * 8},
        {"pairs", record_pairs, k * 12},
        {"combine", record_combine, (k + 4) * 2 * D},
        {"combine, add, norm", record_experts_norm, (k + 7) * 2 * D},
    };
    for (const auto &o : op)
        stand_line(o.name, m->name, T, stand_time(o.record, s), n * o.bytes, 0);
    if (T <= FM_CUDA_ROUTE_FEW)
        stand_line("route and pairs", m->name, T, stand_time(record_route_and_sort, s),
                   n * (m->E * 4 + k * 20), 0);
}

/* --- tokens ---------------------------------------------------------------------- */

static void record_sample(void *arg, fm_stream stream)
{
    stand_need(fm_cuda_sample((const fm_cuda_sample_args *)arg, stream));
}

static void time_sample(const model_shape *m, int T, const char *name, fm_cuda_sampling how)
{
    step                s    = {};
    fm_cuda_sample_args a    = {};
    fm_cuda_sampling   *list = (fm_cuda_sampling *)malloc((size_t)T * sizeof *list);
    FM_BUG_UNLESS(list != NULL);
    for (int i = 0; i < T; i++) list[i] = how, list[i].seed = (uint64_t)i;
    a.logits = (float *)keep(&s, stand_random((size_t)T * (size_t)m->vocab * 4, STAND_LOGITS, 1));
    a.how    = (const fm_cuda_sampling *)keep(&s, stand_upload(list, (size_t)T * sizeof *list));
    a.n_row = T, a.vocab = m->vocab, a.only_greedy = how.temperature == 0;
    a.scratch     = keep(&s, stand_take(fm_cuda_sample_bytes(T, m->vocab)));
    a.id          = ints(&s, (size_t)T);
    a.logprob     = (float *)keep(&s, stand_take((size_t)T * 4));
    a.top_id      = ints(&s, (size_t)T * FM_MAX_TOP_LOGPROBS);
    a.top_logprob = (float *)keep(&s, stand_take((size_t)T * FM_MAX_TOP_LOGPROBS * 4));
    stand_line(name, m->name, T, stand_time(record_sample, &a), 4.0 * T * m->vocab, 0);
    give_back(&s);
    free(list);
}

static void time_tokens(const model_shape *m)
{
    fm_cuda_sampling greedy = {}, drawn = {}, cut = {};
    drawn.temperature = cut.temperature = 1, drawn.top_p = 1;
    cut.top_p = 0.9f, cut.top_k = 50;
    for (int T : {1, 32, 256}) {
        if (stand_is_over()) return;
        time_sample(m, T, "sample, greedy", greedy);
        time_sample(m, T, "sample, drawn", drawn);
        time_sample(m, T, "sample, top k and p", cut);
    }
}

void section_rows(void)
{
    for (const model_shape &m : shapes) {
        for (int T : row_counts) {
            step s = {};
            if (stand_is_over()) return;
            take_rows(&s, &m, T);
            take_experts(&s, &m, T);
            time_ops(&s, &m, T);
            give_back(&s);
        }
        time_tokens(&m);
    }
}
