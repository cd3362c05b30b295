/* SPDX-License-Identifier: Apache-2.0 */
/* Activations: the buffers of rows that a forward pass computes in.  A model declares those it
 * uses; each back end lays them out in its workspace, and shadow mode compares them.
 *
 * Where ranks exchange a buffer, the declaration says how:
 *
 *     SENT   ──dispatch──────> RECEIVED   rows of this attention group -> of all groups
 *     PIECE  ──gather_act────> GATHERED   this rank's columns -> all columns, matrix inputs
 *     PIECE  ──gather_add───>             the same for f32: added to the residual stream
 *     LOGITS ──collect──────>             this rank's words -> rank 0
 *
 * There is at most one SENT and one PIECE of each type.  With one group RECEIVED is the SENT
 * buffer itself, and with one rank in the group GATHERED is the PIECE. */
#ifndef FM_LLM_OP_ACTIVATIONS_H
#define FM_LLM_OP_ACTIVATIONS_H

#include <stddef.h>

#include "base/slab.h"
#include "llm/weights/shard.h"

/* Matrix inputs have the run's type (bf16, or f32 in the reference arithmetic), and there may be
 * padding between their rows; the others are f32 without. */
typedef struct {
    void *data;
    int   width;
    int   stride; /* elements from row to row: the width, or more where rows are padded */
} fm_act; /* type weights->act */
typedef struct {
    float *data;
    int    width;
} fm_f32s;

/* Which experts each row goes to. */
typedef struct {
    int32_t *expert; /* [T, k] */
    float   *weight; /* [T, k] */
} fm_routing;

/* Every buffer a model may declare.  Widths with a prime are this rank's part (weights/shard.h). */
typedef struct {
    fm_f32s    x;         /* [T, D]  residual stream */
    fm_act     h;         /* [T, D]  normed input of a block */
    fm_f32s    cq;        /* [T, q_lora] */
    fm_act     cqn;       /* [T, q_lora] normed */
    fm_act     q;         /* [T, H'*(nope+rope)] */
    fm_f32s    ckv;       /* [T, kv_lora+rope] */
    fm_act     o;         /* [T, H'*v_dim] */
    fm_act     o_all;     /* [T, H*v_dim] */
    fm_f32s    y;         /* [T, D']  a block's contribution */
    fm_f32s    score;     /* [T, E] router logits */
    fm_routing route;     /* [T, k] */
    fm_act     h_all;     /* [rows of all groups, D] */
    fm_routing route_all; /* [rows of all groups, k] */
    fm_act     hl;        /* [n_out, D] normed rows that need logits */
    fm_f32s    logits;    /* [n_out, V'] */
} fm_acts;

typedef enum { FM_ACT_F32, FM_ACT_INPUT, FM_ACT_ROUTING } fm_act_type;

typedef enum {
    FM_ACT_OWN, /* rows of the pass that no other rank reads */
    FM_ACT_OUT, /* rows whose logits are wanted */
    FM_ACT_SENT,
    FM_ACT_RECEIVED,
    FM_ACT_PIECE,
    FM_ACT_GATHERED,
    FM_ACT_LOGITS,
} fm_act_use;

/* n things of `width` elements each, divided in blocks of `unit` things. */
typedef struct {
    int n_part, n, unit, width;
} fm_columns;

static inline fm_range fm_columns_part(fm_columns c, int part) /* in elements */
{
    const fm_range r = fm_share_of((fm_share){part, c.n_part}, c.n, c.unit);
    return (fm_range){r.begin * c.width, r.end * c.width};
}

typedef struct {
    const char *name;
    size_t      at; /* of its record in fm_acts */
    fm_act_type type;
    fm_act_use  use;
    int         width;   /* of a row on this rank */
    fm_columns  columns; /* PIECE: how the attention group divides them */
} fm_activation;

enum { FM_MAX_ACTIVATIONS = 16 };

typedef struct {
    fm_activation buffer[FM_MAX_ACTIVATIONS]; /* SENT before RECEIVED */
    int           n;
} fm_activations;

/* NULL: none is declared. */
const fm_activation *fm_activation_find(const fm_activations *l, fm_act_type type, fm_act_use use);

/* Its record in `a`: an fm_f32s, fm_act or fm_routing. */
static inline void *fm_activation_at(fm_acts *a, const fm_activation *b)
{
    return (char *)a + b->at;
}

typedef struct {
    int    max_rows, max_out;
    size_t element; /* bytes of a matrix input */
    int    padding; /* elements between rows of matrix inputs that no other rank reads */
} fm_act_layout;

/* Takes what is declared from the slab, except PIECE, GATHERED and LOGITS: their places depend on
 * how a back end exchanges them. */
void fm_activations_carve(fm_acts *a, const fm_activations *l, const fm_shard *s,
                          const fm_act_layout *how, fm_slab *slab);

#endif
