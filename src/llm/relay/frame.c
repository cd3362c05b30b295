/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/relay/frame.h"

#include <stdio.h>
#include <string.h>

void fm_relay_frame_write(fm_str *out, const fm_relay_tokens *fresh, int n_event, const char *data,
                          size_t len)
{
    fm_str_printf(out, "%zu %d ", len, n_event);
    fm_relay_tokens_write(out, fresh);
    fm_str_add(out, "\n", 1);
    fm_str_add(out, data, len);
}

typedef struct {
    size_t len;
    int    n_event;
    size_t tokens_at;
} line;

/* "LENGTH EVENTS TOKENS", NUL-terminated. */
static int read_line(line *l, const char *text)
{
    int n = 0;
    if (sscanf(text, "%9zu %9d%n", &l->len, &l->n_event, &n) != 2 || text[n] != ' ') return 0;
    l->tokens_at = (size_t)n + 1;
    return l->len <= FM_RELAY_MAX_FRAME && l->n_event >= FM_RELAY_ERROR;
}

/* One frame off the front of `held` from `at` on.  0: it is not complete yet; else
 * its size, or -1 if it is none. */
static long take_frame(fm_str *held, size_t at, fm_relay_tokens *tokens, fm_relay_frame *f)
{
    char       *text = held->text + at;
    const char *eol  = memchr(text, '\n', held->len - at);
    line        l;
    if (!eol) return held->len - at > FM_RELAY_MAX_FRAME ? -1 : 0;
    const size_t n = (size_t)(eol - text);
    text[n]        = 0;
    const int ok   = read_line(&l, text);
    text[n]        = '\n';
    if (!ok || l.tokens_at > n) return -1;
    if (held->len - at - n - 1 < l.len) return 0;
    if (fm_relay_tokens_read(tokens, text + l.tokens_at, n - l.tokens_at) != FM_OK) return -1;
    *f = (fm_relay_frame){text + n + 1, l.len, l.n_event};
    return (long)(n + 1 + l.len);
}

fm_status fm_relay_reader_push(fm_relay_reader *r, const char *bytes, size_t n,
                               fm_relay_tokens *tokens, fm_relay_frame_fn *fn, void *ctx)
{
    size_t at = 0;
    fm_str_add(&r->held, bytes, n);
    for (;;) {
        fm_relay_frame f;
        const long     size = at < r->held.len ? take_frame(&r->held, at, tokens, &f) : 0;
        if (size < 0) return fm_fail(FM_E_FORMAT, "the worker's stream is not in frames");
        if (!size) break;
        if (!fn(ctx, &f)) return FM_OK;
        at += (size_t)size;
    }
    if (!at) return FM_OK;
    r->held.len -= at;
    memmove(r->held.text, r->held.text + at, r->held.len + 1);
    return FM_OK;
}

int fm_relay_reader_is_between(const fm_relay_reader *r) { return r->held.len == 0; }

void fm_relay_reader_fini(fm_relay_reader *r) { fm_str_fini(&r->held); }
