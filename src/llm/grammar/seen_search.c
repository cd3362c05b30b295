/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/seen_search.h"

#include <stdlib.h>
#include <string.h>

#include "llm/grammar/nfa.h"

void fm__search_begin(fm__search *q, const fm__seen *s, fm__states *states, fm__item_kind kind,
                      int n_more)
{
    *q       = (fm__search){.states = states, .kind = kind, .n = s->n};
    q->known = malloc((size_t)(s->n + n_more + 1) * sizeof *q->known);
    FM_BUG_UNLESS(q->known != NULL);
    for (int i = 0; i < s->n; i++) q->known[i] = (fm__span){s->item[i].text, s->item[i].len};
    fm__states_begin_walk(states);
}

void fm__search_end(fm__search *q)
{
    free(q->known);
    *q = (fm__search){0};
}

int fm__search_knows(const fm__search *q, const char *text, size_t len)
{
    for (int i = 0; i < q->n; i++)
        if (q->known[i].len == len && (!len || !memcmp(q->known[i].text, text, len))) return 1;
    return 0;
}

const fm__span *fm__search_beginning(const fm__search *q, const char *text, size_t len)
{
    for (int i = 0; i < q->n; i++)
        if (q->known[i].len >= len && (!len || !memcmp(q->known[i].text, text, len)))
            return &q->known[i];
    return NULL;
}

/* A known item with n bytes of `e` and then this one, or NULL. */
static const fm__span *find_longer(const fm__search *q, const fm__span *e, size_t n,
                                   unsigned char byte)
{
    for (int i = 0; i < q->n; i++)
        if (q->known[i].len > n && (unsigned char)q->known[i].text[n] == byte &&
            (!n || !memcmp(q->known[i].text, e->text, n)))
            return &q->known[i];
    return NULL;
}

/* A beginning: n bytes of an item, and what is behind them. */
typedef struct {
    int32_t         state;
    fm__json_place  place;
    const fm__span *item;
    size_t          n;
} beginning;

static int is_gap(const fm__search *q, const beginning *b, unsigned char byte)
{
    return q->kind == FM__OF_VALUES && fm__json_is_gap(&b->place, (char)byte);
}

static int ends_item(const fm__search *q, const beginning *b, int32_t to, unsigned char byte)
{
    switch (q->kind) {
    case FM__OF_NUMBERS: return !fm__is_of_number((char)byte);
    case FM__OF_VALUES: return fm__json_ends_value(&b->place, (char)byte);
    default: return !(q->states->state[to].mark & FM__IN_ITEM);
    }
}

static int32_t state_behind(const fm__search *q, const beginning *b, int byte)
{
    return fm__states_byte(q->states, b->state, (unsigned char)byte);
}

/* Can the next byte lead to an item that is new? */
static int may_be_new(const fm__search *q, const beginning *b)
{
    for (int byte = 0; byte < 256; byte++) {
        const int32_t to = state_behind(q, b, byte);
        if (to == FM__DEAD || is_gap(q, b, (unsigned char)byte)) continue;
        if (ends_item(q, b, to, (unsigned char)byte)
                ? !fm__search_knows(q, b->item->text, b->n)
                : !find_longer(q, b->item, b->n, (unsigned char)byte))
            return 1;
    }
    return 0;
}

/* The beginning one byte longer, from `byte` on; 0: there is none. */
static int next_longer(const fm__search *q, const beginning *b, int *byte, beginning *out)
{
    for (; *byte < 256; ++*byte) {
        const int32_t to = state_behind(q, b, *byte);
        if (to == FM__DEAD || is_gap(q, b, (unsigned char)*byte) ||
            ends_item(q, b, to, (unsigned char)*byte))
            continue;
        *out = (beginning){to, b->place, find_longer(q, b->item, b->n, (unsigned char)*byte),
                           b->n + 1};
        if (q->kind == FM__OF_VALUES) fm__json_byte(&out->place, (char)*byte);
        ++*byte;
        return out->item != NULL;
    }
    return 0;
}

/* White space that must come, such as an indentation: 0 if something else may. */
static int skip_gap(const fm__search *q, beginning *b)
{
    int32_t behind = FM__DEAD;
    for (int byte = 0; byte < 256; byte++) {
        const int32_t to = state_behind(q, b, byte);
        if (to == FM__DEAD) continue;
        if (!is_gap(q, b, (unsigned char)byte)) return 0;
        if (behind == FM__DEAD) behind = to;
    }
    if (behind == FM__DEAD) return 0;
    b->state = behind;
    return 1;
}

/* Where one byte alone may come this is a loop: a call for each byte of a long constant would need
 * too much stack. */
static int is_used_up(const fm__search *q, beginning b)
{
    for (;;) {
        beginning next, last;
        int       byte = 0;
        if (skip_gap(q, &b)) continue;
        if (may_be_new(q, &b)) return 0;
        if (!next_longer(q, &b, &byte, &last)) return 1;
        while (next_longer(q, &b, &byte, &next)) {
            if (!is_used_up(q, last)) return 0;
            last = next;
        }
        b = last;
    }
}

int fm__search_is_used_up(const fm__search *q, int32_t state, fm__json_place place,
                          const fm__span *e, size_t n)
{
    return is_used_up(q, (beginning){state, place, e, n});
}
