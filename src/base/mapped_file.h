/* SPDX-License-Identifier: Apache-2.0 */
/* A whole file, read-only, as memory. */
#ifndef FM_BASE_MAPPED_FILE_H
#define FM_BASE_MAPPED_FILE_H

#include <stddef.h>

#include "base/status.h"

typedef struct {
    const char *data; /* NULL for an empty file */
    size_t      size;
} fm_mapped_file;

fm_status fm_mapped_file_open(fm_mapped_file *out, const char *path); /* regular files only */
void      fm_mapped_file_close(fm_mapped_file *f);                    /* {0} is fine */

/* FM_E_FORMAT if the bytes are what Git leaves in a file's place until `git lfs pull` fetches it.
 */
fm_status fm_not_lfs_pointer(const char *data, size_t size, const char *path);

#endif
