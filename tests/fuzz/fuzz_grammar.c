/* SPDX-License-Identifier: Apache-2.0 */
/* Any schema or expression is refused or followed: as long as it is followed,
 * something may come next, and what may come is taken. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/text_tiny.h"
#include "llm/grammar/grammar.h"

enum { N_TOKEN = 257, EOS = 256, MAX_STEP = 64 };

static fm_grammars *open_grammars(void)
{
    static const int32_t eos  = EOS;
    fm_tokenizer        *t    = NULL;
    fm_grammars         *gs   = NULL;
    fm_str               text = {0};
    tiny_write(&text, (tiny){.added = "[{\"id\":256,\"content\":\"<end>\",\"special\":true}]"});
    if (fm_tokenizer_parse(&t, text.text, text.len, "tiny") != FM_OK) abort();
    if (fm_grammars_create(&gs, t, N_TOKEN, &eos, 1) != FM_OK) abort();
    fm_str_fini(&text);
    return gs;
}

static int32_t next_allowed(const uint32_t *bits, int32_t from)
{
    for (int32_t i = 0; i < N_TOKEN; i++) {
        const int32_t id = (from + i) % N_TOKEN;
        if (bits[id / 32] >> id % 32 & 1) return id;
    }
    return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fm_grammars *gs;
    fm_grammar         *g = NULL;
    fm_matcher         *m = NULL;
    if (!gs) gs = open_grammars();
    if (size < 1 || size > 4096) return 0;
    const fm_grammar_kind kind = data[0] & 1 ? FM_GRAMMAR_REGEX : FM_GRAMMAR_JSON_SCHEMA;
    if (fm_grammars_get(&g, gs, kind, (const char *)data + 1, size - 1, data[0] >> 1 & 1) != FM_OK)
        return 0;
    if (fm_matcher_create(&m, g, NULL) != FM_OK) abort();
    for (int i = 0; i < MAX_STEP && !fm_matcher_is_over(m); i++) {
        const int32_t id =
            next_allowed(fm_matcher_allowed(m), (int32_t)(data[(size_t)i % size] * 7 + i));
        if (id < 0) abort();
        const fm_status rc = fm_matcher_take(m, id);
        if (rc == FM_E_NOSUP) break; /* too ambiguous to be followed further */
        if (rc != FM_OK) abort();
    }
    fm_matcher_destroy(m);
    fm_grammar_release(g);
    return 0;
}
