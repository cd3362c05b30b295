/* SPDX-License-Identifier: Apache-2.0 */
/* The pre-tokeniser: a sequence of patterns, each run on every piece that the
 * ones before it left.  A piece is matched as a text of its own: it begins
 * and ends where `^`, `$` and look-arounds see it end.
 *
 * The patterns are immutable once added; each thread has a scratch. */
#ifndef FM_LLM_TEXT_SPLITS_INTERNAL_H
#define FM_LLM_TEXT_SPLITS_INTERNAL_H

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"

enum { FM__MAX_SPLITS = 16, FM__MAX_PATTERN_BYTES = 1 << 15 };

typedef enum {
    FM__KEEP_ALL,     /* matches and the gaps between them become pieces */
    FM__KEEP_MATCHES, /* gaps are dropped */
    FM__KEEP_GAPS,    /* matches are dropped */
} fm__split_keep;

typedef struct {
    void          *code; /* pcre2_code, owned */
    fm__split_keep keep;
    int            jit;
} fm__split;

typedef struct {
    fm__split step[FM__MAX_SPLITS];
    int       n;
} fm__splits;

/* `pattern` in the syntax of tokenizer.json; `file` for messages. */
fm_status fm__splits_add(fm__splits *s, const char *pattern, fm__split_keep keep, const char *file);
void      fm__splits_fini(fm__splits *s);

typedef struct fm__splits_scratch fm__splits_scratch;
fm_status fm__splits_scratch_create(fm__splits_scratch **out, const fm__splits *s);
void      fm__splits_scratch_destroy(fm__splits_scratch *x);

typedef fm_status fm__piece_fn(void *to, const char *piece, size_t n);

/* A new text: time spent on it is counted from here. */
void fm__splits_begin(fm__splits_scratch *x, size_t text_bytes);

/* Calls emit for every piece, left to right; text must be valid UTF-8.  A
 * pattern that backtracks without end on this text is FM_E_FORMAT. */
fm_status fm__splits_run(const fm__splits *s, fm__splits_scratch *x, const char *text, size_t n,
                         fm__piece_fn *emit, void *to);

/* Rewrites a pattern of tokenizer.json for PCRE2; what the two read
 * differently and is not rewritten is refused (FM_E_NOSUP). */
fm_status fm__pattern_translate(const char *pattern, const char *file, fm_str *out);
void      fm__pattern_quote(const char *literal, fm_str *out); /* matches itself */

#endif
