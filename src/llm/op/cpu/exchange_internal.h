/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU back end keeps to exchange data with other ranks.
 *
 * Ranks that divide the columns of a result gather them as pieces, one after
 * the other in rank order:
 *
 *     [rows, columns of rank 0] [rows, columns of rank 1] ...
 *
 * A rank computes its own piece where it belongs, so nothing is copied before
 * it is sent.  Buffers and counts of a job stay as they are until it is done. */
#ifndef FM_LLM_OP_CPU_EXCHANGE_INTERNAL_H
#define FM_LLM_OP_CPU_EXCHANGE_INTERNAL_H

#include "llm/op/exchange.h"

typedef struct {
    fm_columns  col;
    size_t      element; /* bytes */
    size_t     *bytes;   /* [n_part] of each piece */
    char       *first;   /* the piece of rank 0 */
    int         n_row;
    fm_comm_job job;
} fm_pieces;

typedef struct {
    fm_pieces o, y; /* of act.o and act.y */

    /* A dense or shared FFN whose middle is being gathered. */
    fm_pieces             mlp;
    char                 *mlp_room; /* [FM_PASS_ROWS, widest inter] act, as pieces */
    fm_f32s               mlp_y;
    const fm_mlp_weights *mlp_weights; /* NULL: none is under way */

    fm_comm_job  rows_job, route_job; /* of dispatch */
    size_t      *rows_bytes, *route_bytes; /* [n_group] */
    int32_t     *route_room; /* for each group [its rows, k] experts and as many weights */

    int32_t *word_at; /* [max_rows] where the gathered embedding of a row lies */

    fm_combine    way;
    fm_pieces     middle;
    char         *middle_room; /* [pairs, inter] act, as pieces */
    float        *row_sum;  /* AS_ROWS: [pass rows, own columns] sums, by destination */
    float        *received;    /* [own rows of a pass, k or 1, columns of y] by source */
    size_t       *send_bytes, *recv_bytes; /* [ranks of the stage] */
    size_t       *from;       /* [ranks of the stage] floats before its part of `received` */
    fm_range     *seen;       /* [n_channel] columns of y that a rank of a set computes */
    int32_t      *first_item; /* [n_group + 1] pairs or rows of the pass before each group's */
    int32_t      *slot_item;  /* [own rows of a pass, k] place among those of the slot's set */
    int32_t      *set_items;  /* [n_set] what each set sends here */

    fm_comm_job pass_job; /* to the next stage */
    float      *passed;   /* [max_rows, columns of y] what it sends */
    fm_comm_job logit_job[FM_LOGITS_IN_FLIGHT];
    float      *room[FM_LOGITS_IN_FLIGHT]; /* [max_out, V'] act.logits of successive passes */
    int         n_room;                   /* of these */
    unsigned    n_collected, n_taken;
    float      *gathered; /* rank 0: [limits.n_lane][max_out of all groups, V] */
    float      *arrived;  /* rank 0: [max_out, V'] of another rank */
} fm_cpu_exchange;

#endif
