/* SPDX-License-Identifier: Apache-2.0 */
#include "net/event_reader.h"

#include <string.h>

static void end_event(fm_event_reader *r, fm_event_fn *fn, void *ctx)
{
    if (!r->has_data) return;
    r->has_data = 0;
    fn(ctx, r->data.text ? r->data.text : "", r->data.len);
    fm_str_clear(&r->data);
}

static void take_line(fm_event_reader *r, const char *line, size_t n, fm_event_fn *fn, void *ctx)
{
    if (n && line[n - 1] == '\r') n--;
    if (n == 0) {
        end_event(r, fn, ctx);
        return;
    }
    if (n < 5 || memcmp(line, "data:", 5) != 0) return;
    const size_t skip = n > 5 && line[5] == ' ' ? 6 : 5;
    if (r->has_data) fm_str_add(&r->data, "\n", 1);
    fm_str_add(&r->data, line + skip, n - skip);
    r->has_data = 1;
}

fm_status fm_event_reader_push(fm_event_reader *r, const char *bytes, size_t n, fm_event_fn *fn,
                               void *ctx)
{
    while (n) {
        const char  *end  = memchr(bytes, '\n', n);
        const size_t part = end ? (size_t)(end - bytes) : n;
        if (r->held.len + r->data.len + part > FM_EVENT_MAX_BYTES)
            return fm_fail(FM_E_FORMAT, "an event is longer than %d bytes", FM_EVENT_MAX_BYTES);
        if (!end || r->held.len) fm_str_add(&r->held, bytes, part);
        if (!end) break;
        if (r->held.len) {
            take_line(r, r->held.text, r->held.len, fn, ctx);
            fm_str_clear(&r->held);
        } else {
            take_line(r, bytes, part, fn, ctx);
        }
        bytes += part + 1;
        n -= part + 1;
    }
    return FM_OK;
}

void fm_event_reader_fini(fm_event_reader *r)
{
    fm_str_fini(&r->held);
    fm_str_fini(&r->data);
    *r = (fm_event_reader){0};
}
