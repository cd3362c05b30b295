/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a trace: a sentence that says why not, or a trace whose indices and texts hold. */
#include <string.h>

#include "trace/trace_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_trace_file f = {0};
    if (fm_trace_parse(&f, data, size, "fuzz") != FM_OK) {
        FM_BUG_UNLESS(fm_why()[0]);
        return 0;
    }
    FM_BUG_UNLESS(f.n_key <= FM_TRACE_KEYS && f.head.rank >= 0 && f.head.rank < f.head.n_rank);
    for (int i = 0; i < f.n_key; i++) {
        FM_BUG_UNLESS(f.key[i].cls < FM_N_TRACE_CLASS &&
                      memchr(f.key[i].name, 0, sizeof f.key[i].name));
        FM_BUG_UNLESS(f.sum[i].comm_ns <= f.sum[i].total_ns);
    }
    for (size_t i = 0; i < f.n_span; i++) {
        FM_BUG_UNLESS(f.span[i].key < f.n_key);
        FM_BUG_UNLESS(f.span[i].begin_ns + f.span[i].dur_ns >= f.span[i].begin_ns);
    }
    fm_trace_file_fini(&f);
    return 0;
}
