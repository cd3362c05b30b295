/* SPDX-License-Identifier: Apache-2.0 */
/* Marks in streamed text: where the first one begins, or might begin. */
#ifndef FM_LLM_TEXT_MARKS_H
#define FM_LLM_TEXT_MARKS_H

#include <stddef.h>

typedef struct {
    int    which; /* index of the mark, or -1 */
    size_t at;    /* where it begins; without one: all before `at` holds no part of a mark */
} fm_mark;

/* The earliest mark in text[0..len).  No mark may be a prefix of another. */
fm_mark fm_mark_find(const char *text, size_t len, const char *const *mark, int n_mark);

#endif
