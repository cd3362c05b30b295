/* SPDX-License-Identifier: Apache-2.0 */
/* Any grammar in EBNF is refused or followed. */
#include "fuzz_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fm_grammars *gs;
    fm_grammar         *g = NULL;
    if (!gs) gs = open_grammars();
    if (size < 1 || size > 4096) return 0;
    if (fm_grammars_get(&g, gs, FM_GRAMMAR_EBNF, (const char *)data, size, 0) == FM_OK)
        walk(g, data, size);
    return 0;
}
