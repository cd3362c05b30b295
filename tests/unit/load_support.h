/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of loading: folders that vanish, a writer of safetensors, and the
 * plainest possible reader to compare with. */
#ifndef FM_TESTS_LOAD_SUPPORT_H
#define FM_TESTS_LOAD_SUPPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/number.h"
#include "base/str.h"

typedef struct {
    char path[256];
} temp_dir;

void temp_dir_make(temp_dir *d);
void temp_dir_remove(const temp_dir *d); /* with what is in it */
void temp_file(const temp_dir *d, const char *name, const void *bytes, size_t n);
void temp_text(const temp_dir *d, const char *name, const char *text);

/* {0} is an empty file. */
typedef struct {
    fm_str header, data;
} st_writer;

/* shape: "[2, 3]" */
void st_add(st_writer *w, const char *name, const char *dtype, const char *shape, const void *bytes,
            size_t n);
void st_save(st_writer *w, const temp_dir *d, const char *file); /* and empties it */

/* header (any text) behind its true length, then n bytes of data */
void st_raw(const temp_dir *d, const char *file, const char *header, const void *data, size_t n);

typedef struct {
    char   *bytes;
    size_t  size, data_at;
    json_t *header;
    struct st_recent { /* what st_value looked up last, and its scales */
        char        name[160];
        fm_dtype    dtype;
        const char *data;
        int64_t     cols;
    } recent, scale;
} st_reader;

void st_open(st_reader *r, const char *path);
void st_close(st_reader *r);

/* One tensor as it stands in the file. */
typedef struct {
    char        dtype[16], shape[64];
    const char *data;
    size_t      bytes;
} st_tensor;

st_tensor st_find(const st_reader *r, const char *name);

/* Element (row, col) as a float; FP8 times its block's scale. */
float st_value(st_reader *r, const char *name, int64_t row, int64_t col);

#endif
