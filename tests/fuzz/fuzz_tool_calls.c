/* SPDX-License-Identifier: Apache-2.0 */
/* Any text, cut anywhere, gives the calls it gives in one piece. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "llm/text/tool_calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    fm_str        all;
    fm_tool_piece last;
} seen;

static void note(void *ctx, fm_tool_piece kind, int index, const char *id, const char *text,
                 size_t len)
{
    seen *s = ctx;
    if (kind == FM_TOOL_NAME || kind != s->last) fm_str_printf(&s->all, "[%d %d %s]", kind, index, id);
    fm_str_add(&s->all, text, len);
    s->last = kind;
}

static void parse(seen *s, fm_tool_style style, const char *text, size_t len, size_t step)
{
    fm_tool_calls t;
    fm_tool_calls_init(&t, style, note, s);
    for (size_t at = 0; at < len; at += step)
        fm_tool_calls_push(&t, text + at, len - at < step ? len - at : step);
    fm_tool_calls_end(&t);
    fm_tool_calls_fini(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const fm_tool_style style = (fm_tool_style)(data[0] % 3);
    seen                whole = {.last = FM_TOOL_TEXT}, cut = {.last = FM_TOOL_TEXT};
    parse(&whole, style, (const char *)data + 2, size - 2, size);
    parse(&cut, style, (const char *)data + 2, size - 2, 1 + data[1] % 16);
    if (whole.all.len != cut.all.len ||
        (whole.all.len && memcmp(whole.all.text, cut.all.text, whole.all.len)))
        abort();
    fm_str_fini(&whole.all);
    fm_str_fini(&cut.all);
    return 0;
}
