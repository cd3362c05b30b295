/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/page_ages.h"

#include "base/status.h"

static int32_t *bucket(fm_page_ages *a, uint32_t b) { return &a->n[b % FM_PAGE_AGES]; }

static void widen(fm_page_ages *a)
{
    fm_page_ages wide = {.total = a->total, .first = a->first >> 1, .shift = a->shift + 1};
    for (uint32_t k = 0; k < FM_PAGE_AGES; k++)
        *bucket(&wide, (a->first + k) >> 1) += *bucket(a, a->first + k);
    *a = wide;
}

/* The bucket of a tick, after the buckets have been moved or widened to have one. */
static uint32_t reach(fm_page_ages *a, uint32_t tick)
{
    if (!a->total) a->first = tick >> a->shift;
    while ((tick >> a->shift) - a->first >= FM_PAGE_AGES) {
        if (*bucket(a, a->first))
            widen(a);
        else
            a->first++;
    }
    return tick >> a->shift;
}

void fm_page_ages_add(fm_page_ages *a, uint32_t tick)
{
    ++*bucket(a, reach(a, tick));
    a->total++;
}

void fm_page_ages_remove(fm_page_ages *a, uint32_t tick)
{
    int32_t *n = bucket(a, tick >> a->shift);
    FM_BUG_UNLESS(*n > 0);
    --*n;
    a->total--;
}

uint32_t fm_page_ages_oldest(const fm_page_ages *a, int64_t n, uint32_t now)
{
    uint32_t last = a->first;
    int64_t  seen = 0;
    if (!a->total) return 0;
    for (uint32_t k = 0; k < FM_PAGE_AGES && seen < a->total && (seen < n || !seen); k++) {
        last = a->first + k;
        seen += a->n[last % FM_PAGE_AGES];
    }
    const uint32_t used = last << a->shift;
    return now > used ? now - used : 1;
}
