/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/text/reasoning.h"

#include <string.h>

#include "llm/text/marks.h"

static const char open_tag[] = "<think>", close_tag[] = "</think>";

void fm_reasoning_init(fm_reasoning *r, fm_reasoning_mode mode, const char *also_ends)
{
    *r = (fm_reasoning){.mode = mode, .also_ends = also_ends};
    if (mode == FM_REASONING_OFF) r->at = FM_REASONING_AFTER;
}

void fm_reasoning_fini(fm_reasoning *r)
{
    fm_str_fini(&r->held);
}

static void drop(fm_str *s, size_t n)
{
    memmove(s->text, s->text + n, s->len - n + 1);
    s->len -= n;
}

/* The tag, or its beginning, or something else? */
static void read_start(fm_reasoning *r)
{
    const size_t tag = strlen(open_tag);
    const size_t n   = r->held.len < tag ? r->held.len : tag;
    if (!n) return;
    if (memcmp(r->held.text, open_tag, n)) {
        r->at = r->mode == FM_REASONING_OPEN ? FM_REASONING_INSIDE : FM_REASONING_AFTER;
    } else if (n == tag) {
        drop(&r->held, tag);
        r->at = FM_REASONING_INSIDE;
    }
}

static void read_inside(fm_reasoning *r, fm_str *thought)
{
    const char   *mark[] = {close_tag, r->also_ends};
    const int     n_mark = r->also_ends ? 2 : 1;
    const fm_mark hit    = fm_mark_find(r->held.text, r->held.len, mark, n_mark);
    fm_str_add(thought, r->held.text, hit.at);
    drop(&r->held, hit.at);
    if (hit.which < 0) return;
    if (hit.which == 0) drop(&r->held, strlen(close_tag));
    r->at = FM_REASONING_AFTER;
}

void fm_reasoning_push(fm_reasoning *r, const char *text, size_t len, fm_str *thought, fm_str *said)
{
    if (r->at != FM_REASONING_AFTER) {
        fm_str_add(&r->held, text, len);
        if (r->at == FM_REASONING_START) read_start(r);
        if (r->at == FM_REASONING_INSIDE && r->held.len) read_inside(r, thought);
        if (r->at != FM_REASONING_AFTER) return;
        fm_str_add(said, r->held.text, r->held.len);
        fm_str_clear(&r->held);
        return;
    }
    fm_str_add(said, text, len);
}

void fm_reasoning_end(fm_reasoning *r, fm_str *thought, fm_str *said)
{
    const int inside = r->at == FM_REASONING_INSIDE ||
                       (r->at == FM_REASONING_START && r->mode == FM_REASONING_OPEN);
    if (r->held.len) fm_str_add(inside ? thought : said, r->held.text, r->held.len);
    fm_str_clear(&r->held);
    r->at = FM_REASONING_AFTER;
}
