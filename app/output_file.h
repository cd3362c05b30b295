/* SPDX-License-Identifier: Apache-2.0 */
/* A file that a command leaves behind, named by a flag.
 *
 * What replaces a regular file is written beside it and takes its place when it
 * is complete.  Anything else (a device, a pipe, standard output) is written to
 * where it is and never replaced; of a symbolic link, the target is written. */
#ifndef FM_APP_OUTPUT_FILE_H
#define FM_APP_OUTPUT_FILE_H

#include <stdio.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/str.h"

typedef struct {
    FILE       *to;          /* write here, close with fm_output_close() */
    const char *flag, *path; /* borrowed: for messages */
    fm_str      draft;       /* what is being written, */
    char       *target;      /* and what it becomes; owned, NULL: written in place */
    off_t       kept;        /* bytes that a file to append to had; negative: it is another */
} fm_output_file;

/* Can it be written?  Better known before a long run; nothing is created.  NULL
 * and "" are no file. */
fm_status fm_output_check(const char *flag, const char *path);

/* FM_E_IO: cannot be opened; there is nothing to close. */
fm_status fm_output_create(fm_output_file *o, const char *flag, const char *path);
fm_status fm_output_append(fm_output_file *o, const char *flag, const char *path);

/* FM_E_IO: not all of it was written; a file that was to be replaced or appended to is as before. */
fm_status fm_output_close(fm_output_file *o);

/* A whole file at once. */
fm_status fm_output_write(const char *flag, const char *path, const fm_str *text);

#endif
