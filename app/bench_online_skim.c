/* SPDX-License-Identifier: Apache-2.0 */
/* Events of /generate that need no tree.  Each repeats all that was said
 * before it, so of all but the last only the count of tokens is read; building
 * a tree of every one would cost the measured machine more than the server
 * does.
 *
 * A word between quotes that follows a comma, a brace or a space is a key in
 * any valid JSON: inside a string the quote would follow a backslash. */
#define _GNU_SOURCE
#include <string.h>

#include "bench_online.h"

typedef struct {
    const char *at, *end;
} piece;

static piece after_space(piece p)
{
    while (p.at < p.end && *p.at == ' ') p.at++;
    return p;
}

/* What follows the key, from the first place where `quoted` is one; or nothing. */
static piece value_of(piece in, const char *quoted)
{
    const size_t n = strlen(quoted);
    for (const char *at; (at = memmem(in.at, (size_t)(in.end - in.at), quoted, n));
         in.at = at + n) {
        const piece rest   = after_space((piece){at + n, in.end});
        const int   is_key = at[-1] == ',' || at[-1] == '{' || at[-1] == ' ';
        if (is_key && rest.at < rest.end && *rest.at == ':')
            return after_space((piece){rest.at + 1, rest.end});
    }
    return (piece){in.end, in.end};
}

static int begins(piece p, const char *word)
{
    const size_t n = strlen(word);
    return (size_t)(p.end - p.at) >= n && !memcmp(p.at, word, n);
}

/* A count, or -1. */
static int number(piece p)
{
    enum { MOST_DIGITS = 9 };
    int n = 0, digits = 0;
    for (; p.at < p.end && *p.at >= '0' && *p.at <= '9' && digits <= MOST_DIGITS; p.at++, digits++)
        if (digits < MOST_DIGITS) n = 10 * n + (*p.at - '0');
    return digits > 0 && digits <= MOST_DIGITS ? n : -1;
}

/* Items of a list of numbers, or -1. */
static int count_items(piece p)
{
    if (!begins(p, "[")) return -1;
    const char *close = memchr(p.at, ']', (size_t)(p.end - p.at));
    if (!close) return -1;
    if (after_space((piece){p.at + 1, close}).at == close) return 0;
    int n = 1;
    for (const char *c = p.at; c < close; c++) n += *c == ',';
    return n;
}

int fm_skim_native(const char *json, size_t len, int *has_text)
{
    if (len < 2 || json[0] != '{' || json[len - 1] != '}') return -1;
    const piece event = {json + 1, json + len};
    const piece text  = value_of(event, "\"text\"");
    const piece ids   = value_of(event, "\"output_ids\"");
    const int   n     = number(value_of(event, "\"completion_tokens\""));
    if (n < 1 || !begins(text, "\"") || !begins(value_of(event, "\"finish_reason\""), "null"))
        return -1;
    if (ids.at < ids.end && count_items(ids) < n) return -1; /* it says only what is new */
    *has_text = !begins(text, "\"\"");
    return n;
}
