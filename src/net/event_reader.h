/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events from a stream of bytes, however the network cut it.
 * An event is the text of its data lines; comments and other fields are
 * skipped.  {0} is a fresh reader. */
#ifndef FM_NET_EVENT_READER_H
#define FM_NET_EVENT_READER_H

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"

enum { FM_EVENT_MAX_BYTES = 64 << 20 };

typedef void fm_event_fn(void *ctx, const char *data, size_t len); /* data is NUL-terminated */

typedef struct {
    fm_str held; /* the beginning of a line */
    fm_str data; /* of the event in progress */
    int    has_data;
} fm_event_reader;

/* FM_E_FORMAT: an event is longer than FM_EVENT_MAX_BYTES. */
fm_status fm_event_reader_push(fm_event_reader *r, const char *bytes, size_t n, fm_event_fn *fn,
                               void *ctx);
void      fm_event_reader_fini(fm_event_reader *r);

#endif
