/* SPDX-License-Identifier: Apache-2.0 */
/* One block per token: latent normed, key rotated, both written to the cache. */
#include "llm/kernel/cuda/rows.h"
#include "llm/kernel/cuda/rows_block.cuh"

FM_DEVICE void norm_latent(const fm_cuda_store_kv_args &a, float *value, const float *ckv,
                           float *part)
{
    float sum = 0;
    for (int i = (int)threadIdx.x; i < a.kv_lora; i += FM__ROW_THREADS) sum += ckv[i] * ckv[i];
    const float s = 1.0f / sqrtf(fm__block_sum(sum, part) / (float)a.kv_lora + a.eps);
    for (int i = (int)threadIdx.x; i < a.kv_lora; i += FM__ROW_THREADS)
        value[i] = ckv[i] * s * a.norm[i];
}

FM_DEVICE void rotate_key(const fm_cuda_store_kv_args &a, float *value, const float *key, int pos)
{
    const int half = a.rope / 2;
    for (int i = (int)threadIdx.x; i < half; i += FM__ROW_THREADS) {
        const int first = a.interleaved ? 2 * i : i, second = a.interleaved ? 2 * i + 1 : i + half;
        const size_t at = (size_t)pos * (size_t)half + (size_t)i;
        const float  x = key[first], y = key[second], c = a.cos[at], s = a.sin[at];
        value[first]  = x * c - y * s;
        value[second] = x * s + y * c;
    }
}

FM_DEVICE void write_bf16(const fm_cuda_store_kv_args &a, const float *value, size_t slot)
{
    uint32_t *dst = (uint32_t *)((uint16_t *)a.cache + slot * (size_t)a.width);
    for (int i = (int)threadIdx.x; i < a.width / 2; i += FM__ROW_THREADS)
        dst[i] = fm_bf16x2_of_f32(value[2 * i], value[2 * i + 1]);
}

/* The token's own scale, so that its largest value becomes 448. */
FM_DEVICE float scale_of_token(const fm_cuda_store_kv_args &a, const float *value, float *part)
{
    float most = 0;
    for (int i = (int)threadIdx.x; i < a.width; i += FM__ROW_THREADS)
        most = fmaxf(most, fabsf(value[i]));
    most = fm__block_max(most, part);
    return most > 0 ? most / 448.0f : 1.0f;
}

FM_DEVICE void write_e4m3(const fm_cuda_store_kv_args &a, const float *value, size_t slot,
                          float *part)
{
    const float scale = a.slot_scale ? scale_of_token(a, value, part) : a.scale;
    uint16_t   *dst   = (uint16_t *)((uint8_t *)a.cache + slot * (size_t)a.width);
    for (int i = (int)threadIdx.x; i < a.width / 2; i += FM__ROW_THREADS)
        dst[i] = fm_e4m3x2_of_f32(value[2 * i] / scale, value[2 * i + 1] / scale);
    if (a.slot_scale && threadIdx.x == 0) a.slot_scale[slot] = scale;
}

FM_KERNEL(FM__ROW_THREADS) store_tokens(const fm_cuda_store_kv_args a)
{
    __shared__ float value[FM_CUDA_KV_MAX];
    __shared__ float sum_part[FM__ROW_WARPS], max_part[FM__ROW_WARPS];
    fm__row_begin();
    const int    row = (int)blockIdx.x, slot = a.slot[row], used = a.kv_lora + a.rope;
    const float *ckv = a.ckv + (size_t)row * (size_t)used;
    if (slot < 0) return;
    norm_latent(a, value, ckv, sum_part);
    rotate_key(a, value + a.kv_lora, ckv + a.kv_lora, a.pos[row]);
    for (int i = used + (int)threadIdx.x; i < a.width; i += FM__ROW_THREADS) value[i] = 0;
    __syncthreads();
    if (a.e4m3)
        write_e4m3(a, value, (size_t)slot, max_part);
    else
        write_bf16(a, value, (size_t)slot);
}

fm_status fm_cuda_store_kv(const fm_cuda_store_kv_args *a, fm_stream stream)
{
    FM_BUG_UNLESS(a->kv_lora > 0 && a->kv_lora % 2 == 0 && a->rope % 2 == 0 && a->width % 2 == 0);
    FM_BUG_UNLESS(a->kv_lora + a->rope <= a->width);
    if (a->width > FM_CUDA_KV_MAX)
        return fm_fail(FM_E_NOSUP, "a cached token of %d elements: the GPU takes at most %d",
                       a->width, FM_CUDA_KV_MAX);
    if (a->n_row == 0) return FM_OK;
    FM_LAUNCH_EARLY(store_tokens, (unsigned)a->n_row, FM__ROW_THREADS, 0, stream, *a);
    return fm_cuda_launched("store_tokens");
}
