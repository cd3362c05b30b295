/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/text/detokenize.h"

#include <string.h>

#include "base/utf8.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

fm_detokenizer fm_detokenizer_begin(const fm_tokenizer *t, fm_special keep_special)
{
    return (fm_detokenizer){.tokenizer = t, .keep_special = keep_special};
}

/* The held bytes will never be a character: together they become one U+FFFD,
 * since each was a possible continuation of those before it. */
static void give_up(fm_detokenizer *d, fm_str *out)
{
    if (d->n_held) fm_str_puts(out, replacement);
    d->n_held = 0;
}

static void push_byte(fm_detokenizer *d, unsigned char byte, fm_str *out)
{
    if (d->n_held && !fm_utf8_continues(d->held, d->n_held, byte)) give_up(d, out);
    if (d->n_held == 0 && fm_utf8_length(byte) == 0) {
        fm_str_puts(out, replacement);
        return;
    }
    d->held[d->n_held++] = byte;
    if (d->n_held == fm_utf8_length(d->held[0])) {
        fm_str_add(out, (const char *)d->held, (size_t)d->n_held);
        d->n_held = 0;
    }
}

static int is(const char *tag, const char *bytes, size_t n)
{
    return n == strlen(tag) && !memcmp(bytes, tag, n);
}

static int is_text(fm_special kept, const char *bytes, size_t n)
{
    if (kept == FM_SPECIAL_TAGS) return is("<think>", bytes, n) || is("</think>", bytes, n);
    return kept == FM_SPECIAL_ALL;
}

void fm_detokenizer_push(fm_detokenizer *d, int32_t id, fm_str *out)
{
    size_t      n;
    const char *bytes = fm_token_bytes(d->tokenizer, id, &n);
    if (fm_token_is_special(d->tokenizer, id) && !is_text(d->keep_special, bytes, n)) return;
    for (size_t i = 0; i < n; i++) push_byte(d, (unsigned char)bytes[i], out);
}

void fm_detokenizer_end(fm_detokenizer *d, fm_str *out)
{
    give_up(d, out);
}
