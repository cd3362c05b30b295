/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/seen_items.h"

#include <stdlib.h>
#include <string.h>

#include "llm/grammar/nfa.h"

static void forget(fm__seen *s)
{
    for (int i = 0; i < s->n; i++) fm_str_fini(&s->item[i]);
    s->n           = 0;
    s->current.len = 0;
}

void fm__seen_fini(fm__seen *s)
{
    forget(s);
    free(s->item);
    fm_str_fini(&s->current);
    *s = (fm__seen){0};
}

static void keep_current(fm__seen *s)
{
    if (s->n == s->cap) {
        s->cap  = s->cap ? 2 * s->cap : 8;
        s->item = realloc(s->item, (size_t)s->cap * sizeof *s->item);
        FM_BUG_UNLESS(s->item != NULL);
    }
    s->item[s->n++] = s->current;
    s->current      = (fm_str){0};
}

static int is_of_number(char c) { return c == '-' || c == '.' || (c >= '0' && c <= '9'); }

void fm__seen_byte(fm__seen *s, int before, int after, char byte)
{
    if (after & FM__IN_NUMBERS) {
        if (is_of_number(byte))
            fm_str_add(&s->current, &byte, 1);
        else if (s->current.len)
            keep_current(s);
    } else if (!(after & FM__IN_UNIQUE))
        forget(s);
    else if (before & FM__IN_ITEM && after & FM__IN_ITEM)
        fm_str_add(&s->current, &byte, 1);
    else if (before & FM__IN_ITEM)
        keep_current(s);
}

/* How token number i compares with texts that begin with these bytes: 0, it is one. */
static int compare(const fm__token_order *o, int i, const char *bytes, size_t n)
{
    const size_t len = o->len[i];
    const int    c   = memcmp(o->bytes[i], bytes, len < n ? len : n);
    return c ? c : len < n ? -1 : 0;
}

/* The first token that does not come before such texts. */
static int first_not_before(const fm__token_order *o, const char *bytes, size_t n)
{
    int lo = 0, hi = o->n;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (compare(o, mid, bytes, n) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void exclude_beginning(const fm__token_order *o, const char *bytes, size_t n, uint32_t *bits)
{
    for (int i = first_not_before(o, bytes, n); i < o->n && !compare(o, i, bytes, n); i++)
        bits[o->id[i] / 32] &= ~(1u << o->id[i] % 32);
}

/* ---- beginnings that only known items have ---------------------------------------- */

typedef struct {
    const char *text;
    size_t      len;
} span;

typedef struct {
    fm__states *states;
    int         of_numbers;
    span       *known; /* [n] items written so far */
    int         n;
} search;

static int is_span(span a, const char *text, size_t len)
{
    return a.len == len && (!len || !memcmp(a.text, text, len));
}

static int is_known(const search *q, const char *text, size_t len)
{
    for (int i = 0; i < q->n; i++)
        if (is_span(q->known[i], text, len)) return 1;
    return 0;
}

/* A known item that begins with these bytes, or NULL. */
static const span *find_beginning(const search *q, const char *text, size_t len)
{
    for (int i = 0; i < q->n; i++)
        if (q->known[i].len >= len && (!len || !memcmp(q->known[i].text, text, len)))
            return &q->known[i];
    return NULL;
}

/* ... and then this one. */
static const span *find_longer(const search *q, const span *e, size_t n, unsigned char byte)
{
    for (int i = 0; i < q->n; i++)
        if (q->known[i].len > n && (unsigned char)q->known[i].text[n] == byte &&
            (!n || !memcmp(q->known[i].text, e->text, n)))
            return &q->known[i];
    return NULL;
}

static int ends_item(const search *q, int32_t to, unsigned char byte)
{
    return q->of_numbers ? !is_of_number((char)byte) : !(q->states->state[to].mark & FM__IN_ITEM);
}

/* Are all items that begin with n bytes of `e` known?  `state`: behind these bytes. */
static int is_used_up(const search *q, int32_t state, const span *e, size_t n)
{
    for (int byte = 0; byte < 256; byte++) {
        const int32_t to = fm__states_byte(q->states, state, (unsigned char)byte);
        if (to == FM__DEAD) continue;
        if (ends_item(q, to, (unsigned char)byte)) {
            if (!is_known(q, e->text, n)) return 0;
            continue;
        }
        const span *longer = find_longer(q, e, n, (unsigned char)byte);
        if (!longer || !is_used_up(q, to, longer, n + 1)) return 0;
    }
    return 1;
}

static void begin_search(search *q, const fm__seen *s, fm__states *states, int n_more)
{
    *q       = (search){.states = states, .n = s->n};
    q->known = malloc((size_t)(s->n + n_more + 1) * sizeof *q->known);
    FM_BUG_UNLESS(q->known != NULL);
    for (int i = 0; i < s->n; i++) q->known[i] = (span){s->item[i].text, s->item[i].len};
    fm__states_begin_walk(states);
}

/* ---- strings ------------------------------------------------------------------------ */

/* How many bytes of `e`, more than n, it takes until only known items are left; one more than it
 * has: its closing quote, too. */
static size_t used_up_from(const search *q, int32_t state, const span *e, size_t n)
{
    while (n < e->len) {
        state = fm__states_byte(q->states, state, (unsigned char)e->text[n++]);
        if (state == FM__DEAD) break;
        if (is_used_up(q, state, e, n)) return n;
    }
    return e->len + 1;
}

static void exclude_strings(const fm__seen *s, fm__states *states, int32_t state,
                            const fm__token_order *o, uint32_t *bits)
{
    const size_t n         = s->current.len;
    const int    is_scarce = states->state[state].mark & FM__IN_SCARCE;
    fm_str       rest      = {0};
    search       q;
    begin_search(&q, s, states, 0);
    for (int i = 0; i < q.n; i++) {
        const span *e = &q.known[i];
        if (e->len < n || (n && memcmp(e->text, s->current.text, n))) continue;
        const size_t end = is_scarce ? used_up_from(&q, state, e, n) : e->len + 1;
        rest.len         = 0;
        if (e->len > n) fm_str_add(&rest, e->text + n, (end < e->len ? end : e->len) - n);
        if (end > e->len) fm_str_puts(&rest, "\"");
        exclude_beginning(o, rest.text, rest.len, bits);
    }
    fm_str_fini(&rest);
    free(q.known);
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
static int repeats(search *q, const fm__seen *s, int32_t state, const char *bytes, size_t len)
{
    reading   r;
    const int n_seen = q->n;
    r.n              = 0;
    r.current.len    = s->current.len;
    if (r.current.len > MAX_NUMBER) return 0; /* of another array, without uniqueItems */
    if (r.current.len) memcpy(r.current.text, s->current.text, r.current.len);
    int is_repeat = 0;
    for (size_t i = 0; i < len && !is_repeat; i++) {
        if (is_of_number(bytes[i])) {
            if (r.current.len == MAX_NUMBER) break;
            r.current.text[r.current.len++] = bytes[i];
        } else if (r.current.len) {
            is_repeat = is_known(q, r.current.text, r.current.len) || r.n == MAX_COMPLETED;
            if (is_repeat) break;
            r.completed[r.n] = r.current;
            q->known[q->n++] = (span){r.completed[r.n].text, r.current.len};
            r.n++;
            r.current.len = 0;
        }
    }
    const span *e = r.current.len ? find_beginning(q, r.current.text, r.current.len) : NULL;
    for (size_t i = 0; e && !is_repeat && i < len && state != FM__DEAD; i++)
        state = fm__states_byte(q->states, state, (unsigned char)bytes[i]);
    if (e && !is_repeat && state != FM__DEAD) is_repeat = is_used_up(q, state, e, r.current.len);
    q->n = n_seen;
    return is_repeat;
}

static void exclude_numbers(const fm__seen *s, fm__states *states, int32_t state,
                            const fm__token_order *o, uint32_t *bits)
{
    search q;
    begin_search(&q, s, states, MAX_COMPLETED);
    q.of_numbers = 1;
    for (int i = 0; i < o->n; i++) {
        uint32_t      *word = &bits[o->id[i] / 32];
        const uint32_t bit  = 1u << o->id[i] % 32;
        if (*word & bit && repeats(&q, s, state, o->bytes[i], o->len[i])) *word &= ~bit;
    }
    free(q.known);
}

void fm__seen_exclude(const fm__seen *s, fm__states *states, int32_t state,
                      const fm__token_order *o, uint32_t *bits)
{
    const int mark = states->state[state].mark;
    if (mark & FM__IN_NUMBERS)
        exclude_numbers(s, states, state, o, bits);
    else if (mark & FM__IN_ITEM)
        exclude_strings(s, states, state, o, bits);
}
