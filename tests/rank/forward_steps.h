/* SPDX-License-Identifier: Apache-2.0 */
/* A script of passes over several texts: prompt chunks, single and recomputed
 * tokens, passes in which most texts rest.  Text i belongs to group i modulo
 * the number of groups; whatever that is, the same rows are computed. */
#ifndef FM_TESTS_RANK_FORWARD_STEPS_H
#define FM_TESTS_RANK_FORWARD_STEPS_H

#include "llm/op/run.h"

enum { N_TEXT = 7, N_STEP = 10, MAX_GROUP = 4, MAX_SPAN_ROWS = 1700, PAGE = 16 };

typedef struct {
    int     pos0, n_row, n_out; /* n_out: of the last rows; n_row 0: rests */
    fm_form form;
} steps_span;

typedef struct {
    int32_t   *token;                     /* [N_TEXT][max_len] */
    int        max_len, max_rows, max_out; /* of all texts together */
    steps_span span[N_STEP][N_TEXT];
    int32_t   *page; /* [N_TEXT][pages of a text] */
    int        pages;
} steps;

/* longest: rows of the largest prompt chunk. */
void steps_make(steps *s, int vocab, int longest);
void steps_free(steps *s);

typedef struct {
    fm_batch batch;
    fm_span  span[N_TEXT];
    int32_t *token, *pos, *out;
    int32_t  group_rows[MAX_GROUP], group_outs[MAX_GROUP];
} steps_batch;

/* What `group` of n_group has in a step. */
void steps_batch_make(steps_batch *b, const steps *s, int step, int group, int n_group);
void steps_batch_free(steps_batch *b);

#endif
