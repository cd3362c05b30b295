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

static int is_of_number(char c)
{
    return c == '-' || (c >= '0' && c <= '9');
}

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

static void exclude_strings(const fm__seen *s, const fm__token_order *o, uint32_t *bits)
{
    const size_t n    = s->current.len;
    fm_str       rest = {0};
    for (int i = 0; i < s->n; i++) {
        const fm_str *e = &s->item[i];
        if (e->len < n || (n && memcmp(e->text, s->current.text, n))) continue;
        rest.len = 0;
        if (e->len > n) fm_str_add(&rest, e->text + n, e->len - n);
        fm_str_puts(&rest, "\"");
        exclude_beginning(o, rest.text, rest.len, bits);
    }
    fm_str_fini(&rest);
}

/* An integer as a token goes on with it, and those the token has completed. */
typedef struct {
    char   text[FM__MAX_UNIQUE_DIGITS + 2];
    size_t len;
} number;
enum { MAX_COMPLETED = 8 };
typedef struct {
    const fm__seen *seen;
    number          completed[MAX_COMPLETED];
    int             n;
    number          current;
} reading;

static int is_known(const reading *r)
{
    const number *c = &r->current;
    for (int i = 0; i < r->seen->n; i++)
        if (r->seen->item[i].len == c->len && !memcmp(r->seen->item[i].text, c->text, c->len))
            return 1;
    for (int i = 0; i < r->n; i++)
        if (r->completed[i].len == c->len && !memcmp(r->completed[i].text, c->text, c->len))
            return 1;
    return 0;
}

/* No digit can follow it. */
static int is_final(const number *c)
{
    return (c->len == 1 && *c->text == '0') ||
           c->len == FM__MAX_UNIQUE_DIGITS + (size_t)(*c->text == '-');
}

/* Would the token complete an integer a second time, or leave one that can only be completed so? */
static int repeats(const fm__seen *s, const char *bytes, size_t len)
{
    reading r = {.seen = s};
    if (s->current.len > sizeof r.current.text)
        return 0; /* of another array, without uniqueItems */
    if (s->current.len) memcpy(r.current.text, s->current.text, s->current.len);
    r.current.len = s->current.len;
    for (size_t i = 0; i < len; i++) {
        if (is_of_number(bytes[i])) {
            if (r.current.len == sizeof r.current.text) return 0;
            r.current.text[r.current.len++] = bytes[i];
        } else if (r.current.len) {
            if (is_known(&r) || r.n == MAX_COMPLETED) return 1;
            r.completed[r.n++] = r.current;
            r.current.len      = 0;
        }
    }
    return r.current.len && is_final(&r.current) && is_known(&r);
}

static void exclude_numbers(const fm__seen *s, const fm__token_order *o, uint32_t *bits)
{
    for (int i = 0; i < o->n; i++) {
        uint32_t      *word = &bits[o->id[i] / 32];
        const uint32_t bit  = 1u << o->id[i] % 32;
        if (*word & bit && repeats(s, o->bytes[i], o->len[i])) *word &= ~bit;
    }
}

void fm__seen_exclude(const fm__seen *s, int mark, const fm__token_order *o, uint32_t *bits)
{
    if (mark & FM__IN_NUMBERS)
        exclude_numbers(s, o, bits);
    else if (mark & FM__IN_ITEM)
        exclude_strings(s, o, bits);
}
