/* SPDX-License-Identifier: Apache-2.0 */
/* The first reading of the logits: edits and masks, the largest logit of each
 * part and, where nothing is filtered, the race.
 *
 * The token with the smallest -log(u)/w wins, with w known only when the row's
 * largest logit is.  Here runners are compared by a score in single precision,
 *
 *     log2(w/-log u) = x log2(e)/T - log2(-log u) + the same for all,
 *
 * which is off by less than fm__line_below() allows for.  A part lists the tokens
 * that may have won; the next kernel compares those exactly.  Nearly all tokens
 * lose before any logarithm, since -log u >= 1 - u. */
#include "llm/kernel/cuda/sample/sample.cuh"

enum { STEP = 4 * FM__ROW_THREADS };

FM_KERNEL(FM__ROW_THREADS) edit_logits(const fm_cuda_sample_args a)
{
    fm__row_begin();
    const int i = (int)blockIdx.x * FM__ROW_THREADS + (int)threadIdx.x;
    if (i >= a.max_edit || i >= *a.n_edit) return;
    const fm_cuda_logit_edit e = a.edit[i];
    float *logit = a.logits + (size_t)e.row * (size_t)a.vocab + e.id, x = *logit - e.less;
    x      = x < 0 ? x * e.penalty : x / e.penalty;
    *logit = (e.forbid && x - x == 0 ? -INFINITY : x) + e.bias; /* what is not finite stays to be seen */
}

/* --- a thread's share of a part ----------------------------------------------------- */

typedef struct {
    float    scale; /* log2(e)/T */
    uint64_t stream;
    float    line;         /* scores below it cannot win */
    float    best, second; /* of this thread ... */
    int      id;           /* ... and whose the best is */
} racer;

FM_DEVICE float score_of(float y, uint32_t number)
{
    const float u = ((float)number + 0.5f) * 0x1p-32f, rest = ((float)~number + 0.5f) * 0x1p-32f;
    return y - log2f(number & 0x80000000u ? -log1pf(-rest) : -logf(u));
}

FM_DEVICE void take_score(racer *r, float score, int id)
{
    if (score > r->best) {
        r->second = r->best;
        r->best   = score;
        r->id     = id;
    } else if (score > r->second) {
        r->second = score;
    }
}

/* A score that the token's own is not below, since -log u <= (1 - u)/u. */
FM_DEVICE float score_at_least(float y, uint32_t number)
{
    return y - log2f(((float)~number + 0.5f) / ((float)number + 0.5f));
}

FM_DEVICE bool may_win(const racer *r, float x, uint32_t number)
{
    const float two_less_u = fm_f32_from_bits(~number >> 9 | 0x3f800000u); /* at most */
    const float enough     = fm_exp2_fast(__fmaf_rn(x, r->scale, -r->line));
    return !(two_less_u > enough + (1.0f + 0x1p-22f));
}

/* Four tokens from i on, by whole warps. */
FM_DEVICE void run(racer *r, float4 v, int i)
{
    const float x[4] = {v.x, v.y, v.z, v.w};
    uint32_t    number[4];
    bool        may[4], any = false;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        number[j] = fm_rng_u32(r->stream, (uint64_t)(i + j));
        may[j]    = may_win(r, x[j], number[j]);
        any       = any || may[j];
    }
    if (!__any_sync(FM_WARP, any)) return;
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (may[j]) take_score(r, score_of(x[j] * r->scale, number[j]), i + j);
    r->line = fmaxf(r->line, fm__line_below(fm_warp_max(r->best)));
}

typedef struct {
    float x;
    int   id;
} largest;

FM_DEVICE void take_largest(largest *l, float x, int id)
{
    if (x > l->x) l->x = x, l->id = id;
}

FM_DEVICE void forbid(float *logits, float4 *v, int i, int vocab, uint32_t allowed)
{
    float *x[4] = {&v->x, &v->y, &v->z, &v->w};
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (allowed >> j & 1 || i + j >= vocab) continue;
        *x[j]         = -INFINITY;
        logits[i + j] = -INFINITY;
    }
}

/* What a thread reads of a row, and whether that is finite.  x * 0 is 0 for every finite
 * x and NaN for the others, so the sum stays 0 as long as all are: one multiply-add per
 * token, and a look at the sum at the end. */
typedef struct {
    float          *logits;
    const uint32_t *allowed; /* NULL: all */
    bool            forbids, odd;
    float           zeros;
} reading;

/* Is one of the tokens i .. i+3 NaN or infinite?  -inf is fine where tokens are forbidden,
 * and behind the end. */
FM_DEVICE bool is_odd(float4 v, int i, int vocab, bool forbids)
{
    const float x[4] = {v.x, v.y, v.z, v.w};
    bool        odd  = false;
#pragma unroll
    for (int j = 0; j < 4; j++)
        odd |= i + j < vocab && !(x[j] - x[j] == 0 || (forbids && x[j] < 0));
    return odd;
}

FM_DEVICE float4 take_logits(const fm_cuda_sample_args &a, reading *r, int i)
{
    float4 v = fm__logits4(r->logits, i, a.vocab);
    if (i + 3 < a.vocab && !r->forbids) {
        r->zeros = __fmaf_rn(v.x, 0, __fmaf_rn(v.y, 0, r->zeros));
        r->zeros = __fmaf_rn(v.z, 0, __fmaf_rn(v.w, 0, r->zeros));
    } else {
        r->odd |= is_odd(v, i, a.vocab, r->forbids);
    }
    if (r->allowed && i < a.vocab) forbid(r->logits, &v, i, a.vocab, r->allowed[i / 32] >> i % 32);
    return v;
}

FM_DEVICE largest read_part(const fm_cuda_sample_args &a, reading *in, int begin, int end)
{
    largest l = {-INFINITY, 0};
    for (int first = begin; first < end; first += STEP) {
        const int    i = first + 4 * (int)threadIdx.x;
        const float4 v = take_logits(a, in, i);
        take_largest(&l, v.x, i);
        take_largest(&l, v.y, i + 1);
        take_largest(&l, v.z, i + 2);
        take_largest(&l, v.w, i + 3);
    }
    return l;
}

/* One token of each thread sets a threshold for the score; then all tokens are scanned.
 * Which token has the largest logit does not matter here. */
FM_DEVICE largest race_part(const fm_cuda_sample_args &a, reading *in, int begin, int end, racer *r)
{
    __shared__ float part[FM__ROW_WARPS];
    const int        seen   = begin + 4 * (int)threadIdx.x;
    float4           v      = take_logits(a, in, seen);
    const uint32_t   number = fm_rng_u32(r->stream, (uint64_t)seen);
    const float      shown  = fm__block_max(score_at_least(v.x * r->scale, number), part);
    largest          l      = {-INFINITY, 0};
    r->line                 = fm__line_below(shown);
    for (int first = begin; first < end; first += STEP) {
        const int i = first + 4 * (int)threadIdx.x;
        if (first > begin) v = take_logits(a, in, i);
        l.x = fmaxf(l.x, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
        run(r, v, i);
    }
    return l;
}

/* --- a part ------------------------------------------------------------------------- */

FM_DEVICE fm__best best_of_block(fm__best x, fm__u64 part[FM__ROW_WARPS])
{
    x = fm__best_of_warp(x);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = fm__pack_best(x);
    __syncthreads();
    for (int w = 0; w < FM__ROW_WARPS; w++) fm__add_best(&x, part[w]);
    return x;
}

/* Who may have won the part's race. */
FM_DEVICE void list_runners(const fm__sample_scratch &s, size_t at, const racer *r)
{
    __shared__ float part[FM__ROW_WARPS];
    __shared__ int   n;
    if (threadIdx.x == 0) n = 0;
    const float best = fm__block_max(r->best, part), line = fm__line_below(best);
    if (best > -INFINITY && r->best >= line) {
        const int place = atomicAdd(&n, r->second >= line ? FM__RUNNERS + 1 : 1);
        if (place < FM__RUNNERS) s.runner[at * FM__RUNNERS + (size_t)place] = r->id;
    }
    __syncthreads();
    if (threadIdx.x) return;
    s.score[at]    = best;
    s.n_runner[at] = n;
}

FM_KERNEL(FM__ROW_THREADS)
scan_parts(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    __shared__ fm__u64 part[FM__ROW_WARPS];
    fm__row_begin();
    const int row = (int)blockIdx.y, begin = (int)blockIdx.x * s.part,
              end                  = min(begin + s.part, a.vocab);
    const fm_cuda_sampling h       = a.how[row];
    const size_t           at      = (size_t)row * (size_t)s.n_part + blockIdx.x;
    reading                in      = {a.logits + (size_t)row * (size_t)a.vocab, NULL, h.forbids != 0, false, 0};
    const bool             races   = !a.only_greedy && fm__races_at_once(h, a.vocab);
    racer                  r = {1.44269504f / h.temperature, 0, -INFINITY, -INFINITY, -INFINITY, 0};
    if (a.allowed && h.mask > 0)
        in.allowed = a.allowed + (size_t)(h.mask - 1) * (size_t)((a.vocab + 31) / 32);
    if (races) r.stream = fm__stream(h.seed, h.position);
    const largest  l    = races ? race_part(a, &in, begin, end, &r) : read_part(a, &in, begin, end);
    const fm__best mine = {fm__logit_key(l.x, l.id), in.odd || in.zeros != 0};
    const fm__best best = best_of_block(mine, part);
    if (threadIdx.x == 0) s.best[at] = fm__pack_best(best);
    if (races) list_runners(s, at, &r);
}

fm_status fm__sample_scan(const fm_cuda_sample_args *a, const fm__sample_scratch *s,
                          fm_stream stream)
{
    const dim3 parts((unsigned)s->n_part, (unsigned)a->n_row);
    if (a->edit && a->max_edit > 0) {
        FM_LAUNCH_EARLY(edit_logits, fm__row_blocks(a->max_edit), FM__ROW_THREADS, 0, stream, *a);
        FM_TRY(fm_cuda_launched("edit_logits"));
    }
    FM_LAUNCH_EARLY(scan_parts, parts, FM__ROW_THREADS, 0, stream, *a, *s);
    return fm_cuda_launched("scan_parts");
}
