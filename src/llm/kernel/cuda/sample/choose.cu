/* SPDX-License-Identifier: Apache-2.0 */
/* One block per row: what is left to do once the largest logit is known.  Rows
 * that are greedy, or whose race was run while the logits were read, need no more
 * than a look at the parts. */
#include "llm/kernel/cuda/sample/cut.cuh"

typedef struct {
    double t;
    int    id;
} runner;

static const double never = 1.7976931348623157e308;

/* Who is first; of equal ones the lower id. */
FM_DEVICE runner first_of(runner a, runner b)
{
    return b.t < a.t || (b.t == a.t && b.id < a.id) ? b : a;
}

FM_DEVICE runner first_of_warp(runner x)
{
    for (int lanes = 16; lanes; lanes /= 2) {
        runner other;
        other.t  = __shfl_xor_sync(FM_WARP, x.t, lanes);
        other.id = __shfl_xor_sync(FM_WARP, x.id, lanes);
        x        = first_of(x, other);
    }
    return x;
}

FM_DEVICE int winner_of_block(runner x)
{
    __shared__ runner part[FM__CUT_WARPS];
    x = first_of_warp(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    for (int w = 0; w < FM__CUT_WARPS; w++) x = first_of(x, part[w]);
    return x.id == INT32_MAX ? 0 : x.id;
}

/* --- races ------------------------------------------------------------------------ */

typedef struct {
    uint64_t stream;
    float    min_weight;
} race;

FM_DEVICE runner run(const race &r, runner best, float distance, int id)
{
    const float weight = fm__weight(distance);
    if (weight < r.min_weight) return best;
    const double u = fm__uniform(r.stream, id), w = (double)weight;
    if ((1 - u) * (1 - 0x1p-40) >= best.t * w) return best; /* -log u >= 1 - u: it has lost */
    return first_of(best, {-log(u) / w, id});
}

/* Among the first n of the list. */
FM_DEVICE int race_in_list(const fm__table *t, const race &r, int n)
{
    runner best = {never, INT32_MAX};
    for (int i = (int)threadIdx.x; i < n; i += FM__CUT_THREADS)
        best = run(r, best, fm__distance_at(t->list[i]), (int)(uint32_t)t->list[i]);
    return winner_of_block(best);
}

/* Among all tokens up to the cut. */
FM_DEVICE int race_in_row(const fm__row &row, const race &r, fm__cut cut)
{
    runner best = {never, INT32_MAX};
    for (int i = (int)threadIdx.x; i < row.vocab; i += FM__CUT_THREADS) {
        const float d = fm__distance_in(row, row.logits[i]);
        if (d < cut.distance || (d == cut.distance && i <= cut.id)) best = run(r, best, d, i);
    }
    return winner_of_block(best);
}

/* The winner among the candidates that the parts list; -1: the list is not conclusive. */
FM_DEVICE int race_of_parts(const fm__sample_scratch &s, int row, const fm__row &x, const race &r)
{
    const size_t first = (size_t)row * (size_t)s.n_part;
    float        score = -INFINITY;
    runner       best  = {never, INT32_MAX};
    bool         tells = x.most < INFINITY;
    for (int i = (int)threadIdx.x % 32; i < s.n_part; i += 32)
        score = fmaxf(score, s.score[first + (size_t)i]);
    score            = fm_warp_max(score);
    const float line = fm__line_below(score);
    for (int i = (int)threadIdx.x % 32; i < s.n_part; i += 32) {
        const size_t at = first + (size_t)i;
        if (s.score[at] < line) continue;
        tells = tells && s.n_runner[at] <= FM__RUNNERS;
        for (int k = 0; tells && k < s.n_runner[at]; k++) {
            const int id = s.runner[at * FM__RUNNERS + (size_t)k];
            best         = run(r, best, fm__distance_in(x, x.logits[id]), id);
        }
    }
    best  = first_of_warp(best);
    tells = __all_sync(FM_WARP, tells) && score < INFINITY && best.id != INT32_MAX;
    return tells ? best.id : -1;
}

FM_DEVICE int draw(const fm__sample_scratch &s, fm__table *t, int row, const fm__row &x,
                   const fm_cuda_sampling &h)
{
    const race r      = {fm__stream(h.seed, h.position), h.min_p};
    fm__cut    cut    = {INFINITY, INT32_MAX};
    int        n_held = 0;
    if (fm__races_at_once(h, x.vocab)) {
        const int id = race_of_parts(s, row, x, r);
        if (id >= 0) return id;
    }
    if (fm__is_cut(h, x.vocab)) {
        const fm__wish w = {h.top_k > 0 && h.top_k < x.vocab ? h.top_k : x.vocab,
                            h.top_p < 1 ? (double)h.top_p * (double)t->rings.z : INFINITY};
        cut = fm__cut_row(t, x, w, &n_held);
    }
    return n_held ? race_in_list(t, r, n_held) : race_in_row(x, r, cut);
}

/* --- what is reported ---------------------------------------------------------------- */

/* The list becomes the best n tokens. */
FM_DEVICE void list_best(fm__table *t, const fm__row &r, int n)
{
    int           n_held;
    const fm__cut cut = fm__cut_row(t, r, {n, INFINITY}, &n_held);
    if (n_held) return;
    __syncthreads();
    if (threadIdx.x == 0) t->n_list = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < r.vocab; i += FM__CUT_THREADS) {
        const float d = fm__distance_in(r, r.logits[i]);
        if (d < cut.distance || (d == cut.distance && i <= cut.id))
            t->list[atomicAdd(&t->n_list, 1)] = fm__place_of(d, i);
    }
    __syncthreads();
    fm__sort_list(t);
}

FM_DEVICE void report_best(const fm_cuda_sample_args &a, fm__table *t, int row, int n, double log_z)
{
    const int     k      = (int)threadIdx.x;
    const size_t  at     = (size_t)row * FM_MAX_TOP_LOGPROBS + (size_t)k;
    const fm__u64 beyond = fm__place_of(INFINITY, 0);
    if (k >= FM_MAX_TOP_LOGPROBS) return;
    const bool   there = k < n && t->list[k] < beyond;
    const double d     = there ? (double)fm__distance_at(t->list[k]) : 0;
    a.top_id[at]       = there ? (int32_t)(uint32_t)t->list[k] : -1;
    a.top_logprob[at]  = there ? (float)(-d - log_z) : -INFINITY;
}

/* --- rows ----------------------------------------------------------------------------- */

/* By the first warp, for the block. */
FM_DEVICE void take_rings(fm__table *t, const fm__sample_scratch &s, int row)
{
    fm__rings all = {};
    for (int i = (int)threadIdx.x; threadIdx.x < 32 && i < s.n_part; i += 32) {
        const fm__rings *p = &s.rings[(size_t)row * (size_t)s.n_part + (size_t)i];
        all.z += p->z;
#pragma unroll
        for (int k = 0; k < FM__RINGS; k++) all.n[k] += p->n[k], all.sum[k] += p->sum[k];
    }
    if (threadIdx.x < 32) all = fm__rings_of_warp(all);
    if (threadIdx.x == 0) t->rings = all;
    __syncthreads();
}

FM_KERNEL(FM__CUT_THREADS, 1) choose_rows(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    __shared__ fm__table t;
    fm__row_begin();
    const int              row       = (int)blockIdx.x;
    const fm_cuda_sampling h         = a.how[row];
    const fm__best         found     = fm__best_of_row(s, row);
    const fm__u64          best      = found.key;
    const fm__row          x         = fm__row_of(a, row, h, best);
    const bool             is_greedy = fm__is_greedy(h), wanted = fm__wants_logprob(h);
    const int              n_top = best ? min(min(h.n_top, (int)FM_MAX_TOP_LOGPROBS), a.vocab) : 0;
    if (best && fm__needs_rings(h, a.vocab)) take_rings(&t, s, row);
    const double log_z = best && wanted ? log((double)t.rings.z / fm__one) : 0;
    const int    id    = best && !is_greedy ? draw(s, &t, row, x, h) : fm__id_of_key(best);
    if (threadIdx.x == 0)
        fm__answer(a, row, id,
                   best && wanted ? (float)(-(double)fm__distance_in(x, x.logits[id]) - log_z)
                   : best || (is_greedy && !wanted) ? 0.0f
                                                    : -INFINITY,
                   found.is_odd);
    if (n_top > 0) list_best(&t, x, n_top);
    if (a.any_top) report_best(a, &t, row, n_top, log_z);
}

fm_status fm__sample_choose(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                            fm_stream stream)
{
    FM_LAUNCH_EARLY(choose_rows, (unsigned)a->n_row, FM__CUT_THREADS, 0, stream, *a, *s);
    return fm_cuda_launched("choose_rows");
}
