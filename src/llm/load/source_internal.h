/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of source provides; source.c does the rest for both. */
#ifndef FM_LLM_LOAD_SOURCE_INTERNAL_H
#define FM_LLM_LOAD_SOURCE_INTERNAL_H

#include "llm/load/name_table.h"
#include "llm/load/source.h"

typedef struct {
    /* Type and shape of tensor i; the name is set already. */
    fm_status (*describe)(const fm_source *s, int32_t i, fm_tensor *out);
    /* One row's part, in the tensor's own type. */
    void (*read_row)(const fm_source *s, const fm_tensor *t, int64_t row, int64_t col0,
                     int64_t n_col, void *dst);
    const void *(*data)(const fm_source *s, const fm_tensor *t); /* mapped bytes, or NULL */
    const char *(*where)(const fm_source *s, int32_t i);         /* file, for messages */
    void (*close)(fm_source *s);
} fm__source_kind;

/* The first member of each kind's own struct. */
struct fm_source {
    const fm__source_kind *kind;
    const char            *place; /* directory, for messages; borrowed from the kind's struct */
    fm_name_table          names;
};

#endif
