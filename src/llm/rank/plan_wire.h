/* SPDX-License-Identifier: Apache-2.0 */
/* A step's plan as a message: what the leader tells the other ranks of its
 * replica so that all run the same pass.
 *
 *     head   kind, lane, serial, how many words in all
 *     group  rows, spans, outs, page words, prompt rows, choices of each attention group
 *     then, group by group:
 *            token[rows]  span[spans] of {rows, pos0, form, page_at}  out[outs]  page[...]
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

typedef enum { FM_PLAN_STEP, FM_PLAN_QUIT } fm_plan_kind;

/* What a plan may hold at most. */
typedef struct {
    int n_lane, n_group;
    int max_rows, max_spans, max_outs, max_pages; /* of one group */
    int max_span_pages;                           /* of one span */
    int page_size, n_page, vocab;
} fm_plan_limits;

typedef struct {
    fm_plan_kind kind;
    int          lane;
    uint32_t     serial; /* counts the steps of a replica */
} fm_plan_head;

/* What the groups do; a group without rows has NULL. */
typedef struct {
    fm_plan_head           head;
    const fm_batch *const *batch; /* [n_group] */
    int32_t                page0; /* added to every page number */
} fm_step_plan;

/* A plan as one rank sees it: the rows of its own group. */
typedef struct {
    fm_plan_head head;
    fm_batch     batch; /* token, out and pages lie in the message */
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
    int32_t *pos;  /* [max_rows] */
    fm_span *span; /* [max_spans] */
    int32_t *group_rows, *group_outs; /* [n_group] */
} fm_plan_room;

/* `group` is the reader's.  The message stays in place while the plan is used. */
fm_status fm_plan_read(fm_read_plan *out, const fm_plan_room *room, const int32_t *in,
                       const fm_plan_limits *l, int group);

#endif
