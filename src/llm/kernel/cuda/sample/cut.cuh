/* SPDX-License-Identifier: Apache-2.0 */
/* Where top-k and top-p cut a row, by one block.
 *
 * If the tokens of a ring in which the order is cut are few, they are gathered
 * and sorted, and the place is found among these.  Otherwise distances go into
 * bins of 1/32, counted and weighed, and the same is done with the bin in which
 * the order is cut.  Only where more tokens than the list takes are that near to
 * each other (they are mostly equal then) the bits of the distances are searched,
 * as on the CPU.  Counts and sums are integers: the order of the atomics does not
 * matter. */
#ifndef FM_LLM_KERNEL_CUDA_SAMPLE_CUT_CUH
#define FM_LLM_KERNEL_CUDA_SAMPLE_CUT_CUH

#include "llm/kernel/cuda/sample/sample.cuh"

enum {
    FM__CUT_THREADS = 1024,
    FM__CUT_WARPS   = FM__CUT_THREADS / 32,
    FM__BINS        = 2 * FM__CUT_THREADS,
    FM__LIST        = 2 * FM__CUT_THREADS,
};

typedef struct {
    int     n;
    fm__u64 sum;
} fm__tally;

typedef struct {
    uint32_t  count[FM__BINS], low[FM__BINS], high[FM__BINS]; /* weights in two words */
    fm__u64   list[FM__LIST];                                 /* places: distance, then id */
    fm__tally part[FM__CUT_WARPS];
    fm__rings rings; /* of the row */
    int       n_list;
    int       at;     /* what a search found: its place ... */
    fm__tally before; /* ... and what lies before it */
} fm__table;

/* The target of the search: the first place where the count of tokens or the sum of weights is
 * reached. */
typedef struct {
    int    top_k;
    double limit;
} fm__wish;

FM_DEVICE bool fm__is_over(const fm__wish &w, const fm__tally &t)
{
    return t.n >= w.top_k || (double)t.sum > w.limit;
}

/* The order of the best: nearer first, then the lower id. */
FM_DEVICE fm__u64 fm__place_of(float distance, int id)
{
    return (fm__u64)fm_bits_of_f32(distance) << 32 | (uint32_t)id;
}

FM_DEVICE float fm__distance_at(fm__u64 place)
{
    return fm_f32_from_bits((uint32_t)(place >> 32));
}

/* --- sums over the block ---------------------------------------------------------- */

/* Of all threads before this one. */
FM_DEVICE fm__tally fm__tally_before(fm__table *t, fm__tally mine)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    fm__tally all = mine;
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const int     n   = __shfl_up_sync(FM_WARP, all.n, lanes);
        const fm__u64 sum = __shfl_up_sync(FM_WARP, all.sum, lanes);
        if (lane >= lanes) all.n += n, all.sum += sum;
    }
    __syncthreads();
    if (lane == 31) t->part[warp] = all;
    __syncthreads();
    for (int w = 0; w < warp; w++) all.n += t->part[w].n, all.sum += t->part[w].sum;
    all.n -= mine.n;
    all.sum -= mine.sum;
    return all;
}

/* Prefix sums of two adjacent tallies per thread, from `start` on: the place where the target is
 * first reached, and the sums before it, are written to the table. */
FM_DEVICE void fm__find(fm__table *t, const fm__tally two[2], fm__tally start, const fm__wish &w)
{
    fm__tally b = fm__tally_before(t, {two[0].n + two[1].n, two[0].sum + two[1].sum});
    b.n += start.n;
    b.sum += start.sum;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const fm__tally through = {b.n + two[j].n, b.sum + two[j].sum};
        if (!fm__is_over(w, b) && fm__is_over(w, through)) {
            t->at     = 2 * (int)threadIdx.x + j;
            t->before = b;
        }
        b = through;
    }
    __syncthreads();
}

/* --- bins --------------------------------------------------------------------------- */

FM_DEVICE int fm__bin_of(float distance)
{
    return distance < FM__BINS / 32 ? (int)(distance * 32) : FM__BINS - 1;
}

FM_DEVICE void fm__clear_bins(fm__table *t)
{
    __syncthreads();
    for (int i = (int)threadIdx.x; i < FM__BINS; i += FM__CUT_THREADS)
        t->count[i] = 0, t->low[i] = 0, t->high[i] = 0;
    __syncthreads();
}

FM_DEVICE void fm__add_to_bin(fm__table *t, int bin, fm__u64 weight)
{
    const uint32_t low = (uint32_t)weight, had = weight ? atomicAdd(&t->low[bin], low) : 0;
    const uint32_t high = (uint32_t)(weight >> 32) + (had + low < had);
    if (high) atomicAdd(&t->high[bin], high);
    atomicAdd(&t->count[bin], 1u);
}

/* A logit below this is farther than `end`; nearly all of them are told by it. */
FM_DEVICE float fm__least_logit(const fm__row &r, float end)
{
    if (!(end < INFINITY && r.most < INFINITY)) return -INFINITY;
    return r.most - end * r.temperature * (1 + 1e-5f) - fabsf(r.most) * 1e-5f;
}

/* Tokens nearer than `end`, or all. */
FM_DEVICE void fm__fill_bins(fm__table *t, const fm__row &r, float end)
{
    const float least = fm__least_logit(r, end);
    fm__clear_bins(t);
    for (int i = 4 * (int)threadIdx.x; i < r.vocab; i += 4 * FM__CUT_THREADS) {
        const float4 v    = fm__logits4(r.logits, i, r.vocab);
        const float  x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (x[j] < least || i + j >= r.vocab) continue;
            const float d = fm__distance_in(r, x[j]);
            fm__add_to_bin(t, fm__bin_of(d), fm__fixed(fm__weight(d)));
        }
    }
    __syncthreads();
}

FM_DEVICE void fm__find_bin(fm__table *t, fm__tally start, const fm__wish &w)
{
    fm__tally two[2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const int b = 2 * (int)threadIdx.x + j;
        two[j]      = {(int)t->count[b], (fm__u64)t->high[b] << 32 | t->low[b]};
    }
    fm__find(t, two, start, w);
}

/* --- the list ------------------------------------------------------------------------ */

/* Tokens with from <= distance < end, or all others if that is +inf, in any order;
 * there are at most FM__LIST. */
FM_DEVICE void fm__gather(fm__table *t, const fm__row &r, float from, float end)
{
    const float least = fm__least_logit(r, end);
    __syncthreads();
    if (threadIdx.x == 0) t->n_list = 0;
    __syncthreads();
    for (int i = 4 * (int)threadIdx.x; i < r.vocab; i += 4 * FM__CUT_THREADS) {
        const float4 v    = fm__logits4(r.logits, i, r.vocab);
        const float  x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (x[j] < least || i + j >= r.vocab) continue;
            const float d = fm__distance_in(r, x[j]);
            if (d < from || (d >= end && end < INFINITY)) continue;
            t->list[atomicAdd(&t->n_list, 1)] = fm__place_of(d, i + j);
        }
    }
    __syncthreads();
}

/* Ascending, by merging bitonic sequences. */
FM_DEVICE void fm__sort_list(fm__table *t)
{
    int size = 2;
    while (size < t->n_list) size *= 2;
    for (int i = t->n_list + (int)threadIdx.x; i < size; i += FM__CUT_THREADS) t->list[i] = ~0ull;
    __syncthreads();
    for (int run = 2; run <= size; run *= 2)
        for (int step = run / 2; step; step /= 2) {
            const int me = (int)threadIdx.x, i = (me & ~(step - 1)) * 2 | (me & (step - 1));
            if (i < size) {
                const fm__u64 a = t->list[i], b = t->list[i + step];
                if ((a > b) == !(i & run)) t->list[i] = b, t->list[i + step] = a;
            }
            __syncthreads();
        }
}

FM_DEVICE void fm__find_in_list(fm__table *t, fm__tally start, const fm__wish &w)
{
    fm__tally two[2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const int i = 2 * (int)threadIdx.x + j;
        two[j]      = {0, 0};
        if (i < t->n_list) two[j] = {1, fm__fixed(fm__weight(fm__distance_at(t->list[i])))};
    }
    fm__find(t, two, start, w);
}

/* --- bits ----------------------------------------------------------------------------- */

/* Bins of the distances that begin with `prefix`, by their next `width` bits. */
FM_DEVICE void fm__bin_bits(fm__table *t, const fm__row &r, uint32_t prefix, int shift, int width)
{
    fm__clear_bins(t);
    for (int i = (int)threadIdx.x; i < r.vocab; i += FM__CUT_THREADS) {
        const float    d   = fm__distance_in(r, r.logits[i]);
        const uint32_t key = fm_bits_of_f32(d);
        if (key >> (shift + width) == prefix)
            fm__add_to_bin(t, (int)(key >> shift & ((1u << width) - 1)), fm__fixed(fm__weight(d)));
    }
    __syncthreads();
}

/* How many of n tokens with the same weight stay; the first always does. */
FM_DEVICE int fm__kept_of_tie(const fm__tally &before, int n, double weight, const fm__wish &w)
{
    int keep = min(n, w.top_k - before.n);
    if (weight > 0) {
        const double fit = floor((w.limit - (double)before.sum) / weight) + 1;
        if (fit < keep) keep = (int)fit;
    }
    return keep > 1 ? keep : 1;
}

/* The id of the keep-th token at distance d. */
FM_DEVICE int fm__nth_at(fm__table *t, const fm__row &r, float d, int keep)
{
    for (int base = 0; base < r.vocab; base += FM__CUT_THREADS) {
        const int       i      = base + (int)threadIdx.x;
        const fm__tally mine   = {i < r.vocab && fm__distance_in(r, r.logits[i]) == d, 0};
        const fm__tally before = fm__tally_before(t, mine);
        if (threadIdx.x == 0) t->at = -1;
        if (threadIdx.x == FM__CUT_THREADS - 1) t->before.n = before.n + mine.n;
        __syncthreads();
        if (mine.n && before.n == keep - 1) t->at = i;
        __syncthreads();
        if (t->before.n >= keep) return t->at;
        keep -= t->before.n;
    }
    return r.vocab - 1;
}

FM_DEVICE fm__cut fm__cut_by_bits(fm__table *t, const fm__row &r, const fm__wish &w)
{
    uint32_t  key    = 0;
    fm__tally before = {0, 0};
    for (int shift = 20; shift >= 0; shift -= 10) {
        const int width = shift == 20 ? 11 : 10;
        fm__bin_bits(t, r, key, shift, width);
        fm__find_bin(t, before, w);
        before = t->before;
        key    = key << width | (uint32_t)t->at;
    }
    const float d = fm_f32_from_bits(key);
    const int   keep =
        fm__kept_of_tie(before, (int)t->count[t->at], (double)fm__fixed(fm__weight(d)), w);
    return {d, fm__nth_at(t, r, d, keep)};
}

/* --- the cut ---------------------------------------------------------------------------- */

FM_DEVICE fm__cut fm__cut_in_list(fm__table *t, fm__tally before, const fm__wish &w)
{
    fm__sort_list(t);
    fm__find_in_list(t, before, w);
    const fm__u64 last = t->list[t->at];
    return {fm__distance_at(last), (int)(uint32_t)last};
}

FM_DEVICE fm__cut fm__cut_by_bins(fm__table *t, const fm__row &r, const fm__wish &w, float end,
                                  int *n_held)
{
    fm__fill_bins(t, r, end);
    fm__find_bin(t, {0, 0}, w);
    const int       bin = t->at, n = (int)t->count[bin];
    const fm__tally before = t->before;
    const bool      whole  = before.n + n <= FM__LIST;
    if (n > FM__LIST) return fm__cut_by_bits(t, r, w);
    fm__gather(t, r, whole ? 0.0f : (float)bin / 32,
               bin < FM__BINS - 1 ? (float)(bin + 1) / 32 : INFINITY);
    const fm__cut cut = fm__cut_in_list(t, whole ? fm__tally{0, 0} : before, w);
    if (whole) *n_held = t->at + 1;
    return cut;
}

/* The last token kept.  With all kept ones first in the sorted list, *n_held is
 * their number, otherwise 0. */
FM_DEVICE fm__cut fm__cut_row(fm__table *t, const fm__row &r, const fm__wish &w, int *n_held)
{
    *n_held = 0;
    for (int k = 0; k < FM__RINGS; k++) {
        if (!fm__is_over(w, {t->rings.n[k], t->rings.sum[k]})) continue;
        if (t->rings.n[k] > FM__LIST) return fm__cut_by_bins(t, r, w, fm__ring(k), n_held);
        fm__gather(t, r, 0.0f, fm__ring(k));
        const fm__cut cut = fm__cut_in_list(t, {0, 0}, w);
        *n_held           = t->at + 1;
        return cut;
    }
    return fm__cut_by_bins(t, r, w, INFINITY, n_held);
}

#endif
