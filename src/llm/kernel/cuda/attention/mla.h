/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-head latent attention on the GPU, in its two forms.
 *
 *   absorbed   generated rows: the query has been carried into the latent space
 *              and all heads share one key and value, the cached latent itself
 *
 *       plan ──▶ units (row, part of its keys) ──▶ (max, sum, mean) of each ──▶ merge ──▶ z
 *
 *   expanded   prompt rows: keys and values of each head are rebuilt from the
 *              latents by matrix products outside, into scratch
 *
 *       spans ──▶ tiles of 128 rows     gather latents ──▶ (k_up, v_up) ──▶ attend ──▶ o
 *
 * Keys are counted from position 0 of the sequence, in parts and blocks whose
 * length nothing but the arguments decides, and parts are merged in ascending
 * order: a row's bits do not depend on its batch mates, on how its prompt was
 * cut into chunks, or on what was found in the cache.
 *
 * Every list is a device array of fixed capacity and every count is read by the
 * kernels, so a step can be captured in a graph.  Nothing is allocated and
 * nothing is read back.  All pointers are borrowed device memory, 16-byte
 * aligned; bf16 is uint16_t.  FM_E_NOSUP: a shape no kernel takes, and which. */
#ifndef FM_LLM_KERNEL_CUDA_ATTENTION_MLA_H
#define FM_LLM_KERNEL_CUDA_ATTENTION_MLA_H

#include <stdint.h>

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FM_MLA_LATENT_KEYS = 64,   /* keys of a block in the absorbed form; a part has whole blocks */
    FM_MLA_PART_MAX    = 4096, /* longest part */
    FM_MLA_FEW_PART    = 512,  /* longest part that is divided among thread blocks (few), */
    FM_MLA_LAST_MAX    = 768,  /* and the last one of a row with its tail */
    FM_MLA_LATENT_MAX  = 512,  /* widest kv_lora */
    FM_MLA_SLICES      = 8,    /* of 64 columns in it */
    FM_MLA_WIDTH_MAX   = 576,  /* widest cached token */
    FM_MLA_TILE_ROWS   = 128,  /* rows of a tile in the expanded form */
    FM_MLA_BLOCK_KEYS  = 64,   /* keys of a block there; a pass begins and ends between blocks */
    FM_MLA_KEY_MAX     = 192,  /* widest nope + rope */
    FM_MLA_VALUE_MAX   = 128,  /* widest v_dim */
};

/* Once per process and device, before a launch: a captured stream must not. */
fm_status fm_cuda_mla_init(void);

/* The cached tokens of one layer.  The token at position p of a sequence is in
 * slot page[p / page_size] * page_size + p % page_size of its page table. */
typedef struct {
    const void    *latent;     /* [n_page*page_size, width] bf16, or e4m3 bytes */
    int            e4m3;
    float          scale;      /* e4m3: value = byte * scale, unless slot_scale is there */
    const float   *slot_scale; /* e4m3: [n_page*page_size] scale of each token, or NULL */
    int            width;      /* kv_lora + rope rounded up to 32; what is behind rope is finite */
    int            page_size;  /* any, from 1 */
    const int32_t *page;       /* [n_table, max_page] */
    int            max_page;
} fm_mla_cache;

/* ---- absorbed ---------------------------------------------------------------- */

#ifdef __CUDACC__
#define FM_MLA_INLINE static inline __host__ __device__
#else
#define FM_MLA_INLINE static inline
#endif

/* Most keys of a row's last part: it takes a short tail along, which would cost
 * a part of its own and a merge. */
FM_MLA_INLINE int fm_mla_last_max(int part)
{
    return part + part / (2 * FM_MLA_LATENT_KEYS) * FM_MLA_LATENT_KEYS;
}

/* Parts of a row that sees n_key keys. */
FM_MLA_INLINE int fm_mla_parts(int n_key, int part)
{
    const int rest = n_key - (fm_mla_last_max(part) - part); /* behind the tail */
    return n_key <= 0 ? 0 : rest <= part ? 1 : rest / part + (rest % part > 0);
}

typedef struct {
    int32_t row, part;
    int32_t n_key, table; /* of the row */
} fm_mla_unit;

/* The generated rows of a step, numbered 0 .. *n_row-1, and the plan made of
 * them once for all layers.  max_unit >= sum of fm_mla_parts(): what is beyond
 * it is not computed.
 *
 * The length of a part moves bits, so it is chosen once, not per step.  Short
 * ones divide a row among more blocks, but a row of several parts writes and
 * reads each of them in f16, with 16 heads as many bytes as 28 cached bf16
 * tokens; with 128 heads, parts of 512 keys cost nearly half as much memory
 * traffic as the keys themselves. */
typedef struct {
    int            max_row, max_unit;
    int            part;   /* keys of a part but the last: a multiple of 64, at most 4096 */
    const int32_t *n_row;  /* [1] */
    const int32_t *n_key;  /* [max_row] keys the row sees, position + 1; 0: the row is not there */
    const int32_t *table;  /* [max_row] its page table */
    int32_t       *unit0;  /* [max_row+2] out: first unit of each row; [*n_row]: their number;
                            * behind it: how many rows have several */
    fm_mla_unit   *unit;   /* [max_unit] out */
    int32_t       *done;   /* [n_done] out: zeros, by which blocks count what they have done */
    int            n_done; /* few: max_unit * FM_MLA_SLICES * (n_head / 16, rounded up), else 0 */
} fm_mla_rows;

fm_status fm_cuda_mla_plan(const fm_mla_rows *rows, fm_stream stream);

typedef struct {
    fm_mla_rows     rows;
    fm_mla_cache    cache;
    int             n_head, kv_lora;
    float           scale;    /* of q.k, before the exponential */
    const uint16_t *q;        /* [max_row, n_head, width] bf16, zeros behind rope */
    uint16_t       *part_z;   /* [max_unit, n_head, kv_lora] scratch: means of parts, in f16 */
    float          *part_sum; /* [max_unit, n_head, 2] scratch: max in powers of two, sum */
    int             few;      /* few units: each is divided among thread blocks; changes no bit;
                               * parts of at most 512 keys */
    float          *score;    /* few: [max_unit, n_head, fm_mla_last_max(part)] scratch */
    uint16_t       *z;        /* [max_row, n_head, kv_lora] bf16 out: mean of the latents */
    int             settled;  /* plan and cache may be read without waiting: their kernels had
                               * finished before the previous kernel launched this one early (as
                               * when that one is the product that made q) */
    int             n_sm;     /* multiprocessors of the device: the size of the grid, no bits */
} fm_mla_absorbed_args;

fm_status fm_cuda_mla_absorbed(const fm_mla_absorbed_args *a, fm_stream stream);

/* ---- expanded ---------------------------------------------------------------- */

/* Consecutive prompt rows of one sequence; row i sees keys 0 .. pos0+i. */
typedef struct {
    int32_t row0, n_row, pos0, table;
} fm_mla_span;

typedef struct {
    int32_t span, row; /* the tile's first row, counted in the span */
} fm_mla_tile;

/* The prompt spans of a step and one pass over their keys [key_begin, key_end).
 * One pass does if the scratch holds all keys; else passes follow each other in
 * ascending order from 0, and a state carries over (the same bits). */
typedef struct {
    int                max_span, max_tile; /* tiles: sum of n_row / 128, rounded up, of each span */
    const int32_t     *n_span;             /* [1] */
    const fm_mla_span *span;               /* [max_span] */
    int                key_begin, key_end; /* multiples of 64 */
    int32_t           *key0;   /* [max_span+1] out: scratch row of each span's first key of the
                                * pass; behind the last, how many rows there are */
    int32_t           *n_tile; /* [1] out */
    fm_mla_tile       *tile;   /* [max_tile] out, of each span the last, longest first */
} fm_mla_spans;

fm_status fm_cuda_mla_tiles(const fm_mla_spans *spans, fm_stream stream);

/* latent[key0[s] + k] = the cached token at position key_begin + k of span s, as bf16. */
typedef struct {
    fm_mla_spans spans;
    fm_mla_cache cache;
    int          max_key; /* rows of the scratch; keys beyond are not copied */
    uint16_t    *latent;  /* [max_key, width] bf16 out */
} fm_mla_gather_args;

fm_status fm_cuda_mla_gather(const fm_mla_gather_args *a, fm_stream stream);

/* o = softmax(scale q.k) v.  A key is [nope of this head | rope, one for all
 * heads]; strides are in elements, multiples of 8.  As a product kv_b * latent
 * leaves them, [max_key, n_head, nope + v_dim]:
 *     key = kv, value = kv + nope, key_stride = n_head * (nope + v_dim),
 *     head_stride = nope + v_dim, key_rope = latent + kv_lora, rope_stride = width */
typedef struct {
    fm_mla_spans    spans;
    int             n_head, nope, rope, v_dim;
    float           scale;
    const uint16_t *q;        /* [T, n_head, nope + rope] */
    const uint16_t *key;      /* [max_key] nope parts */
    const uint16_t *value;    /* [max_key] */
    const uint16_t *key_rope; /* [max_key] */
    int             key_stride, head_stride, rope_stride;
    float          *state_o;   /* [T, n_head, v_dim] scratch; NULL: one pass has all keys */
    float          *state_sum; /* [T, n_head, 5] scratch: max and the four lanes' sums */
    uint16_t       *o; /* [T, n_head, v_dim] bf16 out, of a tile in the pass with its last key */
} fm_mla_expanded_args;

fm_status fm_cuda_mla_expanded(const fm_mla_expanded_args *a, fm_stream stream);

#ifdef __cplusplus
}
#endif
#endif
