/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers of the KV cache below the pool, as one rank has them.  The leader decides by
 * llm/tier_policy what moves; every rank carries it out on its own planes. */
#ifndef FM_LLM_ENGINE_TIERS_H
#define FM_LLM_ENGINE_TIERS_H

#include "comm/comm.h"
#include "llm/op/run.h"
#include "llm/tier/host_sums.h"
#include "llm/tier_policy/tier_policy.h"
#include "llm/engine/tiers_info.h"

/* How reads went on other ranks (tiers_ranks.c). */
typedef struct {
    fm_comm     *comm;     /* borrowed */
    int8_t      *others;   /* [n_slot + n_check] fm_slot_state, of all other ranks together */
    uint32_t    *asked_in; /* [same] the first status request whose replies cover this read or check */
    int8_t      *reply;    /* [n_rank][same]; a follower has its own row only */
    fm_comm_job *job;      /* [n_rank] */
    int          is_asking, n_started, n_heard;
    uint32_t     round; /* status requests sent so far */
} fm_slot_reports;

typedef struct {
    fm_store *store;  /* NULL: no files */
    char     *memory; /* images of pages: slots for reading, buffers for writing, the host
                       * tier's slots.  NULL: there is nothing below the pool */
    size_t bytes, file_bytes, image_bytes;  /* of memory; of one image with a file's header,
                                             * and without */
    int           n_slot, n_buffer, n_host; /* in it */
    int           most_in, most_out;        /* pages copied before a step */
    fm_page_copy *copy;                     /* [max_moves] to be made together */
    int           n_copy;
    uint32_t      n_asked, n_made; /* calls of fm_run_copy_pages; those whose copies were made */
    uint32_t     *copied_in;       /* [n_slot + n_host] the call that last copied from or to it */
    fm_page_move *held;            /* [n_slot] reads whose slot is still copied from */
    int           n_held;
    fm_host_sums *sums;            /* of the host tier's pages; NULL: there is no host tier */
    int           n_check;         /* of these at once */
    int32_t      *unsummed;        /* [n_host] a ring: slots whose bytes are on their way, */
    char         *is_unsummed;     /* [n_host] each once */
    int           first_unsummed, n_unsummed;
    fm_kv_saving  saving;
    fm_load_costs costs;   /* the leader's */
    double        learned; /* fm_now() of the last step whose cost was learned */
    int           most_prompt_rows; /* of a step so far */
    int           lane0;   /* the courier's lanes for moves begin here */
    fm_slot_reports reports;
    int           writes;  /* this rank writes the pages of its attention group */
    int           demotes; /* for tests: everything leaves the pool after every step */
} fm_tiers;

#endif
