/* SPDX-License-Identifier: Apache-2.0 */
/* The expanded form: a block takes 128 rows of a prompt span and one head.
 *
 *     queries   a warp has 16 rows, in registers
 *     ring      two blocks of 64 keys and values, loaded by cp.async
 *     for each block:  S = Q K^T;  O = O * alpha + softmax(S) V     in registers
 *
 * Widths are read from the arguments, and what is missing up to the next 16 is
 * zero; expanded_wide.cu has the widths of the large models, the same bits. */
#include "llm/kernel/cuda/attention/expanded.cuh"
#include "llm/kernel/cuda/attention/mla_internal.h"

enum {
    WARPS       = FM__EXPANDED_WARPS,
    THREADS     = WARPS * 32,
    KEYS        = FM_MLA_BLOCK_KEYS,
    KEY_BYTES   = FM_MLA_KEY_MAX * 2,
    VALUE_BYTES = FM_MLA_VALUE_MAX * 2,
    STAGE_BYTES = KEYS * (KEY_BYTES + VALUE_BYTES),
    SHARED      = FM_MLA_TILE_ROWS * KEY_BYTES + 2 * STAGE_BYTES,
    KEY_STEPS   = FM_MLA_KEY_MAX / 16,
    VALUE_PAIRS = FM_MLA_VALUE_MAX / 16,
};

typedef fm__expanded_tile tile;
typedef fm__expanded_sums sums;

FM_DEVICE int round_up16(int x)
{
    return (x + 15) / 16 * 16;
}

/* In all three a warp takes four rows at a time, chunk by chunk. */
FM_DEVICE void fetch_queries(const fm_mla_expanded_args &a, const tile &t, unsigned char *to)
{
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int width = t.nope + t.rope, chunks = round_up16(width) / 8;
    for (int row = warp * 4; row < FM_MLA_TILE_ROWS; row += WARPS * 4)
        for (int j = lane; j < 4 * chunks; j += 32) {
            const int       i = row + j / chunks, c = j % chunks;
            const bool      there = i < t.n_row && c * 8 < width;
            const uint16_t *from  = a.q + (there ? fm__expanded_row(a, t, i) * width + c * 8 : 0);
            fm_cp_async16(fm__chunk(to, KEY_BYTES, i, c), from, there);
        }
}

/* Keys from two places, the head's own columns and those all heads share. */
FM_DEVICE void fetch_keys(const fm_mla_expanded_args &a, const tile &t, unsigned char *to,
                          int first)
{
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int width = t.nope + t.rope, chunks = round_up16(width) / 8;
#pragma unroll
    for (int row = warp * 4; row < KEYS; row += WARPS * 4)
        for (int j = lane; j < 4 * chunks; j += 32) {
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
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int chunks = round_up16(t.v_dim) / 8;
#pragma unroll
    for (int row = warp * 4; row < KEYS; row += WARPS * 4)
        for (int j = lane; j < 4 * chunks; j += 32) {
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

FM_DEVICE void score(float (&s)[KEYS / 2], const uint32_t q[KEY_STEPS][4], unsigned char *key,
                     int width)
{
#pragma unroll
    for (int i = 0; i < KEYS / 2; i++) s[i] = 0;
#pragma unroll
    for (int k = 0; k < KEY_STEPS; k++) {
        if (k * 16 >= width) break;
#pragma unroll
        for (int j = 0; j < KEYS / 16; j++) {
            uint32_t b[4];
            fm__load_keys16(b, key, KEY_BYTES, j * 16, k * 2);
            fm_mma_bf16_16816(s + 8 * j, q[k], b);
            fm_mma_bf16_16816(s + 8 * j + 4, q[k], b + 2);
        }
    }
}

FM_DEVICE void add_values(sums &h, const float *s, unsigned char *value, int v_dim)
{
#pragma unroll
    for (int k = 0; k < KEYS / 16; k++) {
        uint32_t p[4];
        fm__weights_of(p, s, k);
#pragma unroll
        for (int j = 0; j < VALUE_PAIRS; j++) {
            if (j * 16 >= v_dim) break;
            uint32_t v[4];
            fm__load_values(v, value, VALUE_BYTES, k * 16, j * 2);
            fm_mma_bf16_16816(h.o + 8 * j, p, v);
            fm_mma_bf16_16816(h.o + 8 * j + 4, p, v + 2);
        }
    }
}

/* One block of keys for the warp's rows; skipped if the causal mask hides all of it. */
FM_DEVICE void meet(const fm_mla_expanded_args &a, const tile &t, sums &h,
                    const uint32_t q[KEY_STEPS][4], unsigned char *block, int first)
{
    const int lane    = threadIdx.x & 31;
    const int key_pos = a.spans.key_begin + first, row_pos = t.pos0 + (threadIdx.x >> 5) * 16;
    if (key_pos > row_pos + 15) return;
    float s[KEYS / 2], alpha[2];
    score(s, q, block, t.nope + t.rope);
    if (key_pos + KEYS - 1 > row_pos) fm__mask(s, key_pos + lane % 4 * 2, row_pos + lane / 4);
    fm__weigh(s, h, alpha, a.scale * fm__log2_e);
    fm__shrink(h, alpha);
    add_values(h, s, block + KEYS * KEY_BYTES, t.v_dim);
}

FM_DEVICE void store_rows(const fm_mla_expanded_args &a, const tile &t, const sums &h)
{
    const int   lane = threadIdx.x & 31, row = (threadIdx.x >> 5) * 16 + lane / 4;
    const float f[2] = {1.0f / fm__quad_sum(h.sum[0]), 1.0f / fm__quad_sum(h.sum[1])};
    uint16_t   *o    = a.o + fm__expanded_row(a, t, row) * t.v_dim;
#pragma unroll
    for (int j = 0; j < FM_MLA_VALUE_MAX / 8; j++) {
        const int   col  = j * 8 + lane % 4 * 2;
        const uint2 both = fm__result(h, f, j);
        if (col >= t.v_dim) break;
        if (row < t.n_row) *(uint32_t *)(o + col) = both.x;
        if (row + 8 < t.n_row)
            *(uint32_t *)(o + (int64_t)8 * a.n_head * t.v_dim + col) = both.y;
    }
}

FM_DEVICE void run_tile(const fm_mla_expanded_args &a, const tile &t, unsigned char *memory)
{
    unsigned char *ring = memory + FM_MLA_TILE_ROWS * KEY_BYTES;
    uint32_t       q[KEY_STEPS][4];
    sums           h = {{}, {-INFINITY, -INFINITY}, {0, 0}};
    fetch_queries(a, t, memory);
    fetch_block(a, t, ring, 0);
    if (a.spans.key_begin > 0) fm__load_state(a, t, h);
    for (int first = 0; first < t.n_key; first += KEYS) {
        fm_cp_async_wait<0>();
        __syncthreads(); /* this block is here, and the other half has been used by all */
        fetch_block(a, t, ring, first + KEYS);
        if (first == 0)
#pragma unroll
            for (int k = 0; k < KEY_STEPS; k++)
                if (k * 16 < t.nope + t.rope)
                    fm__load_a(q[k], memory, KEY_BYTES, (threadIdx.x >> 5) * 16, k * 2);
        meet(a, t, h, q, ring + first / KEYS % 2 * STAGE_BYTES, first);
    }
    if (fm__is_last_pass(a, t)) store_rows(a, t, h);
    else if (a.state_o)         fm__store_state(a, t, h);
}

FM_KERNEL(THREADS, 1) attend_expanded(const fm_mla_expanded_args a)
{
    FM_SHARED_BYTES(memory);
    fm_grid_wait();
    if ((int)blockIdx.y >= *a.spans.n_tile) return;
    const tile t = fm__expanded_tile_of(a, a.spans.tile[blockIdx.y], blockIdx.x);
    if (t.n_key > 0) run_tile(a, t, memory); /* else an earlier pass wrote its rows */
}

static fm_status init_expanded(void)
{
    FM_CUDA(fm_allow_shared(attend_expanded, SHARED));
    return FM_OK;
}

fm_status fm__mla_expanded_any(const fm_mla_expanded_args *a, fm_stream stream)
{
    const dim3 grid((unsigned)a->n_head, (unsigned)a->spans.max_tile);
    FM_LAUNCH(attend_expanded, grid, THREADS, SHARED, stream, *a);
    return fm_cuda_launched("mla expanded");
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
    if (fm__mla_expanded_is_wide(a)) return fm__mla_expanded_wide(a, stream);
    return fm__mla_expanded_any(a, stream);
}

extern "C" fm_status fm_cuda_mla_init(void)
{
    FM_TRY(fm__mla_absorbed_init());
    FM_TRY(fm__mla_expanded_wide_init());
    return init_expanded();
}
