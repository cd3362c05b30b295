/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/seen_items.h"

#include <stdlib.h>
#include <string.h>

#include "llm/grammar/nfa.h"
#include "llm/grammar/seen_search.h"
#include "llm/grammar/seen_values.h"

static void forget(fm__seen *s)
{
    for (int i = 0; i < s->n; i++) fm_str_fini(&s->item[i]);
    s->n           = 0;
    s->current.len = 0;
    s->place       = (fm__json_place){0};
}

void fm__seen_fini(fm__seen *s)
{
    forget(s);
    free(s->item);
    fm_str_fini(&s->current);
    *s = (fm__seen){0};
}

void fm__seen_keep(fm__seen *s)
{
    if (s->n == s->cap) {
        s->cap  = s->cap ? 2 * s->cap : 8;
        s->item = realloc(s->item, (size_t)s->cap * sizeof *s->item);
        FM_BUG_UNLESS(s->item != NULL);
    }
    s->item[s->n++] = s->current;
    s->current      = (fm_str){0};
}

void fm__seen_byte(fm__seen *s, int before, int after, char byte)
{
    if (after & FM__IN_VALUES) {
        if (before & FM__IN_VALUES)
            fm__seen_value_byte(s, byte);
        else
            forget(s); /* the opening bracket */
    } else if (after & FM__IN_NUMBERS) {
        if (fm__is_of_number(byte))
            fm_str_add(&s->current, &byte, 1);
        else if (s->current.len)
            fm__seen_keep(s);
    } else if (!(after & FM__IN_UNIQUE))
        forget(s);
    else if (before & FM__IN_ITEM && after & FM__IN_ITEM)
        fm_str_add(&s->current, &byte, 1);
    else if (before & FM__IN_ITEM)
        fm__seen_keep(s);
}

/* ---- strings ------------------------------------------------------------------------ */

/* How many bytes of `e`, more than n, it takes until only known items are left; one more than it
 * has: its closing quote, too. */
static size_t used_up_from(const fm__search *q, int32_t state, const fm__span *e, size_t n)
{
    while (n < e->len) {
        state = fm__states_byte(q->states, state, (unsigned char)e->text[n++]);
        if (state == FM__DEAD) break;
        if (fm__search_is_used_up(q, state, (fm__json_place){0}, e, n)) return n;
    }
    return e->len + 1;
}

static void exclude_strings(const fm__seen *s, fm__states *states, int32_t state,
                            const fm__token_order *o, uint32_t *bits)
{
    const size_t n         = s->current.len;
    const int    is_scarce = states->state[state].mark & FM__IN_SCARCE;
    fm_str       rest      = {0};
    fm__search   q;
    fm__search_begin(&q, s, states, FM__OF_STRINGS, 0);
    for (int i = 0; i < q.n; i++) {
        const fm__span *e = &q.known[i];
        if (e->len < n || (n && memcmp(e->text, s->current.text, n))) continue;
        const size_t end = is_scarce ? used_up_from(&q, state, e, n) : e->len + 1;
        rest.len         = 0;
        if (e->len > n) fm_str_add(&rest, e->text + n, (end < e->len ? end : e->len) - n);
        if (end > e->len) fm_str_puts(&rest, "\"");
        fm__token_order_clear(o, rest.text, rest.len, bits);
    }
    fm_str_fini(&rest);
    fm__search_end(&q);
}

/* ---- numbers ------------------------------------------------------------------------ */

enum { MAX_COMPLETED = 8, MAX_NUMBER = 48 };

/* A number as a token goes on with it, and those the token has completed. */
typedef struct {
    char   text[MAX_NUMBER];
    size_t len;
} number;
typedef struct {
    number completed[MAX_COMPLETED];
    number current;
    int    n;
} reading;

/* Would the token complete a number a second time, or leave one that can only be completed so? */
static int repeats(fm__search *q, const fm__seen *s, int32_t state, const char *bytes, size_t len)
{
    reading   r;
    const int n_seen = q->n;
    r.n              = 0;
    r.current.len    = s->current.len;
    if (r.current.len > MAX_NUMBER) return 0; /* of another array, without uniqueItems */
    if (r.current.len) memcpy(r.current.text, s->current.text, r.current.len);
    int is_repeat = 0;
    for (size_t i = 0; i < len && !is_repeat; i++) {
        if (fm__is_of_number(bytes[i])) {
            if (r.current.len == MAX_NUMBER) break;
            r.current.text[r.current.len++] = bytes[i];
        } else if (r.current.len) {
            is_repeat = fm__search_knows(q, r.current.text, r.current.len) || r.n == MAX_COMPLETED;
            if (is_repeat) break;
            r.completed[r.n] = r.current;
            q->known[q->n++] = (fm__span){r.completed[r.n].text, r.current.len};
            r.n++;
            r.current.len = 0;
        }
    }
    const fm__span *e = r.current.len ? fm__search_beginning(q, r.current.text, r.current.len) : NULL;
    for (size_t i = 0; e && !is_repeat && i < len && state != FM__DEAD; i++)
        state = fm__states_byte(q->states, state, (unsigned char)bytes[i]);
    if (e && !is_repeat && state != FM__DEAD)
        is_repeat = fm__search_is_used_up(q, state, (fm__json_place){0}, e, r.current.len);
    q->n = n_seen;
    return is_repeat;
}

static void exclude_numbers(const fm__seen *s, fm__states *states, int32_t state,
                            const fm__token_order *o, uint32_t *bits)
{
    fm__search q;
    fm__search_begin(&q, s, states, FM__OF_NUMBERS, MAX_COMPLETED);
    for (int i = 0; i < o->n; i++) {
        uint32_t      *word = &bits[o->id[i] / 32];
        const uint32_t bit  = 1u << o->id[i] % 32;
        if (*word & bit && repeats(&q, s, state, o->bytes[i], o->len[i])) *word &= ~bit;
    }
    fm__search_end(&q);
}

void fm__seen_exclude(const fm__seen *s, fm__states *states, int32_t state,
                      const fm__token_order *o, uint32_t *bits)
{
    const int mark = states->state[state].mark;
    if (mark & FM__IN_VALUES)
        fm__seen_exclude_values(s, states, state, o, bits);
    else if (mark & FM__IN_NUMBERS)
        exclude_numbers(s, states, state, o, bits);
    else if (mark & FM__IN_ITEM)
        exclude_strings(s, states, state, o, bits);
}
