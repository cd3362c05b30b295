/* SPDX-License-Identifier: Apache-2.0 */
/* A hand-written tokenizer, and what it makes of a text. */
#ifndef FM_TESTS_UNIT_TEXT_ENCODE_H
#define FM_TESTS_UNIT_TEXT_ENCODE_H

#include <string.h>

#include "base/status.h"
#include "llm/text/tokenizer.h"
#include "text_tiny.h"

static inline fm_tokenizer *parse(tiny what)
{
    fm_str        json = {0};
    fm_tokenizer *t    = NULL;
    tiny_write(&json, what);
    if (fm_tokenizer_parse(&t, json.text, json.len, "tiny") != FM_OK) fail_msg("%s", fm_why());
    fm_str_fini(&json);
    return t;
}

static inline fm_ids encode(const fm_tokenizer *t, const char *text, int flags)
{
    fm_ids                ids = {0};
    fm_tokenizer_scratch *s   = NULL;
    assert_int_equal(fm_tokenizer_scratch_create(&s, t), FM_OK);
    if (fm_encode(t, s, text, strlen(text), flags, &ids) != FM_OK) fail_msg("%s", fm_why());
    fm_tokenizer_scratch_destroy(s);
    return ids;
}

/* want: ids separated by spaces. */
static inline void check(const fm_tokenizer *t, const char *text, int flags, const char *want)
{
    fm_ids ids = encode(t, text, flags);
    fm_str got = {0};
    for (size_t i = 0; i < ids.n; i++) fm_str_printf(&got, i ? " %d" : "%d", (int)ids.id[i]);
    assert_string_equal(got.text ? got.text : "", want);
    fm_str_fini(&got);
    fm_ids_fini(&ids);
}

#endif
