/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of SGLang and vLLM that mean nothing here, so that a job script works
 * with only the program's name replaced.  Each is accepted with a sentence;
 * values that would change the answers are refused. */
#ifndef FM_APP_FOREIGN_FLAGS_H
#define FM_APP_FOREIGN_FLAGS_H

#include "base/status.h"
#include "base/str.h"

typedef enum { FM_TAKES_NOTHING, FM_TAKES_VALUE, FM_TAKES_MANY } fm_foreign_takes;

typedef struct {
    const char      *name;
    fm_foreign_takes takes;
    const char      *harmless; /* values that change nothing, "a|b"; NULL: all, "": none */
    const char      *why;
} fm_foreign_flag;

extern const fm_foreign_flag fm_foreign_flags[];
extern const int             fm_n_foreign_flag;

/* Adds "fathom COMMAND: --flag value: why" to notes, or fails with FM_E_ARG. */
fm_status fm_foreign_explain(const fm_foreign_flag *f, const char *value, const char *command,
                             fm_str *notes);

#endif
