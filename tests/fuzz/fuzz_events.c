/* SPDX-License-Identifier: Apache-2.0 */
/* A server's reply as events, however it was cut; the first byte is the length of the pieces. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/event_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note(void *ctx, const char *data, size_t len)
{
    if (data[len]) abort();
    fm_str_printf(ctx, "[%zu]", len);
    fm_str_add(ctx, data, len);
}

static void read_events(fm_str *out, const uint8_t *data, size_t size, size_t step)
{
    fm_event_reader r = {0};
    for (size_t at = 0; at < size; at += step)
        if (fm_event_reader_push(&r, (const char *)data + at, size - at < step ? size - at : step,
                                 note, out) != FM_OK)
            break;
    fm_event_reader_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_str whole = {0}, cut = {0};
    if (size < 2) return 0;
    read_events(&whole, data + 1, size - 1, size);
    read_events(&cut, data + 1, size - 1, 1 + data[0] % 32);
    if (whole.len != cut.len || (whole.len && memcmp(whole.text, cut.text, whole.len))) abort();
    fm_str_fini(&whole);
    fm_str_fini(&cut);
    return 0;
}
