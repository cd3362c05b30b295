/* SPDX-License-Identifier: Apache-2.0 */
/* One safetensors file:
 *
 *     8 bytes      length n of the header, little endian
 *     n bytes      {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, …}
 *     the rest     data; offsets count from its beginning
 *
 * Nothing in it is believed before it was checked against the file's size:
 * after a successful open every tensor lies inside the mapping and none
 * overlaps another. */
#ifndef FM_LLM_LOAD_SAFETENSORS_H
#define FM_LLM_LOAD_SAFETENSORS_H

#include "base/mapped_file.h"
#include "base/number.h"

typedef struct {
    const char *name;       /* borrowed from the file */
    const char *dtype_name; /* as spelled there */
    int         readable;   /* `dtype` is set; other types only have a size */
    fm_dtype    dtype;
    int         n_dim;
    int64_t     rows, cols; /* n_dim <= 2 */
    const void *data;       /* in the mapping */
    uint64_t    begin, end; /* data offsets */
} fm_safetensors_entry;

typedef struct {
    char                 *path;
    fm_mapped_file        map;
    int                   borrowed; /* the bytes are the caller's */
    void                 *header;   /* keeps the names alive */
    fm_safetensors_entry *entry;    /* [n_entry] by rising offset */
    int32_t               n_entry;
} fm_safetensors_file;

fm_status fm_safetensors_open(fm_safetensors_file **out, const char *path);
void      fm_safetensors_close(fm_safetensors_file *f); /* NULL is fine */

/* The same checks on bytes in memory, which must outlive the file. */
fm_status fm_safetensors_parse(fm_safetensors_file **out, const void *bytes, size_t size,
                               const char *name);

#endif
