/* SPDX-License-Identifier: Apache-2.0 */
/* A model's weights as the forward pass wants them, and the list of pieces
 * that fills them.  Shapes in comments are the whole model's; of n, a matrix
 * has the rows that weights/shard.h gives this rank, k is never divided.
 *
 *     config ──layout──> fm_weights (where each matrix lies) ──fill──> values
 *                             │
 *                             └─ pieces: "this matrix comes from these tensors"
 *
 * The layout carves one slab; run on a counting slab it is the memory plan. */
#ifndef FM_LLM_WEIGHTS_WEIGHTS_H
#define FM_LLM_WEIGHTS_WEIGHTS_H

#include "base/number.h"
#include "base/slab.h"
#include "llm/weights/config.h"
#include "llm/weights/shard.h"

/* How the values of a matrix lie:
 *   panels  of 32 outputs, for the CPU (kernel/gemm/gemm.h)
 *   rows    [n][k], for the GPU; all experts of a layer are one array, kv_b is
 *           kept whole and k_up, v_up point into it, k_up_t is empty */
typedef enum { FM_PACK_PANELS, FM_PACK_ROWS } fm_packing;

/* y[T,n] = x[T,k] w[n,k]^T */
typedef struct {
    int      n, k;
    fm_dtype dtype;  /* BF16, FP8, INT4 (panels only), or F32 in the reference arithmetic */
    void    *panels; /* [ceil(n/32)] panels, or rows */
    float   *scale;  /* FP8, else NULL.  Panels: [ceil(n/32)][ceil(k/128)][2].  Rows:
                      * [ceil((scale_row0+n)/128)][ceil(k/128)]; of gate_up, those of gate, then
                      * of up */
    int scale_row0; /* rows: of the tensor's 128 that share the first scales, those before ours */
} fm_matrix;

typedef struct {
    float    *norm;   /* [D] input_layernorm */
    fm_matrix q_down; /* [q_lora, D]; n = 0 without q_lora */
    float    *q_norm; /* [q_lora] */
    fm_matrix q_up;   /* [H*(nope+rope), q_lora or D] */
    fm_matrix kv_down; /* [kv_lora+rope, D] */
    float    *kv_norm; /* [kv_lora] */
    fm_matrix *k_up;   /* [H] of [nope, kv_lora]: expanded keys */
    fm_matrix *k_up_t; /* [H] of [kv_lora, nope]: carries a query into the latent space */
    fm_matrix *v_up;   /* [H] of [v_dim, kv_lora]: values, both forms */
    fm_matrix out;     /* [D, H*v_dim] */
} fm_attn_weights;

/* down(silu(gate x) * up x).  Gate and up share panels: outputs 0..15 of a
 * panel are gate rows, 16..31 the up rows of the same 16 channels. */
typedef struct {
    int       inter;   /* I of the whole model, a multiple of 32 */
    fm_matrix gate_up; /* [2I, D], interleaved */
    fm_matrix down;    /* [D, I] */
} fm_mlp_weights;

typedef struct {
    float         *norm;     /* [D] post_attention_layernorm */
    int            is_moe;
    fm_mlp_weights mlp;      /* dense layer, or the shared expert (inter = 0: none) */
    fm_matrix      router;   /* [E, D] */
    float         *bias;     /* [E] e_score_correction_bias; NULL unless noaux_tc */
    fm_mlp_weights *expert;  /* [E]; those of other ranks are empty; this rank's lie in slot order */
} fm_ffn_weights;

typedef struct {
    fm_attn_weights attn;
    fm_ffn_weights  ffn;
} fm_layer_weights;

/* An MTP layer, for speculation: u = eh_proj [enorm(embed); hnorm(h)].  The two halves of eh_proj
 * are matrices of their own, so that no row of twice the width is needed. */
typedef struct {
    float           *enorm, *hnorm, *norm; /* [D] */
    fm_matrix        of_embed;             /* [D, D] columns 0 .. D-1, on every rank whole */
    fm_matrix        of_state;             /* [D, D] the others */
    fm_layer_weights layer;
} fm_mtp_weights;

typedef struct {
    const fm_model_config *config; /* borrowed */
    fm_packing        packing;
    fm_shard          shard;   /* its placement is there where the model has experts */
    fm_placement     *even;    /* that placement, where the caller gave none */
    fm_dtype          act;     /* FM_BF16, or FM_F32 in the reference arithmetic */
    int               n_head;  /* this rank's */
    int               n_layer; /* this rank's */
    void             *embed;   /* [V, D] rows of type act; NULL: another rank's.  Where there is an
                                * MTP layer it is there, too, for the drafts */
    fm_layer_weights *layer;   /* [n_layer] */
    float            *norm;    /* [D] */
    fm_matrix         head;    /* [V, D]; n = 0: another rank's */
    fm_mtp_weights   *mtp;   /* [n_mtp] */
    int               n_mtp;

    struct fm_piece *piece;  /* [n_piece] what fills it */
    int              n_piece, cap_piece;
} fm_weights;

/* One thing to fill.  A matrix piece reads rows [row0, row0+n) and columns
 * [col0, col0+k) of its tensor. */
typedef enum {
    FM_PIECE_VECTOR,   /* f32 [n] <- tensor[n] */
    FM_PIECE_TABLE,    /* rows of type act <- tensor [n, k] */
    FM_PIECE_MATRIX,   /* panels <- tensor [n, k] */
    FM_PIECE_GATE_UP,  /* interleaved panels <- tensor (gate) and tensor2 (up) [n, k] */
    FM_PIECE_KV_B,     /* k_up, k_up_t, v_up of every head <- kv_b_proj */
} fm_piece_kind;

typedef struct fm_piece {
    fm_piece_kind    kind;
    char             tensor[112], tensor2[112]; /* full names, ".weight" included */
    int64_t          rows, cols;                /* of the whole tensor */
    int64_t          row0, n, col0, k;          /* this rank's part */
    float           *vector;
    void            *table;
    fm_matrix       *matrix;
    fm_attn_weights *attn;
} fm_piece;

/* Which type a linear weight is kept in; asked once per matrix.  `ctx` is the
 * caller's. */
typedef fm_dtype fm_dtype_of_fn(void *ctx, const char *tensor);

typedef struct {
    const fm_shard *shard; /* NULL: the whole model */
    fm_packing      packing;
    fm_dtype        act;
    int             n_mtp; /* MTP layers to lay out and load, for who drafts with them; at most what
                            * the checkpoint has (fm_source_mtp_layers) */
    fm_dtype_of_fn *dtype_of;
    void           *ctx;
} fm_weights_want;

/* Builds the whole structure.  The small arrays (layers, pieces, heads'
 * matrices) are on the heap and owned by *w; every value lies in `slab`. */
fm_status fm_weights_layout(fm_weights *w, const fm_model_config *config,
                            const fm_weights_want *want, fm_slab *slab);
void      fm_weights_fini(fm_weights *w); /* {0} is fine; the slab is the caller's */

#endif
