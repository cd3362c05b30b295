/* SPDX-License-Identifier: Apache-2.0 */
/* Events in the order they happened: fixed-size records, and the text and
 * log-probabilities they point into.
 *
 *     step ──new──> fm_events ──poll, or a swap of whole batches──> reply
 *
 * One record serves from the engine to the reply.  A batch keeps its memory
 * when it is cleared or swapped; after fm_events_reserve() that many events are
 * added without allocating. */
#ifndef FM_LLM_ENGINE_EVENTS_H
#define FM_LLM_ENGINE_EVENTS_H

#include "base/str.h"
#include "fathom/fathom.h"

typedef struct {
    fm_event ev; /* without text and top: the buffers may still move */
    size_t   text_at, top_at;
} fm_event_record;

typedef struct {
    fm_event_record *record; /* [n] owned, as are text and top */
    int              n, cap;
    fm_str           text;
    fm_top_logprob  *top; /* [n_top] */
    size_t           n_top, cap_top;
} fm_events; /* {0} is an empty one */

void fm_events_fini(fm_events *b);
void fm_events_clear(fm_events *b);
void fm_events_reserve(fm_events *b, int n_event, size_t n_text, size_t n_top);

/* A new event with these log-probabilities.  Text that is added to b->text
 * before fm_events_end() is the event's. */
fm_event *fm_events_begin(fm_events *b, const fm_top_logprob *top, int n_top);
void      fm_events_end(fm_events *b);

void fm_events_copy(fm_events *b, const fm_event *ev); /* one from elsewhere, with all it points to */

/* All of `from` goes behind what is in `to`; `from` is empty then.  Costs a
 * swap where `to` is empty. */
void fm_events_move(fm_events *to, fm_events *from);

/* Event i; its pointers are valid until the batch changes. */
fm_event fm_events_get(const fm_events *b, int i);

#endif
