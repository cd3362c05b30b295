/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what a worker says of its cache. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "llm/route/route_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fm_worker_feed f;
    char                 *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (fm__feed_read(&f, text)) {
        FM_BUG_UNLESS(f.page_size > 0 && f.n_page >= 0 && f.load >= 0);
        FM_BUG_UNLESS(isfinite(f.prefill_rate) && f.prefill_rate >= 0);
        FM_BUG_UNLESS(isfinite(f.row_seconds) && f.row_seconds >= 0);
    }
    fm_cache_index_clear(&f.pages);
    free(text);
    return 0;
}
