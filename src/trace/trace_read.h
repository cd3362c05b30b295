/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a trace: also one whose writer was killed or is still at work, and one whose bytes are
 * anything at all.  What is handed out has been checked: indices are in range, texts end, names are
 * printable, times do not wrap. */
#ifndef FM_TRACE_TRACE_READ_H
#define FM_TRACE_TRACE_READ_H

#include <stddef.h>

#include "base/mapped_file.h"
#include "base/status.h"
#include "trace/format.h"

typedef struct {
    fm_trace_head  head;
    int            n_key;
    fm_trace_key  *key; /* [n_key] owned */
    fm_trace_sum  *sum; /* [n_key] owned */
    size_t         n_span;
    fm_trace_span *span;      /* [n_span] owned; by their end, oldest first */
    uint64_t       n_lost;    /* overwritten in the ring */
    uint64_t       n_damaged; /* left out: torn, or nonsense */
} fm_trace_file;

/* FM_E_IO: cannot be opened.  FM_E_FORMAT: it is no trace, or of another version; says why. */
fm_status fm_trace_load(fm_trace_file *out, const char *path);
fm_status fm_trace_parse(fm_trace_file *out, const void *data, size_t size, const char *name);
void      fm_trace_file_fini(fm_trace_file *f); /* {0} is fine */

#endif
