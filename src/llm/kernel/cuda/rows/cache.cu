/* SPDX-License-Identifier: Apache-2.0 */
/* One warp per token: latent normed, key rotated, both written to the cache.
 * A lane has the pairs of columns 2(l + 32i), in registers from first to last. */
#include "llm/kernel/cuda/rows/rope.cuh"

enum { NARROW = 9 }; /* pairs of a lane: 576 columns */

/* Columns `col`, col + 1 of the rotated key, which are `pair` before. */
FM_DEVICE float2 rotated_key(const fm_cuda_store_kv_args &a, const float *key, float2 pair, int pos,
                            int col)
{
    const int    half = a.rope / 2;
    const size_t at   = (size_t)pos * (size_t)half;
    if (a.interleaved) {
        const float c = a.cos[at + (size_t)(col / 2)], s = a.sin[at + (size_t)(col / 2)];
        return make_float2(pair.x * c - pair.y * s, pair.x * s + pair.y * c);
    }
    float v[2];
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const int   i = (col + j) % half;
        const float x = key[i], y = key[i + half], c = a.cos[at + (size_t)i],
                    s = a.sin[at + (size_t)i];
        v[j]          = col + j < half ? x * c - y * s : x * s + y * c;
    }
    return make_float2(v[0], v[1]);
}

template <int V>
FM_DEVICE void write_bf16(const fm_cuda_store_kv_args &a, const float2 v[V], size_t slot, int lane)
{
    uint32_t *dst = (uint32_t *)((uint16_t *)a.cache + slot * (size_t)a.width);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (2 * (lane + 32 * i) < a.width) dst[lane + 32 * i] = fm_bf16x2_of_f32(v[i].x, v[i].y);
}

/* The token's own scale, so that its largest value becomes 448. */
template <int V> FM_DEVICE float scale_of_token(const float2 v[V])
{
    float most = 0;
#pragma unroll
    for (int i = 0; i < V; i++) most = fmaxf(most, fmaxf(fabsf(v[i].x), fabsf(v[i].y)));
    most = fm_warp_max(most);
    return most > 0 ? most / 448.0f : 1.0f;
}

template <int V>
FM_DEVICE void write_e4m3(const fm_cuda_store_kv_args &a, const float2 v[V], size_t slot, int lane)
{
    const float scale = a.slot_scale ? scale_of_token<V>(v) : a.scale;
    uint16_t   *dst   = (uint16_t *)((uint8_t *)a.cache + slot * (size_t)a.width);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (2 * (lane + 32 * i) < a.width)
            dst[lane + 32 * i] = fm_e4m3x2_of_f32(v[i].x / scale, v[i].y / scale);
    if (a.slot_scale && lane == 0) a.slot_scale[slot] = scale;
}

/* What is known before the kernel waits: the token's place, and the weights of the lane's columns. */
template <int V> struct token_place {
    int    slot, pos;
    float2 norm[V];
};

template <int V>
FM_DEVICE token_place<V> place_of_token(const fm_cuda_store_kv_args &a, int row, int lane)
{
    token_place<V> p;
    p.slot = row < a.n_row ? a.slot[row] : -1;
    p.pos  = row < a.n_row ? a.pos[row] : 0;
#pragma unroll
    for (int i = 0; i < V; i++) {
        const int col = 2 * (lane + 32 * i);
        p.norm[i]     = make_float2(0, 0);
        if (col < a.kv_lora) p.norm[i] = *(const float2 *)(a.norm + col);
    }
    return p;
}

template <int V>
FM_DEVICE void store_token(const fm_cuda_store_kv_args &a, int row, const token_place<V> &to, int lane)
{
    const int    used = a.kv_lora + a.rope;
    const float *ckv = a.ckv + (size_t)row * (size_t)used;
    float2       v[V];
    float        sum = 0;
#pragma unroll
    for (int i = 0; i < V; i++) {
        const int col = 2 * (lane + 32 * i);
        v[i]          = make_float2(0, 0);
        if (col < used) v[i] = *(const float2 *)(ckv + col);
        if (col < a.kv_lora) sum += v[i].x * v[i].x + v[i].y * v[i].y;
    }
    if (to.slot < 0) return;
#pragma unroll
    for (int i = 0; i < V; i++) {
        const int col = 2 * (lane + 32 * i);
        if (col >= a.kv_lora && col < used)
            v[i] = rotated_key(a, ckv + a.kv_lora, v[i], to.pos, col - a.kv_lora);
    }
    const float s = 1.0f / sqrtf(fm_warp_sum(sum) / (float)a.kv_lora + a.eps);
#pragma unroll
    for (int i = 0; i < V; i++)
        if (2 * (lane + 32 * i) < a.kv_lora)
            v[i] = make_float2(v[i].x * s * to.norm[i].x, v[i].y * s * to.norm[i].y);
    if (a.e4m3)
        write_e4m3<V>(a, v, (size_t)to.slot, lane);
    else
        write_bf16<V>(a, v, (size_t)to.slot, lane);
}

template <int V> FM_DEVICE void store_rows(const fm_cuda_store_kv_args &a, int block)
{
    const int lane = (int)threadIdx.x % 32, row = block * FM__ROW_WARPS + (int)threadIdx.x / 32;
    const token_place<V> to = place_of_token<V>(a, row, lane);
    fm_grid_wait();
    if (row < a.n_row) store_token<V>(a, row, to, lane);
}

template <int V> FM_KERNEL(FM__ROW_THREADS) store_tokens(const fm_cuda_store_kv_args a)
{
    fm_grid_release();
    store_rows<V>(a, (int)blockIdx.x);
}

/* The first n_store thread blocks store, the others rotate. */
FM_KERNEL(FM__ROW_THREADS)
rotate_and_store(const fm_cuda_rope_args q, const fm_cuda_store_kv_args kv, int n_store)
{
    const int block = (int)blockIdx.x - n_store;
    fm_grid_release();
    if (block < 0)
        store_rows<NARROW>(kv, (int)blockIdx.x);
    else
        fm__rotate_query<4>(q, block * FM__ROW_THREADS + (int)threadIdx.x);
}

static unsigned blocks_of(const fm_cuda_store_kv_args *a)
{
    return (unsigned)((a->n_row + FM__ROW_WARPS - 1) / FM__ROW_WARPS);
}

static void check(const fm_cuda_store_kv_args *a)
{
    FM_BUG_UNLESS(a->kv_lora > 0 && a->kv_lora % 2 == 0 && a->rope % 2 == 0 && a->width % 2 == 0);
    FM_BUG_UNLESS(a->kv_lora + a->rope <= a->width);
}

fm_status fm_cuda_store_kv(const fm_cuda_store_kv_args *a, fm_stream stream)
{
    check(a);
    if (a->width > FM_CUDA_KV_MAX)
        return fm_fail(FM_E_NOSUP, "a cached token of %d elements: the GPU takes at most %d",
                       a->width, FM_CUDA_KV_MAX);
    if (a->n_row == 0) return FM_OK;
    if (a->width <= 64 * NARROW)
        FM_LAUNCH_EARLY(store_tokens<NARROW>, blocks_of(a), FM__ROW_THREADS, 0, stream, *a);
    else
        FM_LAUNCH_EARLY(store_tokens<FM_CUDA_KV_MAX / 64>, blocks_of(a), FM__ROW_THREADS, 0,
                        stream, *a);
    return fm_cuda_launched("store_tokens");
}

fm_status fm_cuda_rope_and_store(const fm_cuda_rope_args *q, const fm_cuda_store_kv_args *kv,
                                 fm_stream stream)
{
    if (q->n_row == 0 || kv->n_row == 0 || fm__rope_pairs(q) != 4 || kv->width > 64 * NARROW) {
        FM_TRY(fm_cuda_rope(q, stream));
        return fm_cuda_store_kv(kv, stream);
    }
    fm__rope_check(q);
    check(kv);
    const unsigned n_store = blocks_of(kv);
    FM_LAUNCH_EARLY(rotate_and_store, n_store + fm__rope_blocks(q), FM__ROW_THREADS, 0, stream, *q,
                    *kv, (int)n_store);
    return fm_cuda_launched("rotate_and_store");
}
