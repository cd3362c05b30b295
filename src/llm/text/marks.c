/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/text/marks.h"

#include <string.h>

static fm_mark whole(const char *text, size_t len, const char *const *mark, int n_mark)
{
    fm_mark best = {-1, len};
    for (int i = 0; i < n_mark; i++) {
        const char *p = memmem(text, len, mark[i], strlen(mark[i]));
        if (p && (size_t)(p - text) < best.at) best = (fm_mark){i, (size_t)(p - text)};
    }
    return best;
}

/* How many bytes at the end of the text could begin this mark. */
static size_t open_end(const char *text, size_t len, const char *mark)
{
    const size_t most = strlen(mark) - 1;
    for (size_t n = len < most ? len : most; n; n--)
        if (!memcmp(text + len - n, mark, n)) return n;
    return 0;
}

fm_mark fm_mark_find(const char *text, size_t len, const char *const *mark, int n_mark)
{
    fm_mark hit = whole(text, len, mark, n_mark);
    if (hit.which >= 0) return hit;
    size_t open = 0;
    for (int i = 0; i < n_mark; i++) {
        const size_t n = open_end(text, len, mark[i]);
        if (n > open) open = n;
    }
    hit.at = len - open;
    return hit;
}
