/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages of a partition move between the pool and the tiers below it, and when.
 *
 *     published, or evicted ──save──> WRITE
 *     a waiting prompt whose next pages are below ──load──> READ ... IN ──> it may be admitted
 *
 * Where a device copies beside computing (is_async), pages that come in are held until the step
 * after: the pass in between does not wait for them, later ones do.  With nothing running they are
 * for the next pass, which waits for them layer by layer (IN_NOW).
 *
 * The checksum of a page in host memory is verified before the page is copied to the pool (CHECK), by
 * threads, as files are read; a page that was altered is a cache miss.
 *
 * A request whose prefix is being loaded stays in the queue; others are admitted past it, so no
 * step waits for a load.  Loads get room in the pool in the order of the queue.  No request is
 * admitted before it was looked up: one that is stored is not computed.  Pages of the pool are taken only when the bytes have come, and
 * are evictable as soon as they are copied: a load holds slots of its own and pages for one step at
 * most, so it cannot keep a running sequence from growing.  Two requests with the same prefix load
 * it once.
 *
 * Runs on the leader of a replica and decides for every rank (moves.h).  Pure bookkeeping over
 * kv, sched and the index of files; nothing allocates after create. */
#ifndef FM_LLM_TIER_POLICY_TIER_POLICY_H
#define FM_LLM_TIER_POLICY_TIER_POLICY_H

#include "llm/kv/kv_tiers.h"
#include "llm/sched/sched.h"
#include "llm/tier_policy/costs.h"
#include "llm/tier_policy/files.h"
#include "llm/tier/moves.h"

typedef struct fm_tier_policy fm_tier_policy;

/* What a read has come to on all ranks; READY or FAILED only when it has ended on each. */
typedef fm_slot_state (*fm_slot_view)(void *ctx, int slot);

enum { FM_TIER_POLICY_LOADS = 16 }; /* in flight at once; each may have a lease of the kv open */

typedef struct {
    fm_kv         *kv;
    fm_sched      *sched;
    fm_tier_files  files; /* of this rank: its index says what there is */
    fm_load_costs *costs;
    fm_kv_saving   saving;
    int            slot0, n_slot; /* its part of the slots that files are read into */
    int host0, n_host; /* its part of the slots of the host tier; n_host 0: there is none */
    int check0, n_check; /* its part of the checks of pages in the host tier, counted behind all slots
                          * for reading: `view` tells their state, too.  n_check 0: none is checked */
    int n_buffer;      /* pages that may be on their way to files at once */
    int most_in;       /* pages brought in before one step, while sequences run */
    int most_out;      /* pages copied to the host tier before one step */
    int is_async;      /* copies of IN are made while the next pass runs */
    int waits;         /* where nothing runs that this would delay, the next pass waits for them */
    fm_slot_view view;
    void        *view_ctx;
} fm_tier_policy_options;

typedef struct {
    int64_t n_load, n_declined;       /* loads begun; those that would not have paid */
    int64_t disk_tokens, host_tokens; /* brought back for requests */
    int64_t n_host_page;              /* pages copied to host memory */
    int64_t n_host_altered;           /* pages there whose checksum did not fit: they were forgotten */
    int64_t n_unsaved;                /* pages evicted before they could be saved */
    double  load_seconds;             /* of the link to host memory, and waiting for files */
    int     n_loading;                /* now */
} fm_tier_policy_stats;

fm_status fm_tier_policy_create(fm_tier_policy **out, const fm_tier_policy_options *o);
void      fm_tier_policy_destroy(fm_tier_policy *s); /* NULL is fine */

/* Before a step is planned: finishes and starts loads, saves pages.  Planning may add to the
 * moves, since it evicts. */
void fm_tier_policy_prepare(fm_tier_policy *s, double now);

int fm_tier_policy_most_moves(const fm_tier_policy_options *o); /* before one step */

void fm_tier_policy_settled(fm_tier_policy *s); /* all copies that were asked for have been made */
void fm_tier_policy_flush(fm_tier_policy *s);   /* forgets what host memory holds; files stay */

/* Adds the pages that are to be saved, as many as there are buffers; returns how many. */
int fm_tier_policy_save(fm_tier_policy *s);

/* Moves the ranks have to make before the next pass; the caller empties the list once they are
 * made. */
fm_moves *fm_tier_policy_moves(fm_tier_policy *s);

int                  fm_tier_policy_is_loading(const fm_tier_policy *s);
fm_tier_policy_stats fm_tier_policy_get_stats(const fm_tier_policy *s);

#endif
