/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile tokenizer.json, then a hostile text through what was read.  The
 * input is the file, a zero byte, the text. */
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"
#include "llm/text/detokenize.h"
#include "llm/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const fm_tokenizer *t, const fm_ids *ids)
{
    fm_str         out = {0};
    fm_detokenizer d   = fm_detokenizer_begin(t, 1);
    for (size_t i = 0; i < ids->n; i++) fm_detokenizer_push(&d, ids->id[i], &out);
    fm_detokenizer_end(&d, &out);
    FM_BUG_UNLESS(fm_utf8_prefix(out.text, out.len) == out.len);
    fm_str_fini(&out);
}

static void encode(const fm_tokenizer *t, const char *text, size_t n)
{
    fm_tokenizer_scratch *s = NULL;
    if (fm_tokenizer_scratch_create(&s, t) != FM_OK) return;
    for (int flags = 0; flags <= (FM_ENCODE_BOS | FM_ENCODE_PLAIN); flags++) {
        fm_ids ids = {0};
        if (fm_encode(t, s, text, n, flags, &ids) == FM_OK)
            decode(t, &ids);
        else
            FM_BUG_UNLESS(ids.n == 0);
        fm_ids_fini(&ids);
    }
    fm_tokenizer_scratch_destroy(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char   *json = (const char *)data, *zero = size ? memchr(json, 0, size) : NULL;
    const size_t  n = zero ? (size_t)(zero - json) : size;
    fm_tokenizer *t = NULL;
    if (fm_tokenizer_parse(&t, json, n, "fuzz") == FM_OK && zero) encode(t, zero + 1, size - n - 1);
    fm_tokenizer_close(t);
    return 0;
}
