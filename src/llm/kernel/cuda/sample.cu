/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/sample.h"

#include "base/slab.h"
#include "llm/kernel/cuda/sample.cuh"

/* --- within a block --------------------------------------------------------- */

FM_DEVICE fm__u64 block_max(fm__u64 x)
{
    __shared__ fm__u64 part[FM__ROW_WARPS];
    for (int lanes = 16; lanes; lanes /= 2) x = max(x, __shfl_xor_sync(FM_WARP, x, lanes));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    fm__u64 most = part[0];
    for (int w = 1; w < FM__ROW_WARPS; w++) most = max(most, part[w]);
    return most;
}

FM_DEVICE fm__u64 block_sum(fm__u64 x)
{
    __shared__ fm__u64 part[FM__ROW_WARPS];
    for (int lanes = 16; lanes; lanes /= 2) x += __shfl_xor_sync(FM_WARP, x, lanes);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    fm__u64 sum = 0;
    for (int w = 0; w < FM__ROW_WARPS; w++) sum += part[w];
    return sum;
}

typedef struct {
    double t;
    int    id;
} runner;

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

/* --- stages ----------------------------------------------------------------- */

FM_KERNEL(FM__ROW_THREADS) edit_logits(const fm_cuda_sample_args a)
{
    fm__row_begin();
    const int i = (int)blockIdx.x * FM__ROW_THREADS + (int)threadIdx.x;
    if (i >= a.max_edit || i >= *a.n_edit) return;
    const fm_cuda_logit_edit e = a.edit[i];
    float *logit = a.logits + (size_t)e.row * (size_t)a.vocab + e.id, x = *logit - e.less;
    x      = x < 0 ? x * e.penalty : x / e.penalty;
    *logit = (e.forbid ? -INFINITY : x) + e.bias;
}

FM_KERNEL(FM__ROW_THREADS) find_best(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    fm__row_begin();
    const int    row = (int)blockIdx.y, end = min(((int)blockIdx.x + 1) * FM__PART, a.vocab);
    const float *x    = a.logits + (size_t)row * (size_t)a.vocab;
    fm__u64      best = 0;
    for (int i = (int)blockIdx.x * FM__PART + (int)threadIdx.x; i < end; i += FM__ROW_THREADS)
        best = max(best, fm__logit_key(x[i], i));
    best = block_max(best);
    if (threadIdx.x) return;
    s.best[(size_t)row * (size_t)s.n_part + blockIdx.x] = best;
    if (blockIdx.x == 0) s.z[row] = 0;
}

/* Logits become distances; a logit of +inf leaves no probability to finite ones. */
FM_KERNEL(FM__ROW_THREADS) measure(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    fm__row_begin();
    const int row = (int)blockIdx.y, end = min(((int)blockIdx.x + 1) * FM__PART, a.vocab);
    const fm_cuda_sampling h   = a.how[row];
    const fm__u64          key = fm__best_of_row(s, row);
    if (!key || (fm__is_greedy(h) && !fm__wants_logprob(h))) return;
    const float most = fm__logit_of_key(key), temperature = fm__is_greedy(h) ? 1.0f : h.temperature;
    float      *x   = a.logits + (size_t)row * (size_t)a.vocab;
    fm__u64     sum = 0;
    for (int i = (int)blockIdx.x * FM__PART + (int)threadIdx.x; i < end; i += FM__ROW_THREADS) {
        const float d = most < INFINITY    ? fm__distance(x[i], most, temperature)
                        : x[i] == INFINITY ? 0.0f
                                           : INFINITY;
        x[i]          = d;
        sum += fm__fixed(fm__weight(d));
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(&s.z[row], sum); /* integers: any order gives the same */
    if (threadIdx.x == 0 && blockIdx.x == 0) s.cut[row] = {INFINITY, INT32_MAX};
}

/* The smallest -log(u)/w among the tokens that are kept. */
FM_KERNEL(FM__ROW_THREADS) race(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    __shared__ runner part[FM__ROW_WARPS];
    fm__row_begin();
    const int row = (int)blockIdx.y, end = min(((int)blockIdx.x + 1) * FM__PART, a.vocab);
    const fm_cuda_sampling h = a.how[row];
    if (fm__is_greedy(h) || !fm__best_of_row(s, row)) return;
    const float   *distance = a.logits + (size_t)row * (size_t)a.vocab;
    const fm__cut  cut      = s.cut[row];
    const uint64_t stream   = fm__stream(h.seed, h.position);
    runner         best     = {1.7976931348623157e308, INT32_MAX};
    for (int i = (int)blockIdx.x * FM__PART + (int)threadIdx.x; i < end; i += FM__ROW_THREADS) {
        const float d = distance[i], weight = fm__weight(d);
        if (weight < h.min_p || d > cut.distance || (d == cut.distance && i > cut.id)) continue;
        const double u = fm__uniform(stream, i), w = (double)weight;
        if ((1 - u) * (1 - 0x1p-40) >= best.t * w) continue; /* -log u >= 1 - u: it has lost */
        const double t = -log(u) / w;
        if (t < best.t) best = {t, i};
    }
    best = first_of_warp(best);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = best;
    __syncthreads();
    if (threadIdx.x) return;
    for (int w = 1; w < FM__ROW_WARPS; w++) best = first_of(best, part[w]);
    s.race_t[(size_t)row * (size_t)s.n_part + blockIdx.x]  = best.t;
    s.race_id[(size_t)row * (size_t)s.n_part + blockIdx.x] = best.id;
}

FM_DEVICE int drawn(const fm__sample_scratch &s, int row)
{
    const size_t at   = (size_t)row * (size_t)s.n_part;
    runner       best = {s.race_t[at], s.race_id[at]};
    for (int i = 1; i < s.n_part; i++)
        best = first_of(best, {s.race_t[at + (size_t)i], s.race_id[at + (size_t)i]});
    return best.id == INT32_MAX ? 0 : best.id;
}

/* One thread per row. */
FM_KERNEL(FM__ROW_THREADS) finish(const fm_cuda_sample_args a, const fm__sample_scratch s)
{
    fm__row_begin();
    const int row = (int)blockIdx.x * FM__ROW_THREADS + (int)threadIdx.x;
    if (row >= a.n_row) return;
    const fm_cuda_sampling h     = a.how[row];
    const fm__u64          key   = fm__best_of_row(s, row);
    const bool             draws = key && !fm__is_greedy(h), wanted = fm__wants_logprob(h);
    const int              id      = draws ? drawn(s, row) : fm__id_of_key(key);
    float                  logprob = key || (fm__is_greedy(h) && !wanted) ? 0.0f : -INFINITY;
    if (key && wanted) {
        const double d = (double)a.logits[(size_t)row * (size_t)a.vocab + (size_t)id];
        logprob        = (float)(-d - log((double)s.z[row] / fm__one));
    }
    a.id[row]      = id;
    a.logprob[row] = logprob;
}

/* --- host ------------------------------------------------------------------- */

static fm__sample_scratch carve(fm_slab *slab, int n_row, int vocab)
{
    fm__sample_scratch s;
    s.n_part           = (vocab + FM__PART - 1) / FM__PART;
    const size_t parts = (size_t)n_row * (size_t)s.n_part;
    s.best             = (fm__u64 *)fm_slab_take(slab, parts * sizeof *s.best);
    s.z                = (fm__u64 *)fm_slab_take(slab, (size_t)n_row * sizeof *s.z);
    s.cut              = (fm__cut *)fm_slab_take(slab, (size_t)n_row * sizeof *s.cut);
    s.race_t           = (double *)fm_slab_take(slab, parts * sizeof *s.race_t);
    s.race_id          = (int32_t *)fm_slab_take(slab, parts * sizeof *s.race_id);
    return s;
}

size_t fm_cuda_sample_bytes(int n_row, int vocab)
{
    fm_slab count = {};
    (void)carve(&count, n_row, vocab);
    return count.used;
}

static fm_status draw_rows(const fm_cuda_sample_args *a, const fm__sample_scratch &s, dim3 parts,
                           fm_stream stream)
{
    FM_LAUNCH_EARLY(measure, parts, FM__ROW_THREADS, 0, stream, *a, s);
    FM_TRY(fm_cuda_launched("measure"));
    FM_TRY(fm__sample_cut(a, &s, stream));
    FM_LAUNCH_EARLY(race, parts, FM__ROW_THREADS, 0, stream, *a, s);
    FM_TRY(fm_cuda_launched("race"));
    return a->any_top ? fm__sample_top(a, &s, stream) : FM_OK;
}

fm_status fm_cuda_sample(const fm_cuda_sample_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->vocab > 0 && a->n_row >= 0);
    if (a->vocab > FM_CUDA_MAX_VOCAB)
        return fm_fail(FM_E_NOSUP, "a vocabulary of %d: the GPU samples from at most %d", a->vocab,
                       FM_CUDA_MAX_VOCAB);
    if (a->n_row == 0) return FM_OK;
    fm_slab slab               = {(char *)a->scratch, fm_cuda_sample_bytes(a->n_row, a->vocab), 0};
    const fm__sample_scratch s = carve(&slab, a->n_row, a->vocab);
    const dim3               parts((unsigned)s.n_part, (unsigned)a->n_row);
    if (a->edit && a->max_edit > 0) {
        FM_LAUNCH_EARLY(edit_logits, fm__row_blocks(a->max_edit), FM__ROW_THREADS, 0, stream, *a);
        FM_TRY(fm_cuda_launched("edit_logits"));
    }
    FM_LAUNCH_EARLY(find_best, parts, FM__ROW_THREADS, 0, stream, *a, s);
    FM_TRY(fm_cuda_launched("find_best"));
    if (!a->only_greedy) FM_TRY(draw_rows(a, s, parts, stream));
    FM_LAUNCH_EARLY(finish, fm__row_blocks(a->n_row), FM__ROW_THREADS, 0, stream, *a, s);
    return fm_cuda_launched("finish");
}
