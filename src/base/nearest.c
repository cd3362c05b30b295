/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <string.h>

enum { MAX_NAME = 64 };

static size_t distance(const char *a, const char *b)
{
    size_t       row[MAX_NAME + 1];
    const size_t na = strlen(a), nb = strlen(b);
    if (na > MAX_NAME || nb > MAX_NAME) return MAX_NAME;
    for (size_t j = 0; j <= nb; j++) row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];
        row[0]          = i;
        for (size_t j = 1; j <= nb; j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            const size_t other    = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal              = row[j];
            row[j]                = replaced < other ? replaced : other;
        }
    }
    return row[nb];
}

void fm_nearest_offer(fm_nearest *n, const char *name)
{
    const size_t d = distance(n->word, name);
    if (d > 1 + strlen(n->word) / 4 || (n->name && d >= n->distance)) return;
    n->name     = name;
    n->distance = d;
}
