/* SPDX-License-Identifier: Apache-2.0 */
/* Where top-k and top-p cut a row, and the best few of it; one block per row.
 *
 * The bits of a distance sort like the distance, so three histograms narrow the
 * boundary down to tokens of one and the same distance, as on the CPU.  Counts
 * and fixed-point sums are integers: the order of the atomics does not matter. */
#include "llm/kernel/cuda/sample.cuh"

enum { BUCKETS = 2048, PER_LANE = BUCKETS / 32, WARPS = FM__CUT_THREADS / 32 };

typedef struct {
    int     count[BUCKETS];
    fm__u64 sum[BUCKETS];
    int     bucket;     /* where the order is cut */
    int     n_before;   /* tokens before that bucket ... */
    fm__u64 sum_before; /* ... and their weight */
} histogram;

FM_DEVICE fm__u64 block_sum(fm__u64 x)
{
    __shared__ fm__u64 part[WARPS];
    __syncthreads();
    for (int lanes = 16; lanes; lanes /= 2) x += __shfl_xor_sync(FM_WARP, x, lanes);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    fm__u64 sum = 0;
    for (int w = 0; w < WARPS; w++) sum += part[w];
    return sum;
}

/* A distance before which the cut surely lies: farther tokens, nearly all of
 * them, then stay out of the histogram, whose atomics are slow where many meet. */
FM_DEVICE float horizon(const float *distance, int vocab, int top_k, double limit)
{
    const float at[2] = {4.0f, 12.0f};
    fm__u64     n[2] = {0, 0}, sum[2] = {0, 0};
    for (int i = (int)threadIdx.x; i < vocab; i += FM__CUT_THREADS) {
        const float   d = distance[i];
        const fm__u64 w = fm__fixed(fm__weight(d));
#pragma unroll
        for (int k = 0; k < 2; k++)
            if (d < at[k]) n[k]++, sum[k] += w;
    }
#pragma unroll
    for (int k = 0; k < 2; k++)
        if (block_sum(n[k]) >= (fm__u64)top_k || (double)block_sum(sum[k]) > limit) return at[k];
    return INFINITY;
}

/* Only distances that begin with `prefix` and are below `end` count (if that is
 * +inf, all do); the next `width` bits choose the bucket. */
FM_DEVICE void fill(histogram *h, const float *distance, int vocab, float end, uint32_t prefix,
                    int shift, int width)
{
    for (int i = (int)threadIdx.x; i < BUCKETS; i += FM__CUT_THREADS)
        h->count[i] = 0, h->sum[i] = 0;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < vocab; i += FM__CUT_THREADS) {
        const float    d   = distance[i];
        const uint32_t key = fm_bits_of_f32(d);
        if (key >> (shift + width) != prefix || (d >= end && end < INFINITY)) continue;
        const uint32_t b = key >> shift & ((1u << width) - 1);
        atomicAdd(&h->count[b], 1);
        atomicAdd(&h->sum[b], fm__fixed(fm__weight(d)));
    }
    __syncthreads();
}

/* Of one lane's buckets, given what lies before them: the first in which the
 * order is cut, or -1. */
FM_DEVICE int cut_in_lane(const histogram *h, int lane, int *n, fm__u64 *sum, int top_k,
                          double limit)
{
    for (int b = lane * PER_LANE; b < (lane + 1) * PER_LANE; b++) {
        if (*n + h->count[b] >= top_k || (double)(*sum + h->sum[b]) > limit) return b;
        *n += h->count[b];
        *sum += h->sum[b];
    }
    return -1;
}

/* By the first warp: every lane has PER_LANE buckets.  If nothing cuts the
 * order, its last bucket in use does. */
FM_DEVICE void find_boundary(histogram *h, int lane, int top_k, double limit)
{
    int     n = 0, last = -1;
    fm__u64 sum = 0;
    for (int b = lane * PER_LANE; b < (lane + 1) * PER_LANE; b++) {
        if (h->count[b]) last = b;
        n += h->count[b];
        sum += h->sum[b];
    }
    int     n_before   = h->n_before;
    fm__u64 sum_before = h->sum_before;
    for (int l = 0; l < 32; l++) {
        const int     other   = __shfl_sync(FM_WARP, n, l);
        const fm__u64 other_w = __shfl_sync(FM_WARP, sum, l);
        if (l < lane) n_before += other, sum_before += other_w;
    }
    for (int lanes = 16; lanes; lanes /= 2) last = max(last, __shfl_xor_sync(FM_WARP, last, lanes));
    const int      at   = cut_in_lane(h, lane, &n_before, &sum_before, top_k, limit);
    const unsigned cuts = __ballot_sync(FM_WARP, at >= 0);
    const bool     mine = cuts ? lane == __ffs((int)cuts) - 1 : lane == last / PER_LANE;
    if (!mine) return;
    if (at < 0) n_before -= h->count[last], sum_before -= h->sum[last]; /* it was counted, too */
    h->bucket     = at < 0 ? last : at;
    h->n_before   = n_before;
    h->sum_before = sum_before;
}

/* How many of n tokens with the same weight stay; the first always does. */
FM_DEVICE int kept_of_tie(const histogram *h, int n, double weight, int top_k, double limit)
{
    int keep = min(n, top_k - h->n_before);
    if (weight > 0) {
        const double fit = floor((limit - (double)h->sum_before) / weight) + 1;
        if (fit < keep) keep = (int)fit;
    }
    return keep > 1 ? keep : 1;
}

/* The id of the keep-th token at distance d. */
FM_DEVICE int nth_at(const float *distance, int vocab, float d, int keep)
{
    __shared__ int before[WARPS + 1], found;
    const int      warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    for (int base = 0; base < vocab; base += FM__CUT_THREADS) {
        const int      i    = base + (int)threadIdx.x;
        const unsigned here = __ballot_sync(FM_WARP, i < vocab && distance[i] == d);
        if (lane == 0) before[warp] = __popc(here);
        if (threadIdx.x == 0) found = -1;
        __syncthreads();
        int rank = __popc(here & ((1u << lane) - 1)), all = 0;
        for (int w = 0; w < WARPS; w++) {
            if (w < warp) rank += before[w];
            all += before[w];
        }
        if (here >> lane & 1 && rank == keep - 1) found = i;
        __syncthreads();
        if (all >= keep) return found;
        keep -= all;
    }
    return vocab - 1;
}

FM_KERNEL(FM__CUT_THREADS, 1) cut_rows(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    __shared__ histogram h;
    fm__row_begin();
    const int              row = (int)blockIdx.x;
    const fm_cuda_sampling how = a.how[row];
    if (!fm__is_cut(how, a.vocab) || !fm__best_of_row(s, row)) return;
    const float *distance = a.logits + (size_t)row * (size_t)a.vocab;
    const int    top_k    = how.top_k > 0 && how.top_k < a.vocab ? how.top_k : a.vocab;
    const double limit    = how.top_p < 1 ? (double)how.top_p * (double)s.z[row] : INFINITY;
    const float  end      = horizon(distance, a.vocab, top_k, limit);
    const int    shift[3] = {20, 10, 0}, width[3] = {11, 10, 10};
    uint32_t     key = 0;
    if (threadIdx.x == 0) h.n_before = 0, h.sum_before = 0;
#pragma unroll
    for (int l = 0; l < 3; l++) {
        fill(&h, distance, a.vocab, end, key, shift[l], width[l]);
        if (threadIdx.x < 32) find_boundary(&h, (int)threadIdx.x, top_k, limit);
        __syncthreads();
        key = key << width[l] | (uint32_t)h.bucket;
    }
    const float d = fm_f32_from_bits(key);
    const int   keep =
        kept_of_tie(&h, h.count[h.bucket], (double)fm__weight(d) * fm__one, top_k, limit);
    const int id = nth_at(distance, a.vocab, d, keep);
    if (threadIdx.x == 0) s.cut[row] = {d, id};
}

/* The order of report: nearer first, then the lower id. */
FM_DEVICE fm__u64 place_of(float distance, int id)
{
    return (fm__u64)fm_bits_of_f32(distance) << 32 | (uint32_t)id;
}

FM_DEVICE fm__u64 block_min(fm__u64 x)
{
    __shared__ fm__u64 part[WARPS];
    __syncthreads();
    for (int lanes = 16; lanes; lanes /= 2) x = min(x, __shfl_xor_sync(FM_WARP, x, lanes));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    fm__u64 least = part[0];
    for (int w = 1; w < WARPS; w++) least = min(least, part[w]);
    return least;
}

/* One pass over the row for each token reported. */
FM_KERNEL(FM__CUT_THREADS) report_top(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    fm__row_begin();
    const int     row = (int)blockIdx.x, n_top = min(a.how[row].n_top, (int)FM_MAX_TOP_LOGPROBS);
    const bool    any      = fm__best_of_row(s, row) != 0;
    const float  *distance = a.logits + (size_t)row * (size_t)a.vocab;
    const size_t  at       = (size_t)row * FM_MAX_TOP_LOGPROBS;
    const fm__u64 nobody   = place_of(INFINITY, 0);
    fm__u64       done     = 0; /* places below this are reported */
    for (int k = 0; k < FM_MAX_TOP_LOGPROBS; k++) {
        fm__u64 next = nobody;
        for (int i = (int)threadIdx.x; any && k < n_top && i < a.vocab; i += FM__CUT_THREADS) {
            const fm__u64 p = place_of(distance[i], i);
            if (p >= done) next = min(next, p);
        }
        next = block_min(next);
        done = next + 1;
        if (threadIdx.x) continue;
        const bool   there       = next < nobody;
        const double d           = (double)fm_f32_from_bits((uint32_t)(next >> 32));
        a.top_id[at + (size_t)k] = there ? (int32_t)(uint32_t)next : -1;
        a.top_logprob[at + (size_t)k] =
            there ? (float)(-d - log((double)s.z[row] / fm__one)) : -INFINITY;
    }
}

fm_status fm__sample_cut(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                         fm_stream stream)
{
    FM_LAUNCH_EARLY(cut_rows, (unsigned)a->n_row, FM__CUT_THREADS, 0, stream, *a, *s);
    return fm_cuda_launched("cut_rows");
}

fm_status fm__sample_top(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                         fm_stream stream)
{
    FM_LAUNCH_EARLY(report_top, (unsigned)a->n_row, FM__CUT_THREADS, 0, stream, *a, *s);
    return fm_cuda_launched("report_top");
}
