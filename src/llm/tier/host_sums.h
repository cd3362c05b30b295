/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums (XXH3) of pages in host memory under a GPU's pool, made and compared by threads of
 * their own, so that no caller waits for the hash of a page.
 *
 *     expect: the slot gets another page ──> make: its bytes are there ──> it has a checksum
 *     check: are they the bytes of this page still? ──> READY | FAILED
 *
 * A check of a page whose checksum is not made yet waits for it, and is READY then.  A page that
 * fails is a miss: counted, logged once.  The caller keeps a slot as it is while it is checked; a
 * slot that gets another page while its checksum is made has none until the next `make`.
 *
 * One thread calls; calls lock for nanoseconds. */
#ifndef FM_LLM_TIER_HOST_SUMS_H
#define FM_LLM_TIER_HOST_SUMS_H

#include "base/status.h"
#include "llm/kv/page_hash.h"
#include "llm/tier/store.h"

typedef struct fm_host_sums fm_host_sums;

typedef struct {
    char  *image;        /* of slot 0; kept */
    size_t stride;       /* bytes from slot to slot */
    size_t image_bytes;  /* of one page */
    int    n_slot;
    int    n_check;      /* at once */
    int    n_thread;     /* 0: 4 */
    double fault_rate;   /* for tests: of checks before which a byte of the page is altered */
} fm_host_sums_options;

typedef struct {
    int64_t n_made, n_checked, n_altered; /* pages */
} fm_host_sums_stats;

fm_status fm_host_sums_create(fm_host_sums **out, const fm_host_sums_options *o);
void      fm_host_sums_destroy(fm_host_sums *h); /* NULL is fine; ends what is queued */

void fm_host_sums_expect(fm_host_sums *h, int slot, fm_page_hash key);
void fm_host_sums_make(fm_host_sums *h, int slot);
int  fm_host_sums_get(fm_host_sums *h, int slot, fm_page_hash key, fm_hash128 *sum); /* 0: none yet */

void          fm_host_sums_check(fm_host_sums *h, int check, int slot, fm_page_hash key);
fm_slot_state fm_host_sums_checked(fm_host_sums *h, int check);

/* Waits until a check has ended since the last call, or for so long; not at all if none is queued. */
void fm_host_sums_wait(fm_host_sums *h, double seconds);

fm_host_sums_stats fm_host_sums_get_stats(fm_host_sums *h);

#endif
