/* SPDX-License-Identifier: Apache-2.0 */
/* Any schema or expression is refused or followed.  The first byte chooses: an
 * expression, or a schema with white space before it, without any, or of its own. */
#include "fuzz_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fm_grammars *gs;
    fm_grammar         *g = NULL;
    if (!gs) gs = open_grammars();
    if (size < 1 || size > 4096) return 0;
    const char           *text  = (const char *)data + 1;
    const int             flags = data[0] >> 1 & 3;
    const fm_grammar_kind kind  = data[0] & 1 ? FM_GRAMMAR_REGEX : FM_GRAMMAR_JSON_SCHEMA;
    const fm_status       rc    = (data[0] & 0xf9) == 0xf8
                                      ? fm_grammars_get_spaced(&g, gs, text, size - 1, "[ \\n]?", flags)
                                      : fm_grammars_get(&g, gs, kind, text, size - 1, flags);
    if (rc == FM_OK) walk(g, data, size);
    return 0;
}
