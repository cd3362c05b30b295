/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/engine/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

void fm_events_fini(fm_events *b)
{
    free(b->record);
    free(b->top);
    fm_str_fini(&b->text);
    *b = (fm_events){0};
}

void fm_events_clear(fm_events *b)
{
    b->n     = 0;
    b->n_top = 0;
    fm_str_clear(&b->text);
}

static void reserve_records(fm_events *b, int more)
{
    if (b->n + more <= b->cap) return;
    b->cap    = 2 * b->cap > b->n + more ? 2 * b->cap : b->n + more;
    b->record = realloc(b->record, (size_t)b->cap * sizeof *b->record);
    FM_BUG_UNLESS(b->record != NULL);
}

static void reserve_top(fm_events *b, size_t more)
{
    if (b->n_top + more <= b->cap_top) return;
    b->cap_top = 2 * b->cap_top > b->n_top + more ? 2 * b->cap_top : b->n_top + more;
    b->top     = realloc(b->top, b->cap_top * sizeof *b->top);
    FM_BUG_UNLESS(b->top != NULL);
}

void fm_events_reserve(fm_events *b, int n_event, size_t n_text, size_t n_top)
{
    reserve_records(b, n_event);
    reserve_top(b, n_top);
    fm_str_reserve(&b->text, n_text);
}

fm_event *fm_events_begin(fm_events *b, const fm_top_logprob *top, int n_top)
{
    reserve_records(b, 1);
    reserve_top(b, (size_t)n_top);
    fm_event_record *r = &b->record[b->n++];
    *r = (fm_event_record){.ev      = {.token = -1, .prompt_at = -1, .matched_id = -1,
                                       .matched_stop = -1, .n_top = n_top},
                           .text_at = b->text.len,
                           .top_at  = b->n_top};
    if (n_top) memcpy(b->top + b->n_top, top, (size_t)n_top * sizeof *top);
    b->n_top += (size_t)n_top;
    return &r->ev;
}

void fm_events_end(fm_events *b)
{
    fm_event_record *r = &b->record[b->n - 1];
    r->ev.text_len     = b->text.len - r->text_at;
}

void fm_events_copy(fm_events *b, const fm_event *ev)
{
    fm_event *to = fm_events_begin(b, ev->top, ev->n_top);
    *to          = *ev;
    fm_str_add(&b->text, ev->text, ev->text_len);
    fm_events_end(b);
}

void fm_events_move(fm_events *to, fm_events *from)
{
    if (!to->n) {
        const fm_events empty = *to;
        *to                   = *from;
        *from                 = empty;
        return;
    }
    for (int i = 0; i < from->n; i++) {
        const fm_event ev = fm_events_get(from, i);
        fm_events_copy(to, &ev);
    }
    fm_events_clear(from);
}

fm_event fm_events_get(const fm_events *b, int i)
{
    const fm_event_record *r  = &b->record[i];
    fm_event               ev = r->ev;
    ev.text                   = b->text.text ? b->text.text + r->text_at : "";
    ev.top                    = b->top ? b->top + r->top_at : NULL;
    return ev;
}
