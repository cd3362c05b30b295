/* SPDX-License-Identifier: Apache-2.0 */
/* Generated rows out of the batch and back into it.  A block has a row and
 * moves 16 bytes per thread at a time. */
#include "llm/kernel/cuda/mla.h"
#include "llm/kernel/cuda/ptx.cuh"

enum { THREADS = 256 };

FM_KERNEL(THREADS) take(const fm_mla_take_args a)
{
    fm_grid_wait();
    const int i = blockIdx.x;
    if (i >= *a.n_row || a.row[i] < 0) return;
    const int    own = a.nope / 8, rope = a.rope / 8, latent = a.kv_lora / 8, width = a.width / 8;
    const uint4 *q = (const uint4 *)a.q + (int64_t)a.row[i] * a.n_head * (own + rope);
    uint4       *to_own = (uint4 *)a.own + (int64_t)i * a.n_head * own;
    uint4       *to_latent = (uint4 *)a.latent + (int64_t)i * a.n_head * width;
    const int    behind = own + width - latent; /* chunks of a head that are written */
    for (int j = threadIdx.x; j < a.n_head * behind; j += THREADS) {
        const int   head = j / behind, c = j % behind;
        const uint4 x = c < own + rope ? q[head * (own + rope) + c] : make_uint4(0, 0, 0, 0);
        if (c < own) to_own[head * own + c] = x;
        else         to_latent[head * width + latent + c - own] = x;
    }
}

FM_KERNEL(THREADS) put(const fm_mla_put_args a)
{
    fm_grid_wait();
    const int i = blockIdx.x, chunks = a.width / 8;
    if (i >= *a.n_row || a.row[i] < 0) return;
    const uint4 *from = (const uint4 *)a.y + (int64_t)i * chunks;
    uint4       *to   = (uint4 *)a.o + (int64_t)a.row[i] * chunks;
    for (int c = threadIdx.x; c < chunks; c += THREADS) to[c] = from[c];
}

extern "C" fm_status fm_cuda_mla_take(const fm_mla_take_args *a, fm_stream stream)
{
    if (a->nope % 8 || a->rope % 8 || a->kv_lora % 8 || a->width % 8 ||
        a->width < a->kv_lora + a->rope)
        return fm_fail(FM_E_NOSUP, "attention: query of %d + %d into %d of %d columns", a->nope,
                       a->rope, a->kv_lora, a->width);
    if (a->max_row < 1) return FM_OK;
    FM_LAUNCH(take, a->max_row, THREADS, 0, stream, *a);
    return fm_cuda_launched("mla take");
}

extern "C" fm_status fm_cuda_mla_put(const fm_mla_put_args *a, fm_stream stream)
{
    if (a->width % 8)
        return fm_fail(FM_E_NOSUP, "attention: rows of %d; want a multiple of 8", a->width);
    if (a->max_row < 1) return FM_OK;
    FM_LAUNCH(put, a->max_row, THREADS, 0, stream, *a);
    return fm_cuda_launched("mla put");
}
