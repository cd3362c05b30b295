/* SPDX-License-Identifier: Apache-2.0 */
/* One forward pass over rows of several sequences: prefill chunks, decodes
 * and recomputed tokens side by side.
 *
 *     rows   0 1 2 3 4 5 | 6 | 7 | 8 9        T = 10
 *     spans  prompt of A | B | C | tokens of D computed again
 *
 * A span is consecutive tokens of one sequence in one form.  The form follows
 * the token: prompt tokens attend in the expanded form, generated ones in the
 * absorbed form, also when they are computed again. */
#ifndef FM_LLM_BATCH_H
#define FM_LLM_BATCH_H

#include <stdint.h>

typedef enum { FM_FORM_PROMPT, FM_FORM_GENERATED } fm_form;

typedef struct {
    int            row0, n_row;
    int            pos0;   /* position of the first row; row i sees keys 0 .. pos0+i */
    fm_form        form;
    const int32_t *page;   /* [ceil((pos0+n_row)/page_size)] the sequence's pages */

    /* For drafts (model/model.h): hidden states that outlive a pass are kept in numbered places. */
    int32_t before; /* where that of the row before the first is: place before - 1; 0: not known;
                     * FM_STATE_OF_ROW(i): it is row i of this pass */
    int32_t keep0, n_keep; /* those of the last n_keep rows are kept in places from keep0 on */
} fm_span;

#define FM_STATE_OF_ROW(i) (-1 - (i))

/* In place of a token that is not known yet: the one the pass before chose for
 * its out row i, counted within the group.  Only for back ends that sample. */
#define FM_CHOICE(i) (-1 - (i))

typedef struct {
    int      n_row, n_span, n_out;
    int32_t *token; /* [n_row] ids, or FM_CHOICE() of the pass before */
    int32_t *pos;   /* [n_row] */
    fm_span *span;  /* [n_span] in row order */
    int32_t *out;   /* [n_out] rows whose logits are wanted, ascending */

    /* Where several groups of ranks have rows of their own, what each has in
     * this pass, this one included; a group may have none.  NULL: one group. */
    const int32_t *group_rows, *group_outs; /* [n_group] */
    int            is_decode; /* no group has prompt rows; with one group it need not be said */
    int            has_choices; /* some group has an FM_CHOICE; with one group it need not be said */
    int            link; /* 0: a forward pass; n: the n-th link of a chain of drafts, where
                          * FM_CHOICE(i) is what the link before drafted for row i */
} fm_batch;

#endif
