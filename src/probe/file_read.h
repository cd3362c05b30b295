/* SPDX-License-Identifier: Apache-2.0 */
/* How fast files of a directory are read when no cache has them: by O_DIRECT
 * where the file system can, otherwise after its pages were dropped from the
 * page cache.  Nothing is written; the largest file is read. */
#ifndef FM_PROBE_FILE_READ_H
#define FM_PROBE_FILE_READ_H

#include "base/status.h"
#include "probe/rates.h"

typedef struct {
    const char *directory;
    double      seconds; /* about so long altogether */
    int         index, n; /* of the machines that read at the same time: each reads other parts */
} fm_file_read_plan;

typedef struct {
    fm_rate rate;
    int     is_direct;   /* 0: through the page cache */
    int     is_memory;   /* the file system lies in memory (tmpfs) */
    double  total_bytes; /* of the regular files in the directory */
} fm_file_read;

/* FM_E_IO: the directory or its files cannot be read.  FM_E_NOSUP: it has no file of at least
 * 1 MiB. */
fm_status fm_file_read_measure(fm_file_read *out, const fm_file_read_plan *plan);

#endif
