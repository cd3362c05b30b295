/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/affinity.h"

#include "base/rng.h"

void fm_affinity_add(fm_affinity *a, const char *response, int worker)
{
    const unsigned at  = a->n++ % FM_AFFINITY_ROOM;
    a->kept[at].name   = fm_rng_key(response, 0);
    a->kept[at].worker = worker;
}

int fm_affinity_find(const fm_affinity *a, const char *response)
{
    const uint64_t name = fm_rng_key(response, 0);
    for (unsigned k = 1; k <= FM_AFFINITY_ROOM && k <= a->n; k++) {
        const unsigned at = (a->n - k) % FM_AFFINITY_ROOM;
        if (a->kept[at].name == name) return a->kept[at].worker;
    }
    return 0;
}
