/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/rank/moves_wire.h"

#include <string.h>

#include "llm/rank/plan_internal.h"

enum { MOVE_WORDS = 8 }; /* before the tokens */
enum { AT_ASKS = FM__HEAD_WORDS, AT_COUNTS };
enum { ASKS = 1, HAS_PASS = 2 };

static size_t move_words(const fm_plan_limits *l) { return MOVE_WORDS + (size_t)l->page_size; }

size_t fm_moves_max_words(const fm_plan_limits *l)
{
    return AT_COUNTS + (size_t)l->n_group * (1 + (size_t)l->max_moves * move_words(l));
}

static int32_t *put(int32_t *at, const fm_page_move *m, int page_size)
{
    const int32_t word[4] = {m->kind, m->page, m->slot, m->depth};
    memcpy(at, word, sizeof word);
    memcpy(at + 4, &m->key, sizeof m->key);
    memcpy(at + MOVE_WORDS, m->token, (size_t)page_size * sizeof *at);
    return at + MOVE_WORDS + page_size;
}

size_t fm_moves_write(int32_t *out, const fm_moves_plan *p, const fm_plan_limits *l)
{
    int32_t *at  = out + AT_COUNTS + l->n_group;
    out[AT_ASKS] = (p->asks ? ASKS : 0) | (p->has_pass ? HAS_PASS : 0);
    for (int g = 0; g < l->n_group; g++) {
        const fm_moves *list = p->moves[g];
        FM_BUG_UNLESS(list->n <= l->max_moves);
        out[AT_COUNTS + g] = list->n;
        for (int i = 0; i < list->n; i++) at = put(at, &list->move[i], l->page_size);
    }
    return fm__plan_seal(out, (size_t)(at - out), &p->head);
}

static fm_status get(fm_page_move *m, const int32_t *in, const fm_plan_limits *l)
{
    *m = (fm_page_move){.kind = in[0], .page = in[1], .slot = in[2], .depth = in[3]};
    memcpy(&m->key, in + 4, sizeof m->key);
    memcpy(m->token, in + MOVE_WORDS, (size_t)l->page_size * sizeof *in);
    const int is_between = m->kind == FM_MOVE_IN || m->kind == FM_MOVE_IN_NOW ||
                           m->kind == FM_MOVE_OUT || m->kind == FM_MOVE_OUT_NOW;
    if (m->kind < 0 || m->kind >= FM_N_MOVE) return fm__plan_garbled("kind of a move");
    if ((is_between || m->kind == FM_MOVE_WRITE) && (m->page < 0 || m->page >= l->n_page))
        return fm__plan_garbled("page of a move");
    if (m->kind != FM_MOVE_WRITE && (m->slot < 0 || m->slot >= l->n_slot))
        return fm__plan_garbled("slot of a move");
    if (m->kind == FM_MOVE_CHECK && (m->depth < 0 || m->depth >= l->n_check))
        return fm__plan_garbled("check of a move");
    return FM_OK;
}

fm_status fm_moves_read(fm_read_plan *out, fm_page_move *room, const int32_t *in,
                        const fm_plan_limits *l, int group)
{
    const size_t words = (size_t)in[FM__AT_LENGTH];
    size_t       used = AT_COUNTS + (size_t)l->n_group, first = 0;
    for (int g = 0; g < l->n_group; g++) {
        const int32_t n = in[AT_COUNTS + g];
        if (n < 0 || n > l->max_moves) return fm__plan_garbled("moves");
        if (g == group) first = used;
        used += (size_t)n * move_words(l);
    }
    if (used > words) return fm__plan_garbled("length");
    out->asks     = (in[AT_ASKS] & ASKS) != 0;
    out->has_pass = (in[AT_ASKS] & HAS_PASS) != 0;
    out->move     = room;
    out->n_move   = in[AT_COUNTS + group];
    for (int i = 0; i < out->n_move; i++)
        FM_TRY(get(&room[i], in + first + (size_t)i * move_words(l), l));
    return FM_OK;
}
