/* SPDX-License-Identifier: Apache-2.0 */
/* Follows a grammar at random over a tokenizer of single bytes: as long as it is
 * followed, something may come next, and what may come is taken. */
#ifndef FM_TESTS_FUZZ_WALK_H
#define FM_TESTS_FUZZ_WALK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/text_tiny.h"
#include "llm/grammar/grammar.h"

enum { N_TOKEN = 257, EOS = 256, MAX_STEP = 64 };

static inline fm_grammars *open_grammars(void)
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

static inline int32_t next_allowed(const uint32_t *bits, int32_t from)
{
    for (int32_t i = 0; i < N_TOKEN; i++) {
        const int32_t id = (from + i) % N_TOKEN;
        if (bits[id / 32] >> id % 32 & 1) return id;
    }
    return -1;
}

/* The choices come from data; g is released. */
static inline void walk(fm_grammar *g, const uint8_t *data, size_t size)
{
    fm_matcher *m = NULL;
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
}

#endif
