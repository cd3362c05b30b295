/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan of one rank of any layout on a described machine, this one or another: the
 * steps of opening an engine that need neither weights nor other ranks. */
#ifndef FM_LLM_OPEN_FORESEE_H
#define FM_LLM_OPEN_FORESEE_H

#include "llm/engine.h"
#include "llm/kv/kv_tiers.h"
#include "llm/op/backend.h"
#include "llm/rank/layout.h"

/* Where the rank would run. */
typedef struct {
    int               rank, n_rank; /* of the world */
    int               on_gpu;
    int               n_thread;
    fm_backend_memory memory; /* of this rank alone */
    fm_source        *source; /* of the model, borrowed; NULL: it is opened for this rank */
} fm_place;

enum { FM_FORESEEN_STAGES = 64 };

/* Tiers below the pool, in pages; file_bytes 0: there are none. */
typedef struct {
    int          n_slot, n_buffer, n_host, most_in, most_out;
    fm_kv_saving saving;
    size_t       image_bytes, file_bytes; /* of a page on this rank, without and with a header */
} fm_foreseen_tiers;

typedef struct {
    fm_model_config   config;
    fm_layout         layout;                    /* with this rank's layers */
    fm_range          stage[FM_FORESEEN_STAGES]; /* layers of every stage */
    fm_sched_options  sched;                     /* of one partition */
    fm_run_limits     limits;
    int               n_lane; /* micro-batches in flight */
    int               max_running;
    int               is_dummy;
    fm_plan           plan;
    fm_foreseen_tiers tiers;
    fm_weights        weights; /* structure alone: no value lies anywhere; points to config */
} fm_foreseen;

/* Names and types of the model's tensors, some ten thousand for a large one: plans of many ranks
 * share them, on any threads.  fm_source_close(*out). */
fm_status fm_engine_foresee_source(fm_source **out, const fm_options *o, int on_gpu);

/* FM_E_OOM: it does not fit, saying by how much; FM_E_ARG: the layout is impossible for the model.
 * *out is filled in place: it must not be moved. */
fm_status fm_engine_foresee(fm_foreseen *out, const fm_options *o, const fm_place *where);
void      fm_foreseen_fini(fm_foreseen *f); /* {0} is fine */

#endif
