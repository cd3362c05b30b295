/* SPDX-License-Identifier: Apache-2.0 */
#include "foreign_flags.h"

#include <string.h>

static int listed(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *s = list; *s; s += strcspn(s, "|"), s += *s == '|')
        if (strcspn(s, "|") == n && !strncmp(s, word, n)) return 1;
    return 0;
}

fm_status fm_foreign_explain(const fm_foreign_flag *f, const char *value, const char *command,
                             fm_str *notes)
{
    const char *gap = value ? " " : "", *shown = value ? value : "";
    if (f->harmless && !listed(f->harmless, shown))
        return fm_fail(FM_E_ARG, "--%s%s%s is not supported: %s", f->name, gap, shown, f->why);
    fm_str_printf(notes, "fathom %s: --%s%s%s: %s\n", command, f->name, gap, shown, f->why);
    return FM_OK;
}
