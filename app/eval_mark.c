/* SPDX-License-Identifier: Apache-2.0 */
/* Marking an answer.  Only what follows the reasoning counts. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"

#define CALLS_BEGIN "<｜tool▁calls▁begin｜>"
#define CALLS_END   "<｜tool▁calls▁end｜>"
#define CALL_BEGIN  "<｜tool▁call▁begin｜>function<｜tool▁sep｜>"
#define CALL_END    "\n```<｜tool▁call▁end｜>"
#define ARGS_BEGIN  "\n```json\n"

/* A piece of the answer. */
typedef struct {
    const char *at;
    size_t      n;
} piece;

static piece trimmed(piece p)
{
    while (p.n && isspace((unsigned char)p.at[0])) p.at++, p.n--;
    while (p.n && isspace((unsigned char)p.at[p.n - 1])) p.n--;
    return p;
}

static piece after_thought(const fm_str *answer)
{
    static const char end[] = "</think>";
    const char       *from  = answer->text ? answer->text : "";
    for (const char *p; (p = strstr(from, end));) from = p + strlen(end);
    return trimmed((piece){from, strlen(from)});
}

static int equals(piece p, const char *text)
{
    return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

static int contains(piece p, const char *text)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i + n <= p.n; i++)
        if (memcmp(p.at + i, text, n) == 0) return 1;
    return 0;
}

/* A minus counts unless it follows a digit: 5-3 ends in 3, "= -3" in -3. */
static int last_integer(piece p, long long *out)
{
    size_t end = p.n;
    while (end && !isdigit((unsigned char)p.at[end - 1])) end--;
    if (end == 0) return 0;
    size_t from = end;
    while (from && isdigit((unsigned char)p.at[from - 1])) from--;
    if (end - from > 18) return 0;
    char digits[20] = {0};
    memcpy(digits, p.at + from, end - from);
    *out = strtoll(digits, NULL, 10);
    const int minus = from && p.at[from - 1] == '-';
    if (minus && !(from > 1 && isdigit((unsigned char)p.at[from - 2]))) *out = -*out;
    return 1;
}

static void mark_number(fm_eval_item *it, piece p, const json_t *value)
{
    long long n   = 0;
    it->is_formed = last_integer(p, &n);
    it->is_right  = it->is_formed && n == json_integer_value(value);
}

static int same_kind(const json_t *a, const json_t *b)
{
    if (json_is_boolean(a)) return json_is_boolean(b);
    return json_typeof(a) == json_typeof(b);
}

static int fits(const json_t *got, const json_t *want)
{
    const char *key;
    json_t     *v;
    if (!json_is_object(got) || json_object_size(got) != json_object_size(want)) return 0;
    json_object_foreach((json_t *)want, key, v) {
        const json_t *other = json_object_get(got, key);
        if (!other || !same_kind(v, other)) return 0;
    }
    return 1;
}

static void mark_json(fm_eval_item *it, piece p, const json_t *value)
{
    json_t *got   = json_loadb(p.at, p.n, JSON_REJECT_DUPLICATES, NULL);
    it->is_formed = fits(got, value);
    it->is_right  = it->is_formed && json_equal(got, value);
    json_decref(got);
}

/* If *p begins with `text`, steps over it. */
static int skip(piece *p, const char *text)
{
    const size_t n = strlen(text);
    if (p->n < n || memcmp(p->at, text, n) != 0) return 0;
    p->at += n;
    p->n -= n;
    return 1;
}

/* Cuts off what comes before `text`, and steps over that as well. */
static int take_until(piece *p, const char *text, piece *out)
{
    const size_t n = strlen(text);
    for (size_t i = 0; i + n <= p->n; i++) {
        if (memcmp(p->at + i, text, n) != 0) continue;
        *out = (piece){p->at, i};
        p->at += i + n;
        p->n -= i + n;
        return 1;
    }
    return 0;
}

static int is_offered(const json_t *tools, piece name)
{
    size_t        i;
    const json_t *t;
    json_array_foreach(tools, i, t) {
        const char *known =
            json_string_value(json_object_get(json_object_get(t, "function"), "name"));
        if (known && equals(name, known)) return 1;
    }
    return 0;
}

/* The calls as [[name, arguments], ...]; NULL when the form is not kept. */
static json_t *read_calls(piece p, const json_t *tools)
{
    json_t *calls = json_array();
    int     more  = skip(&p, CALLS_BEGIN);
    int     ok    = more;
    while (ok && more) {
        piece name, args;
        ok = skip(&p, CALL_BEGIN) && take_until(&p, ARGS_BEGIN, &name) &&
             take_until(&p, CALL_END, &args) && is_offered(tools, name);
        json_t *object = ok ? json_loadb(args.at, args.n, 0, NULL) : NULL;
        ok             = json_is_object(object);
        if (ok) json_array_append_new(calls, json_pack("[s%,o]", name.at, name.n, object));
        more = skip(&p, "\n");
    }
    if (ok && skip(&p, CALLS_END) && p.n == 0) return calls;
    json_decref(calls);
    return NULL;
}

static void mark_call(fm_eval_item *it, piece p, const json_t *value)
{
    json_t *calls = read_calls(p, it->tools);
    it->is_formed = calls != NULL;
    it->is_right  = calls && json_equal(calls, value);
    json_decref(calls);
}

void fm_eval_mark(fm_eval_item *it)
{
    const piece   p     = after_thought(&it->answer);
    const char   *kind  = json_string_value(json_object_get(it->check, "kind"));
    const json_t *value = json_object_get(it->check, "value");
    const char   *text  = json_is_string(value) ? json_string_value(value) : "";
    if (it->finish != FM_FINISH_STOP) return;
    it->is_formed = p.n > 0;
    if (!strcmp(kind, "number")) mark_number(it, p, value);
    else if (!strcmp(kind, "json")) mark_json(it, p, value);
    else if (!strcmp(kind, "call")) mark_call(it, p, value);
    else if (!strcmp(kind, "text")) it->is_right = equals(p, text);
    else if (!strcmp(kind, "contains")) it->is_right = *text && contains(p, text);
    else if (!strcmp(kind, "prose")) it->is_right = p.n && strchr(".!?\"", p.at[p.n - 1]) != NULL;
}
