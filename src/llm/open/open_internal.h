/* SPDX-License-Identifier: Apache-2.0 */
/* State of an engine that is being opened, and the functions its files call of each other. */
#ifndef FM_LLM_OPEN_OPEN_INTERNAL_H
#define FM_LLM_OPEN_OPEN_INTERNAL_H

#include "llm/engine/engine_internal.h"
#include "llm/open/layers.h"
#include "llm/load/model_path.h"
#include "llm/load/weights_fill.h"

typedef struct {
    fm_engine             *e;
    const fm_options      *o;
    const fm_engine_hooks *hooks;
    fm_model_path          path;
    fm_dtype               act, cache; /* types of matrix inputs and of cached latents */
    int                    dummy;
    fm_backend_options     device;
    fm_backend_memory      memory; /* of this rank */
    fm_backend_memory      beside; /* where backend->also runs */
    int                    has_gpu; /* all ranks may have one each */
    fm_sched_options       sched;  /* of one partition */
    fm_source_types        types;
    fm__prices             price; /* of weights in a step, rank 0's */
    fm_range              *stage; /* [pp] layers of each */
    fm_courier_options     courier;
    uint64_t               checkpoint; /* a number for its content */
    int                    n_lane;     /* at most limits.n_lane */
    int64_t                most_host;  /* pages of prefixes in host memory, by the ratio; 0: any number */
    int                    plans_only; /* nothing is loaded */
    int                    n_rank;     /* of the world */
    int                    n_thread;   /* of this rank */
} opening;

static inline int fm__open_shows(const opening *p)
{
    return p->hooks && p->hooks->plan && fm_world_comm(p->e->world)->rank == 0;
}

static inline int fm__part_of(int64_t n, int parts) /* rounded up */
{
    return (int)((n + parts - 1) / parts);
}

/* For steps all ranks take together: one that fails alone leaves the others
 * waiting, so it says why and ends the job. */
fm_status fm__open_together(fm_engine *e, fm_status rc);

fm_status fm__open_lay_out(opening *p, fm_weights *w, fm_packing packing, fm_slab *slab);

/* A word of a list that blanks divide. */
int fm__is_one_of(const char *word, const char *list);

/* open.c, the steps that know nothing of other ranks */
fm_status fm__open_check_words(opening *p);
fm_status fm__open_read_config(opening *p);
fm_status fm__open_suit_device(opening *p); /* when the back end is known */
fm_status fm__open_make_layout(opening *p, int rank);
fm_status fm__open_source(opening *p);
fm_status fm__open_set_limits(opening *p);
fm_status fm__open_cut_stages(opening *p);
fm_status fm__open_measure_weights(opening *p);
fm_status fm__open_lower_running(opening *p);

/* speculation.c */
fm_status fm__open_check_drafts(opening *p); /* what the options say */
fm_status fm__open_drafts(opening *p);       /* and what the model has */
fm_status fm__open_chain(opening *p);        /* memory of chains */
fm_status fm__open_ngrams(opening *p);       /* indexes of n-grams, on the leader */
size_t    fm__open_ngram_bytes(const opening *p); /* that these will take */

/* open_tiers.c: options, memory for the plan, then the tiers themselves */
fm_status fm__open_check_tiers(opening *p);
int       fm__open_n_load(const opening *p); /* that may hold leases */
void      fm__open_size_tiers(opening *p);
int       fm__open_n_staged(const opening *p); /* pages that a device gathers for one copy */
size_t    fm__open_main_memory(const opening *p); /* free, this rank's share of its host's */
fm_status fm__open_bound_host(opening *p); /* when the pool's size is known, all ranks together, */
void      fm__open_size_host(opening *p);  /* then each */
fm_status fm__open_tiers(opening *p);

/* plan_and_load.c: further steps of opening */
fm_status fm__open_set_courier(opening *p);
fm_status fm__open_make_plan(opening *p, int64_t max_tokens);
void      fm__open_share_pages(opening *p);

/* plan_and_load.c; collective */
fm_status fm__open_plan(opening *p);
fm_status fm__open_load(opening *p);

#endif
