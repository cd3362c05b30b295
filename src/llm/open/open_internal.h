/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that open an engine share. */
#ifndef FM_LLM_ENGINE_OPEN_INTERNAL_H
#define FM_LLM_ENGINE_OPEN_INTERNAL_H

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
    fm_sched_options       sched;  /* of one seat */
    fm_source_types        types;
    fm__prices             price; /* of weights in a step, rank 0's */
    fm_range              *stage; /* [pp] layers of each */
    fm_courier_options     courier;
    uint64_t               checkpoint; /* a number for its content */
    int                    n_lane;     /* at most limits.n_lane */
} opening;

static inline int fm__n_rank(const fm_engine *e)
{
    return fm_world_comm(e->world)->n_rank;
}

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

/* engine_plan.c; collective */
fm_status fm__open_plan(opening *p);
fm_status fm__open_load(opening *p);

#endif
