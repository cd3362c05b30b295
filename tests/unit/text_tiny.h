/* SPDX-License-Identifier: Apache-2.0 */
/* A tokenizer.json small enough to write by hand: ids 0 to 255 are the bytes
 * themselves, the rest is the test's. */
#ifndef FM_TESTS_UNIT_TEXT_TINY_H
#define FM_TESTS_UNIT_TEXT_TINY_H

#include "base/str.h"

#define TINY_BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"

typedef struct {
    const char *vocab;  /* ",\"ab\":256" or NULL */
    const char *merges; /* "[\"a b\"]"; NULL: none */
    const char *pre;    /* pre_tokenizer; NULL: bytes only */
    const char *added;  /* "[{…}]"; NULL: none */
    const char *model;  /* more fields of the model, each followed by a comma; or NULL */
    const char *root;   /* more fields of the file, as JSON text; or NULL */
} tiny;

static inline int tiny_is_plain(int b)
{
    return (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
}

/* The character that spells a byte. */
static inline void tiny_spell(fm_str *out, int byte)
{
    int code = tiny_is_plain(byte) ? byte : 256;
    for (int b = 0; b < byte && code >= 256; b++) code += !tiny_is_plain(b);
    if (code == '"' || code == '\\') fm_str_puts(out, "\\");
    if (code < 0x80) fm_str_add(out, (const char[]){(char)code}, 1);
    else fm_str_add(out, (const char[]){(char)(0xc0 | code >> 6), (char)(0x80 | (code & 63))}, 2);
}

static inline void tiny_write(fm_str *out, tiny t)
{
    fm_str_clear(out);
    fm_str_printf(out, "{%s\"pre_tokenizer\":%s,\"added_tokens\":%s,", t.root ? t.root : "",
                  t.pre ? t.pre : TINY_BYTE_LEVEL, t.added ? t.added : "[]");
    fm_str_printf(out, "\"model\":{%s\"merges\":%s,\"vocab\":{", t.model ? t.model : "",
                  t.merges ? t.merges : "[]");
    for (int b = 0; b < 256; b++) {
        fm_str_puts(out, b ? ",\"" : "\"");
        tiny_spell(out, b);
        fm_str_printf(out, "\":%d", b);
    }
    fm_str_puts(out, t.vocab ? t.vocab : "");
    fm_str_puts(out, "}}}");
}

#endif
