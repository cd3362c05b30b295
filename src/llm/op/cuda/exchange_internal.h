/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU back end keeps to exchange data with other ranks, in the order of its stream.
 *
 * Pieces are op/cpu/exchange_internal.h's: a rank computes its own where it
 * belongs for the most rows there can be, and the others' come to lie around it.
 *
 * The experts' outputs are sent as kernel/cuda/exchange/combine.h says.  The number of pairs
 * only the device knows: a padded step sends blocks of the most there can be, so
 * that it needs nothing from the host and can be recorded; another pass reads the
 * counts back once per layer. */
#ifndef FM_LLM_OP_CUDA_EXCHANGE_INTERNAL_H
#define FM_LLM_OP_CUDA_EXCHANGE_INTERNAL_H

#include "comm/device_comm.h"
#include "llm/kernel/cuda/exchange/combine.h"
#include "llm/op/exchange.h"

typedef struct {
    fm_columns col;
    size_t     element; /* bytes */
    char      *own;     /* this rank's piece */
} fm_cuda_pieces;

typedef struct {
    fm_comm         self;
    fm_device_comm *replica, *stage, *attn, *group, *channel; /* NULL: of one */
    fm_staging      staging;
    size_t          most_bytes; /* that a call sends and receives */
    size_t *send_at, *send_n, *recv_at, *recv_n; /* host, [ranks of the stage] of the call at hand */

    fm_cuda_pieces o, y;  /* of act.o and act.y */
    char          *room;  /* pieces of a middle: [rows, widest inter] or [pairs, inter] bf16 */
    uint16_t      *words; /* embeddings of divided words on their way */
    int            fixed_rows; /* most rows of a padded step */
    int32_t       *word_rows;  /* host [n_attn] what each rank contributes to them */
    int32_t       *rows_of;    /* host [n_group] rows of the pass in flight */

    fm_combine         way;
    float             *sent, *received; /* of combine */
    fm_cuda_placement  where; /* experts lie */
    int32_t           *key, *key_count, *key_first, *key_place;
    int32_t           *own_slot; /* [rows of a pass, k] of experts this rank computes; else -1 */
    int32_t           *key_items; /* pinned [n_group * n_set] key_count, read back */

    float      *passed; /* [max_rows, columns of y] for the next stage */
    float      *logits_room;   /* rank 0: [n_lane][max_out of all groups, V]; NULL: act.logits serves */
    float      *pieces; /* rank 0: logits as they come from the ranks of the stage */
    unsigned    n_collected, n_taken;
    fm_comm_job logit_job[FM_LOGITS_IN_FLIGHT];
    float      *logits_out[FM_LOGITS_IN_FLIGHT]; /* last of several stages: pinned [max_out, V'] */
    float      *gathered;                 /* their rank 0: host [n_lane][max_out of all groups, V] */
    float      *arrived;                  /* [max_out, V'] of another rank */
} fm_cuda_exchange;

/* Pieces around the own one, which is `part` of a room for so many rows. */
static inline fm_cuda_pieces fm__cuda_pieces(fm_columns col, size_t element, void *room, int part,
                                             size_t rows)
{
    char *own = room; /* NULL: only counting */
    if (own) own += rows * (size_t)fm_columns_part(col, part).begin * element;
    return (fm_cuda_pieces){.col = col, .element = element, .own = own};
}

/* exchange.c */
fm_status fm__cuda_meet(fm_run *r, const fm_run_cuda_options *o); /* opens the groups */
void      fm__cuda_part(fm_run *r);                               /* closes them */
fm_status fm__cuda_wait(fm_run *r);             /* for the stream; a lost rank ends it */
fm_status fm__cuda_reach(fm_run *r, fm_mark m); /* for what is before the mark; a lost rank ends it */
void fm__cuda_gather(fm_run *r, const fm_cuda_pieces *p, fm_device_comm *c, void *rows, int n_row,
                     int add);
void fm__cuda_list_words(fm_run *r); /* on the host, when a pass begins */
const uint16_t *fm__cuda_gather_words(fm_run *r, const uint16_t *table);
void fm__cuda_gather_act(fm_run *r, fm_act all, fm_act mine);
void fm__cuda_gather_add(fm_run *r, fm_f32s x, fm_f32s y);
void fm__cuda_dispatch(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h, fm_routing route);
/* carve_exchange.c */
void fm__cuda_carve_exchange(fm_cuda_exchange *x, fm_acts *a, const fm_model_config *c,
                             const fm_shard *shard, const fm_run_limits *lim, fm_slab *s);
/* stages.c */
int       fm__cuda_is_one_stage(const fm_run *r);
int       fm__cuda_outs(const fm_run *r, const fm_batch *b); /* of all groups */
void      fm__cuda_pass_on(fm_run *r, fm_f32s x);
void      fm__cuda_receive(fm_run *r, fm_f32s x);
void      fm__cuda_collect(fm_run *r); /* after the pass, outside what is recorded */
float    *fm__cuda_taken(fm_run *r);   /* rank 0 of one stage: the oldest logits, on the device */
fm_status fm__cuda_logits(fm_run *r, const fm_batch *b, const float **all);

#endif
