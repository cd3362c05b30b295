/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU does to one row at a time: embedding, norms, rotation, the cache
 * write, the sum of a row's experts.  src/llm/op/cpu/rows.c is the
 * definition.  The arithmetic is rounded after each operation as there; only
 * the sums of norms have an order of their own, which the width decides.
 *
 * A row's bits depend on the row alone.  Row counts are the host's bounds and
 * fix the grid; a graph's padding rows are computed like the others (but have
 * slot -1 and no experts).  All pointers are borrowed device memory, rows are
 * packed (leading dimension = width) and begin 16-byte aligned; widths are
 * multiples of 4 unless stated.  bf16 is uint16_t. */
#ifndef FM_LLM_KERNEL_CUDA_ROWS_ROWS_H
#define FM_LLM_KERNEL_CUDA_ROWS_ROWS_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* x[i] = table[token[i]] */
typedef struct {
    float          *x;     /* [n_row, width] */
    const uint16_t *table; /* [vocab, width] bf16 */
    const int32_t  *token; /* [n_row]; outside the vocabulary: zeros */
    int             n_row, width, vocab;
    const int32_t  *chosen; /* NULL, or where token t < 0 is found: chosen[-1 - t] */
} fm_cuda_embed_args;
fm_status fm_cuda_embed(const fm_cuda_embed_args *a, fm_stream stream);

/* y[i] = sum over slots, in order, of weight[i, slot] * pair_out[pair_of[i, slot]],
 * then, if asked, plus what y had.  A pair of -1 adds nothing. */
typedef struct {
    float          *y;        /* [n_row, width] */
    const uint16_t *pair_out; /* [n_pair, width] bf16 */
    const int32_t  *pair_of;  /* [n_row, top_k] */
    const float    *weight;   /* [n_row, top_k] */
    int             accumulate;
    int             n_row, top_k, width;
} fm_cuda_combine_args;
fm_status fm_cuda_combine(const fm_cuda_combine_args *a, fm_stream stream);

/* y[i] = w * x[r] / sqrt(mean(x[r]^2) + eps) with r = gather[i], or i.  If `add`
 * is there, it is the norm of x[r] + add[r], and without gather x becomes that sum.
 * With experts, add[r] is what fm_cuda_combine would make of it; it stays as it is.
 * y8 and y8_scale get y as fm_cuda_quantise makes it. */
typedef struct {
    uint16_t      *y;      /* [n_row, width] bf16 */
    float         *x;      /* [, width] */
    const float   *add;    /* [, width] or NULL */
    const int32_t *gather; /* [n_row] or NULL */
    const float   *w;      /* [width] */
    float          eps;
    int            n_row, width; /* <= FM_CUDA_NORM_MAX */
    fm_cuda_combine_args experts; /* y is `add`; top_k 0: none; width <= FM_CUDA_NORM_EXPERTS */
    uint8_t       *y8;       /* [n_row, width] e4m3, or NULL */
    float         *y8_scale; /* [n_row, width/128 up] */
} fm_cuda_rmsnorm_args;
enum { FM_CUDA_NORM_MAX = 16384, FM_CUDA_NORM_EXPERTS = 8192 };
fm_status fm_cuda_rmsnorm(const fm_cuda_rmsnorm_args *a, fm_stream stream);

/* States for drafts (op/cpu/drafts.c).  The state after row r is s = RMSNorm(x[r]; norm) in bf16;
 * y[i] = RMSNorm(state before row i; w), and row i's own goes to kept[keep[i]] unless that is
 * negative.  No place is both read and written.  Without x: kept states alone, nothing is kept. */
enum { FM_CUDA_NO_STATE = INT32_MIN };
typedef struct {
    uint16_t      *y;       /* [n_row, width] bf16 */
    const float   *x;       /* [n_row, width] or NULL */
    const float   *norm, *w; /* [width] */
    uint16_t      *kept;    /* [, width] bf16 */
    const int32_t *before;  /* [n_row] row r of x; -1 - place in kept; or FM_CUDA_NO_STATE: zeros */
    const int32_t *keep;    /* [n_row] */
    float          eps;
    int            n_row, width;
} fm_cuda_hidden_args;
fm_status fm_cuda_hidden(const fm_cuda_hidden_args *a, fm_stream stream);

/* x += y */
typedef struct {
    float       *x; /* [n_row, width] */
    const float *y;
    int          n_row, width;
} fm_cuda_add_args;
fm_status fm_cuda_add(const fm_cuda_add_args *a, fm_stream stream);

/* What follows reads pos and slot while the kernel launched before it may still run: that one has
 * not written them, but waited for who did.
 *
 * Rotates the last `rope` of each head's nope + rope columns, in place.  For the
 * first n_latent rows this also ends the query in the latent space:
 * latent[i, h, kv_lora ..) = the rotated part, then zeros. */
typedef struct {
    uint16_t      *q;         /* [n_row, n_head, nope + rope] bf16 */
    const float   *cos, *sin; /* [max_context, rope/2] */
    const int32_t *pos;       /* [n_row] */
    int            n_row, n_head, nope, rope; /* nope, rope even */
    int            interleaved; /* pairs (2i, 2i+1); otherwise (i, i + rope/2) */
    uint16_t      *latent;      /* [n_latent, n_head, width] bf16 */
    int            n_latent, kv_lora, width;
} fm_cuda_rope_args;
fm_status fm_cuda_rope(const fm_cuda_rope_args *a, fm_stream stream);

/* page[t][i] = list[begin[t] + i]; a table without pages gets -1 for its first. */
typedef struct {
    int32_t       *page;  /* [n_table, max_page] */
    const int32_t *list;  /* [begin[n_table]] */
    const int32_t *begin; /* [n_table+1] */
    int            n_table, max_page;
} fm_cuda_pages_args;
fm_status fm_cuda_pages(const fm_cuda_pages_args *a, fm_stream stream);

/* slot[i] = page[table[i]][pos[i] / page_size] * page_size + pos[i] % page_size,
 * -1 where pos[i] or the page is negative. */
typedef struct {
    int32_t       *slot;  /* [n_row] */
    const int32_t *pos;   /* [n_row] */
    const int32_t *table; /* [n_row] which page table */
    const int32_t *page;  /* [n_table, max_page] */
    int            n_row, page_size, max_page;
} fm_cuda_slots_args;
fm_status fm_cuda_slots(const fm_cuda_slots_args *a, fm_stream stream);

/* cache[slot[i]] = RMSNorm(ckv[i][0..kv_lora)) | RoPE(the rest) | zeros.
 * e4m3: byte = value / scale to nearest, at most +-448; the scale is the largest
 * magnitude of the token / 448 and goes to slot_scale, or is fixed without it. */
typedef struct {
    void          *cache;      /* [n_slot, width] bf16, or bytes */
    int            e4m3;
    float          scale;
    float         *slot_scale; /* [n_slot] or NULL */
    const float   *ckv;        /* [n_row, kv_lora + rope] */
    const float   *norm;       /* [kv_lora] */
    const float   *cos, *sin;  /* [max_context, rope/2] */
    const int32_t *pos;        /* [n_row] */
    const int32_t *slot;       /* [n_row]; negative: not written */
    float          eps;
    int            n_row, kv_lora, rope, width; /* width <= FM_CUDA_KV_MAX, all even */
    int            interleaved;
} fm_cuda_store_kv_args;
enum { FM_CUDA_KV_MAX = 2048 };
fm_status fm_cuda_store_kv(const fm_cuda_store_kv_args *a, fm_stream stream);

/* Both of the last two; in one launch for the usual widths. */
fm_status fm_cuda_rope_and_store(const fm_cuda_rope_args *q, const fm_cuda_store_kv_args *kv,
                                 fm_stream stream);

#ifdef __cplusplus
}
#endif

#endif
