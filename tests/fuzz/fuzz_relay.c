/* SPDX-License-Identifier: Apache-2.0 */
/* What a router and a server tell each other: frames in pieces of the first byte's length, or
 * the two headers of a stream that can be resumed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "llm/relay/frame.h"
#include "llm/relay/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int note(void *ctx, const fm_relay_frame *f)
{
    fm_str_printf(ctx, "[%d %zu]", f->n_event, f->len);
    fm_str_add(ctx, f->data, f->len);
    return 1;
}

static void read_frames(fm_str *out, const uint8_t *data, size_t size, size_t step)
{
    fm_relay_reader r      = {0};
    fm_relay_tokens tokens = {0};
    fm_status       rc     = FM_OK;
    for (size_t at = 0; rc == FM_OK && at < size; at += step)
        rc = fm_relay_reader_push(&r, (const char *)data + at, size - at < step ? size - at : step,
                                  &tokens, note, out);
    if (rc == FM_OK) fm_relay_tokens_write(out, &tokens);
    fm_relay_tokens_fini(&tokens);
    fm_relay_reader_fini(&r);
}

/* What is read is written as a text that is read again as the same. */
static void read_headers(const char *text)
{
    fm_relay_stream s, s2;
    fm_relay_resume r, r2;
    char            again[FM_RELAY_HEADER_ROOM];
    if (fm_relay_stream_read(&s, text)) {
        fm_relay_stream_write(again, &s);
        if (!fm_relay_stream_read(&s2, again) || s2.key != s.key || s2.created != s.created)
            abort();
    }
    if (fm_relay_resume_read(&r, text)) {
        fm_relay_resume_write(again, &r);
        if (!fm_relay_resume_read(&r2, again) || r2.n_byte != r.n_byte || r2.n_event != r.n_event)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_str whole = {0}, cut = {0};
    if (size < 2) return 0;
    if (data[0] == 0) {
        fm_str_add(&whole, (const char *)data + 1, size - 1);
        read_headers(whole.text);
        fm_str_fini(&whole);
        return 0;
    }
    read_frames(&whole, data + 1, size - 1, size);
    read_frames(&cut, data + 1, size - 1, 1 + data[0] % 32);
    if (whole.len != cut.len || (whole.len && memcmp(whole.text, cut.text, whole.len))) abort();
    fm_str_fini(&whole);
    fm_str_fini(&cut);
    return 0;
}
