/* SPDX-License-Identifier: Apache-2.0 */
/* A message to the ranks of a replica: what is accepted stays within the limits.  The first byte
 * is the reader's group, the rest the message's words behind its magic number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "llm/rank/moves_wire.h"
#include "llm/rank/plan_internal.h"

enum { N_GROUP = 2, ROWS = 64, SPANS = 8, OUTS = 16, PAGE = 16, SPAN_PAGES = 8, N_PAGE = 50, MOVES = 4 };

static const fm_plan_limits limits = {.n_lane = 2, .n_group = N_GROUP, .max_rows = ROWS,
                                      .max_spans = SPANS, .max_outs = OUTS, .max_pages = SPANS * SPAN_PAGES,
                                      .max_span_pages = SPAN_PAGES, .page_size = PAGE, .n_page = N_PAGE,
                                      .vocab = 1000, .n_kept = 16, .max_draft = 3, .max_moves = MOVES, .n_slot = 4, .n_check = 3};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_batch(const fm_batch *b)
{
    FM_BUG_UNLESS(b->n_row >= 0 && b->n_row <= ROWS && b->n_span <= SPANS && b->n_out <= OUTS);
    for (int i = 0; i < b->n_row; i++) FM_BUG_UNLESS(b->token[i] < 1000 && b->pos[i] >= 0);
    for (int i = 0; i < b->n_out; i++) FM_BUG_UNLESS(b->out[i] >= 0 && b->out[i] < b->n_row);
    for (int i = 0; i < b->n_span; i++) {
        const fm_span *s = &b->span[i];
        FM_BUG_UNLESS(s->row0 >= 0 && s->n_row >= 0 && s->row0 + s->n_row <= b->n_row);
        for (int k = 0; k < (s->pos0 + s->n_row + PAGE - 1) / PAGE; k++)
            FM_BUG_UNLESS(s->page[k] >= 0 && s->page[k] < N_PAGE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int32_t      message[16384], pos[ROWS], group_rows[N_GROUP], group_outs[N_GROUP];
    static fm_span      span[SPANS];
    static fm_page_move move[MOVES];
    const fm_plan_room  room = {pos, span, group_rows, group_outs, move};
    const size_t        most = fm_plan_max_words(&limits);
    size_t              words = 0;
    FM_BUG_UNLESS(most <= sizeof message / sizeof *message);
    if (size < 1 || (size - 1) / 4 + 1 > most) return 0;
    memset(message, 0, most * sizeof *message);
    memcpy(message + 1, data + 1, (size - 1) / 4 * 4);
    message[FM__AT_MAGIC] = FM__PLAN_MAGIC;
    if (fm_plan_length(message, &limits, &words) != FM_OK) return 0;
    FM_BUG_UNLESS(words <= most);
    int32_t *exact = malloc(words * sizeof *exact); /* so that a word too far is seen */
    if (!exact) return 0;
    memcpy(exact, message, words * sizeof *exact);
    fm_read_plan p = {0};
    if (fm_plan_read(&p, &room, exact, &limits, data[0] % N_GROUP) == FM_OK) {
        if (p.head.kind == FM_PLAN_STEP || p.head.kind == FM_PLAN_DRAFT) check_batch(&p.batch);
        FM_BUG_UNLESS(p.n_move >= 0 && p.n_move <= MOVES);
    }
    free(exact);
    return 0;
}
