/* SPDX-License-Identifier: Apache-2.0 */
#include "forward_steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static uint64_t drawn;

static int draw(int below)
{
    return (int)(fm_rng_u32(815, drawn++) % (uint32_t)below);
}

/* In step 3 only the first text goes on, in step 5 only the last: with several
 * groups all others have nothing. */
static int rests(int step, int text)
{
    if (step == 3) return text != 0;
    if (step == 5) return text != N_TEXT - 1;
    return draw(4) == 0;
}

static steps_span next_span(int pos, int prompt, int longest)
{
    steps_span    p    = {.pos0 = pos, .form = pos < prompt ? FM_FORM_PROMPT : FM_FORM_GENERATED};
    const int     left = prompt - pos;
    static const int few[] = {1, 1, 1, 3};
    p.n_row = p.form == FM_FORM_GENERATED ? few[draw(4)] : 1 + draw(longest);
    if (p.form == FM_FORM_PROMPT && p.n_row > left) p.n_row = left;
    p.n_out = draw(5) == 0 ? 0 : draw(4) == 0 && p.n_row < 8 ? p.n_row : 1;
    return p;
}

static void add_up(steps *s)
{
    s->max_rows = s->max_out = 1;
    for (int k = 0; k < N_STEP; k++) {
        int rows = 0, outs = 0;
        for (int i = 0; i < N_TEXT; i++) rows += s->span[k][i].n_row, outs += s->span[k][i].n_out;
        if (rows > s->max_rows) s->max_rows = rows;
        if (outs > s->max_out) s->max_out = outs;
    }
}

void steps_make(steps *s, int vocab, int longest)
{
    drawn      = 0;
    *s         = (steps){.max_len = 2 * longest + 3 * N_STEP};
    s->pages   = (s->max_len + PAGE - 1) / PAGE;
    s->token   = calloc((size_t)(N_TEXT * s->max_len), sizeof *s->token);
    s->page    = calloc((size_t)(N_TEXT * s->pages), sizeof *s->page);
    for (int i = 0; i < N_TEXT * s->max_len; i++) s->token[i] = draw(vocab);
    for (int i = 0; i < N_TEXT * s->pages; i++) s->page[i] = N_TEXT * s->pages - 1 - i;
    for (int i = 0; i < N_TEXT; i++) {
        const int prompt = 1 + draw(2 * longest);
        int       pos    = 0;
        for (int k = 0; k < N_STEP; k++) {
            if (rests(k, i)) continue;
            s->span[k][i] = next_span(pos, prompt, longest);
            pos += s->span[k][i].n_row;
        }
    }
    add_up(s);
}

void steps_free(steps *s)
{
    free(s->token);
    free(s->page);
}

static void add_span(steps_batch *b, const steps *s, int text, const steps_span *p)
{
    fm_batch *q = &b->batch;
    b->span[q->n_span++] = (fm_span){.row0 = q->n_row, .n_row = p->n_row, .pos0 = p->pos0,
                                     .form = p->form, .page = s->page + text * s->pages};
    for (int i = 0; i < p->n_row; i++) {
        if (i >= p->n_row - p->n_out) b->out[q->n_out++] = q->n_row;
        b->pos[q->n_row]     = p->pos0 + i;
        b->token[q->n_row++] = s->token[text * s->max_len + p->pos0 + i];
    }
}

void steps_batch_make(steps_batch *b, const steps *s, int step, int group, int n_group)
{
    memset(b, 0, sizeof *b);
    b->token = calloc((size_t)s->max_rows, sizeof *b->token);
    b->pos   = calloc((size_t)s->max_rows, sizeof *b->pos);
    b->out   = calloc((size_t)s->max_rows, sizeof *b->out);
    for (int i = 0; i < N_TEXT; i++) {
        const steps_span *p = &s->span[step][i];
        b->group_rows[i % n_group] += p->n_row;
        b->group_outs[i % n_group] += p->n_out;
        if (p->n_row && i % n_group == group) add_span(b, s, i, p);
    }
    b->batch.token = b->token;
    b->batch.pos   = b->pos;
    b->batch.out   = b->out;
    b->batch.span  = b->span;
    if (n_group > 1) b->batch.group_rows = b->group_rows, b->batch.group_outs = b->group_outs;
}

void steps_batch_free(steps_batch *b)
{
    free(b->token);
    free(b->pos);
    free(b->out);
}
