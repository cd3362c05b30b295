/* SPDX-License-Identifier: Apache-2.0 */
/* State of a partition's tiers: loads in flight, slots, moves to be made. */
#ifndef FM_LLM_TIER_POLICY_TIER_POLICY_INTERNAL_H
#define FM_LLM_TIER_POLICY_TIER_POLICY_INTERNAL_H

#include "llm/tier_policy/host_books.h"
#include "llm/tier_policy/tier_policy.h"

enum {
    FM__LOADS      = FM_TIER_POLICY_LOADS,
    FM__KEPT       = 512, /* pages in host memory that wait to become files */
    FM__STEPS_REST = 3,   /* after which copies of a step are made, also where one step is planned
                           * ahead */
};

/* Where a page on its way is. */
typedef struct {
    int          slot, is_host; /* of the host tier's slots, or of those for reading */
    int          check;         /* host: which check compares its checksum */
    fm_page_hash key;
    uint32_t     step; /* in which it was asked for */
} fm__window;

/* Pages [from, to) of a prompt on their way: brought in up to next_in, asked for up to next_read.
 */
typedef struct {
    fm_request  *r; /* NULL: no request waits for it any more */
    uint64_t     arrival;
    int32_t      from, to, next_in, next_read;
    fm_page_hash at; /* identity of page next_read - 1 */
    int          is_used, is_seen, is_from_files;
    int          place;  /* in the queue, of the first request that waits for its pages */
    int          is_cut; /* the pool had no room for more of it */
    double       began, arrived; /* arrived: all pages are there, and may wait for room; 0: not yet */
    fm__window  *window; /* [n_window] page p is in p % n_window */

    fm_kv_lease    lease; /* pages whose bytes are being copied */
    const int32_t *token; /* the request's */
    int            is_held, is_saved;
    int            is_now; /* the next pass waits for them: they are published already */
} fm__load;

/* A page in host memory that is to become a file. */
typedef struct {
    int32_t      slot, depth;
    fm_page_hash key;
    int32_t      token[FM_PAGE_HASH_TOKENS];
    uint32_t     step;
} fm__kept;

struct fm_tier_policy {
    fm_tier_policy_options opt;
    int                    page_size, n_window;
    double                 now;
    uint32_t               step; /* counts prepares */
    fm_moves               moves;
    fm__load               load[FM__LOADS];
    int                   *free_slot; /* [n_slot] a stack */
    int                    n_free_slot;
    struct {
        int      slot;
        uint32_t step;
    } * resting; /* [n_slot] a ring: slots that may still be copied from */
    int                  first_resting, n_resting;
    int                 *free_check;       /* [n_check] a stack */
    int                  n_free_check;
    int32_t             *page;             /* [n_window] of the pool, for what comes in */
    int                  most_in_now;      /* pages that may still come in before this step */
    int                  last_place;       /* in the queue, of the first request that waits for room to
                                            * be computed: loads behind it take none */
    int                  has_given;        /* room to a load, before this step */
    int32_t              n_reserved;       /* pages for loads of requests further in front */
    int32_t              n_promised;       /* to requests that wait to be admitted (sched.h) */
    int                  n_writing, n_out; /* WRITE and KEEP moves, and OUT moves, in the list */
    fm_host_books        host;
    fm__kept            *kept; /* [FM__KEPT] a ring */
    int                  first_kept, n_kept;
    fm_tier_policy_stats stats;
};

static inline int fm__tier_policy_has_files(const fm_tier_policy *s)
{
    return s->opt.files.ops && s->opt.files.ops->is_on(s->opt.files.ctx);
}

static inline int fm__tier_policy_writes_files(const fm_tier_policy *s)
{
    return s->opt.files.ops && s->opt.files.ops->can_write(s->opt.files.ctx);
}

static inline int fm__tier_policy_has_file(const fm_tier_policy *s, fm_page_hash key)
{
    return fm__tier_policy_has_files(s) && s->opt.files.ops->has(s->opt.files.ctx, key);
}

static inline int fm__tier_policy_free_buffers(const fm_tier_policy *s)
{
    return s->opt.files.ops->free_buffers(s->opt.files.ctx);
}

fm_page_move *fm__tier_policy_move(fm_tier_policy *s,
                                   fm_move_kind    kind);           /* NULL: the list is full */
void          fm__tier_policy_rest(fm_tier_policy *s, int slot); /* it is free again, soon */

/* loads.c */
void fm__loads_advance(fm_tier_policy *s);
void fm__loads_start(fm_tier_policy *s);

#endif
