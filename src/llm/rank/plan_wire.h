/* SPDX-License-Identifier: Apache-2.0 */
/* A step's plan as a message: what the leader tells the other ranks of its
 * replica so that all run the same pass.
 *
 *     head   kind, lane, serial, how many words in all, links
 *     group  rows, spans, outs, page words, prompt rows, choices of each attention group
 *     then, group by group:
 *            token[rows]  span[spans] of {rows, pos0, form, page_at, before, keep0, n_keep}
 *            out[outs]  page[...]
 *
 * A plan of kind FM_PLAN_DRAFT is a chain of so many links (model/model.h): each row is a span and
 * an out row.
 *
 * Everything is 32-bit words in the host's order: all ranks run the same
 * binary on the same kind of machine, which is checked at start.  A reader
 * trusts nothing: a plan that contradicts itself or exceeds the limits is
 * FM_E_FORMAT. */
#ifndef FM_LLM_RANK_PLAN_WIRE_H
#define FM_LLM_RANK_PLAN_WIRE_H

#include <stddef.h>

#include "base/status.h"
#include "llm/batch.h"

/* TRACE: recording begins or ends (engine/profile.c).  MOVES: moves_wire.h. */
typedef enum {
    FM_PLAN_STEP,
    FM_PLAN_DRAFT,
    FM_PLAN_QUIT,
    FM_PLAN_TRACE,
    FM_PLAN_MOVES,
    FM_N_PLAN_KIND
} fm_plan_kind;

/* What a plan may hold at most. */
typedef struct {
    int n_lane, n_group;
    int max_rows, max_spans, max_outs, max_pages; /* of one group */
    int max_span_pages;                           /* of one span */
    int page_size, n_page, vocab;
    int n_kept, max_draft; /* hidden states kept, and links of a chain; 0 without drafts */
    int max_moves, n_slot; /* of pages before a step, of one group; 0: there are no tiers */
    int n_check;           /* behind the last check of a page in host memory */
} fm_plan_limits;

typedef struct {
    fm_plan_kind kind;
    int          lane;
    uint32_t     serial; /* counts the steps of a replica */
    int          n_link; /* FM_PLAN_DRAFT */
} fm_plan_head;

/* What the groups do; a group without rows has NULL. */
typedef struct {
    fm_plan_head           head;
    const fm_batch *const *batch; /* [n_group] */
    int32_t                page0; /* added to every page number */
    int32_t                kept0; /* added to every place of a kept state */
} fm_step_plan;

/* A plan as one rank sees it: the rows of its own group. */
typedef struct {
    fm_plan_head head;
    fm_batch     batch; /* STEP: token, out and pages lie in the message */
    const struct fm_page_move *move; /* [n_move] MOVES (moves_wire.h) */
    int                        n_move;
    int                        asks; /* MOVES: for the state of all slots */
    int                        has_pass; /* MOVES: a step follows */
} fm_read_plan;

/* The part that always travels; a longer plan has a second part. */
enum { FM_PLAN_FIRST_WORDS = 960 }; /* below the size transports send at once */

size_t fm_plan_max_words(const fm_plan_limits *l);

/* Writes the plan into out[fm_plan_max_words]; returns its length in words,
 * at least FM_PLAN_FIRST_WORDS. */
size_t fm_plan_write(int32_t *out, const fm_step_plan *p, const fm_plan_limits *l);

/* Length in words of the plan whose first part is `in`.  FM_E_FORMAT: it is
 * none, or longer than any. */
fm_status fm_plan_length(const int32_t *in, const fm_plan_limits *l, size_t *words);

/* Where a read plan keeps what is not in the message. */
typedef struct {
    int32_t *pos;                     /* [max_rows] */
    fm_span *span;                    /* [max_spans] */
    int32_t *group_rows, *group_outs; /* [n_group] */
    struct fm_page_move *move; /* [max_moves] */
} fm_plan_room;

/* `group` is the reader's.  The message stays in place while the plan is used. */
fm_status fm_plan_read(fm_read_plan *out, const fm_plan_room *room, const int32_t *in,
                       const fm_plan_limits *l, int group);

#endif
