/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/seen_values.h"

#include <stdlib.h>
#include <string.h>

#include "llm/grammar/nfa.h"
#include "llm/grammar/seen_search.h"

void fm__seen_value_byte(fm__seen *s, char byte)
{
    if (fm__json_is_gap(&s->place, byte)) return;
    if (fm__json_ends_value(&s->place, byte)) {
        fm__seen_keep(s);
        return;
    }
    fm_str_add(&s->current, &byte, 1);
    fm__json_byte(&s->place, byte);
}

int fm__seen_hides_value(const fm__states *states, const int32_t *path, const char *bytes, int len)
{
    int has_ended = 0;
    for (int i = 0; i < len; i++) {
        if (has_ended && !fm__json_is_space(bytes[i])) return 1;
        if (bytes[i] == ',' && states->state[path[i]].mark & FM__BEFORE_COMMA) has_ended = 1;
    }
    return 0;
}

/* Behind some bytes of a token: `len` bytes of the item are written. */
typedef struct {
    int32_t        state;
    fm__json_place place;
    size_t         len;
} step;

/* A walk over tokens that go on with an item as one written before does. */
typedef struct {
    fm__search             q;
    const fm__token_order *order;
    uint32_t              *bits;
    char                  *text; /* the item */
    step                  *path; /* [max_len + 1] */
} walk;

/* One byte more; 0: no item written before goes on so, or the token ended the item, and all
 * tokens with these bytes are dealt with. */
static int follow(walk *w, int token, int at)
{
    const char  byte = w->order->bytes[token][at];
    const step *was  = &w->path[at];
    step        is   = *was;
    if (fm__json_ends_value(&was->place, byte)) {
        if (fm__search_knows(&w->q, w->text, was->len))
            fm__token_order_clear(w->order, w->order->bytes[token], (size_t)at + 1, w->bits);
        return 0;
    }
    if (!fm__json_is_gap(&was->place, byte)) {
        w->text[is.len++] = byte;
        fm__json_byte(&is.place, byte);
        if (!fm__search_beginning(&w->q, w->text, is.len)) return 0;
    }
    is.state = fm__states_byte(w->q.states, was->state, (unsigned char)byte);
    w->path[at + 1] = is;
    return is.state != FM__DEAD;
}

static int is_allowed(const walk *w, int token)
{
    const int32_t id = w->order->id[token];
    return w->bits[id / 32] >> id % 32 & 1;
}

static void check_token(walk *w, int token)
{
    const step     *end = &w->path[w->order->len[token]];
    const fm__span *e   = fm__search_beginning(&w->q, w->text, end->len);
    if (is_allowed(w, token) &&
        fm__search_is_used_up(&w->q, end->state, end->place, e, end->len))
        w->bits[w->order->id[token] / 32] &= ~(1u << w->order->id[token] % 32);
}

/* In the order of their bytes: path[0 .. good] holds for the current token. */
static void walk_tokens(walk *w)
{
    const fm__token_order *o    = w->order;
    int                    good = 0;
    for (int i = 0; i < o->n; i++) {
        if (o->shared[i] > good) continue;
        if (o->shared[i] < good) good = o->shared[i];
        while (good < o->len[i] && follow(w, i, good)) good++;
        if (good == o->len[i]) check_token(w, i);
    }
}

void fm__seen_exclude_values(const fm__seen *s, fm__states *states, int32_t state,
                             const fm__token_order *o, uint32_t *bits)
{
    const size_t n = s->current.len;
    walk         w = {.order = o, .bits = bits};
    fm__search_begin(&w.q, s, states, FM__OF_VALUES, 0);
    if (fm__search_beginning(&w.q, s->current.text, n)) {
        w.text = malloc(n + (size_t)o->max_len + 1);
        w.path = malloc(((size_t)o->max_len + 1) * sizeof *w.path);
        FM_BUG_UNLESS(w.text && w.path);
        if (n) memcpy(w.text, s->current.text, n);
        w.path[0] = (step){state, s->place, n};
        walk_tokens(&w);
        free(w.text);
        free(w.path);
    }
    fm__search_end(&w.q);
}
