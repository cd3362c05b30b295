/* SPDX-License-Identifier: Apache-2.0 */
/* When the pages of a cache were last used: how many in which stretch of time.  It tells how old
 * the pages are that a least-recently-used cache gives up next.
 *
 *     oldest [3][0][17] ... [240] now      pages per bucket of 2^shift ticks
 *
 * Times are ticks and never go back.  Buckets become twice as wide when the oldest page no longer
 * fits, so ages are known to about a part in FM_PAGE_AGES.  {0} is empty. */
#ifndef FM_LLM_ROUTE_PAGE_AGES_H
#define FM_LLM_ROUTE_PAGE_AGES_H

#include <stdint.h>

enum { FM_PAGE_AGES = 512 };

typedef struct {
    int32_t  n[FM_PAGE_AGES]; /* bucket b is at b % FM_PAGE_AGES */
    int64_t  total;
    uint32_t first; /* the oldest bucket */
    int      shift;
} fm_page_ages;

void fm_page_ages_add(fm_page_ages *a, uint32_t tick);    /* not before any tick added earlier */
void fm_page_ages_remove(fm_page_ages *a, uint32_t tick); /* of a page that was added with it */

/* Ticks since the n-th oldest page was used, at least 1; that of the youngest if there are fewer.
 * 0: there are no pages. */
uint32_t fm_page_ages_oldest(const fm_page_ages *a, int64_t n, uint32_t now);

#endif
