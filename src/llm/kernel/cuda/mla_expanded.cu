/* SPDX-License-Identifier: Apache-2.0 */
/* The expanded form: a block takes 128 rows of a prompt span and one head.
 *
 *     queries   a warp has 16 rows, in registers
 *     ring      two blocks of 64 keys and values, brought by cp.async
 *     for each block, counted from position 0:
 *         S = Q K^T;  O = O * alpha + softmax(S) V     all in the warp's registers
 *
 * A block of which a row may see nothing multiplies its sums by 1 and adds 0,
 * whether it is computed or skipped: where tiles and passes begin moves no bit.
 *
 * FIXED: a key has 128 + 64 columns and a value 128; else they are read from
 * the arguments, and what is missing up to the next 16 is zero. */
#include "llm/kernel/cuda/mla.h"
#include "llm/kernel/cuda/mla_internal.h"
#include "llm/kernel/cuda/mla_tile.cuh"

enum {
    WARPS       = 8,
    THREADS     = WARPS * 32,
    ROWS        = FM_MLA_TILE_ROWS,
    KEYS        = FM_MLA_BLOCK_KEYS,
    KEY_BYTES   = FM_MLA_KEY_MAX * 2,
    VALUE_BYTES = FM_MLA_VALUE_MAX * 2,
    STAGE_BYTES = KEYS * (KEY_BYTES + VALUE_BYTES),
    SHARED      = ROWS * KEY_BYTES + 2 * STAGE_BYTES,
    KEY_STEPS   = FM_MLA_KEY_MAX / 16,
    VALUE_PAIRS = FM_MLA_VALUE_MAX / 16,
};

/* What a thread knows of its block's work. */
struct tile {
    int nope, rope, v_dim; /* columns */
    int head, row0, n_row; /* rows of the batch */
    int pos0;              /* position of the first row */
    int n_key;             /* keys of the pass that it may see */
    const uint16_t *key, *value, *key_rope; /* of the head, at the pass's first key */
    int             warp, lane;
};

/* What a warp has summed for its 16 rows; lane/4 is the row, and +8. */
struct sums {
    float o[2 * VALUE_PAIRS][4];
    float max[2], sum[2]; /* a lane sums its own columns */
};

FM_DEVICE int64_t row_of(const fm_mla_expanded_args &a, const tile &t, int row)
{
    return (int64_t)(t.row0 + row) * a.n_head + t.head;
}

FM_DEVICE int round_up16(int x)
{
    return (x + 15) / 16 * 16;
}

/* In all three a warp takes four rows at a time, chunk by chunk. */
FM_DEVICE void fetch_queries(const fm_mla_expanded_args &a, const tile &t, unsigned char *to)
{
    const int width = t.nope + t.rope, chunks = round_up16(width) / 8;
    for (int row = t.warp * 4; row < ROWS; row += WARPS * 4)
        for (int j = t.lane; j < 4 * chunks; j += 32) {
            const int       i = row + j / chunks, c = j % chunks;
            const bool      there = i < t.n_row && c * 8 < width;
            const uint16_t *from  = a.q + (there ? row_of(a, t, i) * width + c * 8 : 0);
            fm_cp_async16(fm__chunk(to, KEY_BYTES, i, c), from, there);
        }
}

/* Keys from two places, the head's own columns and those all heads share. */
FM_DEVICE void fetch_keys(const fm_mla_expanded_args &a, const tile &t, unsigned char *to,
                          int first)
{
    const int width = t.nope + t.rope, chunks = round_up16(width) / 8;
#pragma unroll
    for (int row = t.warp * 4; row < KEYS; row += WARPS * 4)
        for (int j = t.lane; j < 4 * chunks; j += 32) {
            const int       k = row + j / chunks, c = j % chunks;
            const bool      own = c * 8 < t.nope, there = first + k < t.n_key && c * 8 < width;
            const uint16_t *from   = own ? t.key : t.key_rope;
            const int       stride = own ? a.key_stride : a.rope_stride, col = own ? 0 : t.nope;
            const int64_t   at     = (int64_t)(first + k) * stride + c * 8 - col;
            fm_cp_async16(fm__chunk(to, KEY_BYTES, k, c), from + (there ? at : 0), there);
        }
}

FM_DEVICE void fetch_values(const fm_mla_expanded_args &a, const tile &t, unsigned char *to,
                            int first)
{
    const int chunks = round_up16(t.v_dim) / 8;
#pragma unroll
    for (int row = t.warp * 4; row < KEYS; row += WARPS * 4)
        for (int j = t.lane; j < 4 * chunks; j += 32) {
            const int     k = row + j / chunks, c = j % chunks;
            const bool    there = first + k < t.n_key && c * 8 < t.v_dim;
            const int64_t at    = (int64_t)(first + k) * a.key_stride + c * 8;
            fm_cp_async16(fm__chunk(to, VALUE_BYTES, k, c), t.value + (there ? at : 0), there);
        }
}

/* The keys and values at `first` of the pass, into their half of the ring. */
FM_DEVICE void fetch_block(const fm_mla_expanded_args &a, const tile &t, unsigned char *ring,
                           int first)
{
    if (first < t.n_key) {
        unsigned char *to = ring + first / KEYS % 2 * STAGE_BYTES;
        fetch_keys(a, t, to, first);
        fetch_values(a, t, to + KEYS * KEY_BYTES, first);
    }
    fm_cp_async_commit();
}

FM_DEVICE void score(float s[KEYS / 8][4], const uint32_t q[KEY_STEPS][4], unsigned char *key,
                     int width)
{
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[j][i] = 0;
#pragma unroll
    for (int k = 0; k < KEY_STEPS; k++) {
        if (k * 16 >= width) break;
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            uint32_t b[4];
            fm__load_keys16(b, key, KEY_BYTES, j * 16, k * 2);
            fm_mma_bf16_16816(s[2 * j], q[k], b);
            fm_mma_bf16_16816(s[2 * j + 1], q[k], b + 2);
        }
    }
}

/* Keys behind a row's own position do not exist for it. */
FM_DEVICE void mask(float s[KEYS / 8][4], int key_pos, int row_pos)
{
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (key_pos + j * 8 + (i & 1) > row_pos + (i >> 1) * 8) s[j][i] = -INFINITY;
}

/* Scores become weights; what was summed before shrinks to the new maximum. */
FM_DEVICE void weigh(float s[KEYS / 8][4], sums &h, float scale)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float max = -INFINITY;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++) max = fmaxf(max, fmaxf(s[j][2 * r], s[j][2 * r + 1]));
        max               = fmaxf(h.max[r], fm__quad_max(max));
        const float alpha = fm_exp2_fast((h.max[r] - max) * scale), offset = -max * scale;
        float sum = 0;
        h.max[r]  = max;
#pragma unroll
        for (int j = 0; j < 2 * VALUE_PAIRS; j++)
            h.o[j][2 * r] *= alpha, h.o[j][2 * r + 1] *= alpha;
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int i = 2 * r; i < 2 * r + 2; i++) {
                s[j][i] = fm_exp2_fast(fmaf(s[j][i], scale, offset));
                sum += s[j][i];
            }
        h.sum[r] = fmaf(h.sum[r], alpha, sum);
    }
}

/* An accumulator of S has the places of an operand of the next product. */
FM_DEVICE void add_values(sums &h, const float s[KEYS / 8][4], unsigned char *value, int v_dim)
{
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) {
        const float   *low = s[2 * k], *high = s[2 * k + 1];
        const uint32_t p[4] = {fm_bf16x2_of_f32(low[0], low[1]), fm_bf16x2_of_f32(low[2], low[3]),
                               fm_bf16x2_of_f32(high[0], high[1]),
                               fm_bf16x2_of_f32(high[2], high[3])};
#pragma unroll
        for (int j = 0; j < VALUE_PAIRS; j++) {
            if (j * 16 >= v_dim) break;
            uint32_t v[4];
            fm__load_values(v, value, VALUE_BYTES, k * 16, j * 2);
            fm_mma_bf16_16816(h.o[2 * j], p, v);
            fm_mma_bf16_16816(h.o[2 * j + 1], p, v + 2);
        }
    }
}

/* One block of keys meets the warp's rows, unless they all come before it. */
FM_DEVICE void meet(const fm_mla_expanded_args &a, const tile &t, sums &h,
                    const uint32_t q[KEY_STEPS][4], unsigned char *block, int first)
{
    const int key_pos = a.spans.key_begin + first, row_pos = t.pos0 + t.warp * 16;
    if (key_pos > row_pos + 15) return;
    float s[KEYS / 8][4];
    score(s, q, block, t.nope + t.rope);
    if (key_pos + KEYS - 1 > row_pos) mask(s, key_pos + t.lane % 4 * 2, row_pos + t.lane / 4);
    weigh(s, h, a.scale * fm__log2_e);
    add_values(h, s, block + KEYS * KEY_BYTES, t.v_dim);
}

/* What the pass before left, lane by lane, so that passes change no sum. */
FM_DEVICE void load_state(const fm_mla_expanded_args &a, const tile &t, sums &h)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = t.warp * 16 + t.lane / 4 + 8 * r;
        if (row >= t.n_row) continue;
        const float *sum = a.state_sum + row_of(a, t, row) * 5;
        const float *o   = a.state_o + row_of(a, t, row) * t.v_dim;
        h.max[r]         = sum[0];
        h.sum[r]         = sum[1 + t.lane % 4];
#pragma unroll
        for (int j = 0; j < 2 * VALUE_PAIRS; j++) {
            const int col = j * 8 + t.lane % 4 * 2;
            if (col >= t.v_dim) break;
            h.o[j][2 * r] = o[col], h.o[j][2 * r + 1] = o[col + 1];
        }
    }
}

FM_DEVICE void store_state(const fm_mla_expanded_args &a, const tile &t, const sums &h)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = t.warp * 16 + t.lane / 4 + 8 * r;
        if (row >= t.n_row) continue;
        float *sum = a.state_sum + row_of(a, t, row) * 5;
        float *o   = a.state_o + row_of(a, t, row) * t.v_dim;
        sum[1 + t.lane % 4] = h.sum[r];
        if (t.lane % 4 == 0) sum[0] = h.max[r];
#pragma unroll
        for (int j = 0; j < 2 * VALUE_PAIRS; j++) {
            const int col = j * 8 + t.lane % 4 * 2;
            if (col >= t.v_dim) break;
            *(float2 *)(o + col) = make_float2(h.o[j][2 * r], h.o[j][2 * r + 1]);
        }
    }
}

/* + 0 makes one zero of two: a skipped block would have done the same to -0. */
FM_DEVICE void store_rows(const fm_mla_expanded_args &a, const tile &t, const sums &h)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int   row = t.warp * 16 + t.lane / 4 + 8 * r;
        const float f   = 1.0f / fm__quad_sum(h.sum[r]);
        if (row >= t.n_row) continue;
        uint16_t *o = a.o + row_of(a, t, row) * t.v_dim;
#pragma unroll
        for (int j = 0; j < 2 * VALUE_PAIRS; j++) {
            const int col = j * 8 + t.lane % 4 * 2;
            if (col >= t.v_dim) break;
            *(uint32_t *)(o + col) =
                fm_bf16x2_of_f32(h.o[j][2 * r] * f + 0.0f, h.o[j][2 * r + 1] * f + 0.0f);
        }
    }
}

FM_DEVICE void run_tile(const fm_mla_expanded_args &a, const tile &t, unsigned char *memory)
{
    unsigned char *ring = memory + ROWS * KEY_BYTES;
    uint32_t       q[KEY_STEPS][4];
    sums           h = {{}, {-INFINITY, -INFINITY}, {0, 0}};
    fetch_queries(a, t, memory);
    fetch_block(a, t, ring, 0);
    if (a.spans.key_begin > 0) load_state(a, t, h);
    for (int first = 0; first < t.n_key; first += KEYS) {
        fm_cp_async_wait<0>();
        __syncthreads(); /* this block is here, and the other half has been used by all */
        fetch_block(a, t, ring, first + KEYS);
        if (first == 0)
#pragma unroll
            for (int k = 0; k < KEY_STEPS; k++)
                if (k * 16 < t.nope + t.rope)
                    fm__load_a(q[k], memory, KEY_BYTES, t.warp * 16, k * 2);
        meet(a, t, h, q, ring + first / KEYS % 2 * STAGE_BYTES, first);
    }
    if (t.pos0 + t.n_row <= a.spans.key_end) store_rows(a, t, h);
    else if (a.state_o)                      store_state(a, t, h);
}

template <bool FIXED> FM_KERNEL(THREADS, 1) attend_expanded(const fm_mla_expanded_args a)
{
    FM_SHARED_BYTES(memory);
    fm_grid_wait();
    if ((int)blockIdx.y >= *a.spans.n_tile) return;
    const fm_mla_tile at   = a.spans.tile[blockIdx.y];
    const fm_mla_span span = a.spans.span[at.span];
    const int64_t     key0 = a.spans.key0[at.span];
    tile              t;
    t.nope     = FIXED ? 128 : a.nope;
    t.rope     = FIXED ? 64 : a.rope;
    t.v_dim    = FIXED ? 128 : a.v_dim;
    t.head     = blockIdx.x;
    t.row0     = span.row0 + at.row;
    t.n_row    = min(span.n_row - at.row, ROWS);
    t.pos0     = span.pos0 + at.row;
    t.n_key    = min(t.pos0 + t.n_row, a.spans.key_end) - a.spans.key_begin;
    t.key      = a.key + key0 * a.key_stride + t.head * a.head_stride;
    t.value    = a.value + key0 * a.key_stride + t.head * a.head_stride;
    t.key_rope = a.key_rope + key0 * a.rope_stride;
    t.warp     = threadIdx.x >> 5;
    t.lane     = threadIdx.x & 31;
    if (t.n_key > 0) run_tile(a, t, memory); /* else an earlier pass wrote its rows */
}

fm_status fm__mla_expanded_init(void)
{
    FM_CUDA(fm_allow_shared(attend_expanded<true>, SHARED));
    FM_CUDA(fm_allow_shared(attend_expanded<false>, SHARED));
    return FM_OK;
}

static fm_status check(const fm_mla_expanded_args *a)
{
    if (a->nope % 8 || a->rope % 8 || a->v_dim % 8 || a->nope + a->rope < 8 || a->v_dim < 8 ||
        a->nope + a->rope > FM_MLA_KEY_MAX || a->v_dim > FM_MLA_VALUE_MAX)
        return fm_fail(FM_E_NOSUP,
                       "attention: head of %d + %d and %d; want multiples of 8 up to %d and %d",
                       a->nope, a->rope, a->v_dim, FM_MLA_KEY_MAX, FM_MLA_VALUE_MAX);
    if (a->key_stride % 8 || a->head_stride % 8 || a->rope_stride % 8 || !(a->scale > 0))
        return fm_fail(FM_E_NOSUP, "attention: strides %d, %d, %d or scale %g", a->key_stride,
                       a->head_stride, a->rope_stride, (double)a->scale);
    if (a->n_head < 1 || a->spans.max_tile > 65535)
        return fm_fail(FM_E_NOSUP, "attention: %d heads, %d tiles", a->n_head, a->spans.max_tile);
    if (a->spans.key_begin > 0 && !(a->state_o && a->state_sum))
        return fm_fail(FM_E_ARG, "attention: several passes need memory for their state");
    return FM_OK;
}

extern "C" fm_status fm_cuda_mla_expanded(const fm_mla_expanded_args *a, fm_stream stream)
{
    FM_TRY(check(a));
    if (a->spans.max_tile < 1) return FM_OK;
    const dim3 grid((unsigned)a->n_head, (unsigned)a->spans.max_tile);
    if (a->nope == 128 && a->rope == 64 && a->v_dim == 128)
        FM_LAUNCH(attend_expanded<true>, grid, THREADS, SHARED, stream, *a);
    else
        FM_LAUNCH(attend_expanded<false>, grid, THREADS, SHARED, stream, *a);
    return fm_cuda_launched("mla expanded");
}

extern "C" fm_status fm_cuda_mla_init(void)
{
    FM_TRY(fm__mla_absorbed_init());
    return fm__mla_expanded_init();
}
