/* SPDX-License-Identifier: Apache-2.0 */
/* A model family: all that the engine, the memory plan and the back ends need to
 * know of it.  One file per family ends with its record. */
#ifndef FM_LLM_MODEL_MODEL_H
#define FM_LLM_MODEL_MODEL_H

#include "llm/kv/planes.h"
#include "llm/op/run.h"

typedef struct {
    const char        *name;
    const char *const *model_types; /* of config.json that it reads; NULL ends the list */

    /* What this rank caches of a token, in numbers of type `cache`. */
    fm_planes (*planes)(const fm_model_config *c, const fm_shard *s, fm_dtype cache);

    /* The structure of this rank's weights; run on a counting slab it measures them. */
    fm_status (*weights)(fm_weights *w, const fm_model_config *c, const fm_weights_want *want,
                         fm_slab *slab);

    /* Batch in r->batch -> r->act.logits [n_out, V]; the cache of every row is written. */
    void (*forward)(fm_run *r);
} fm_model;

extern const fm_model fm_model_deepseek;

/* The family of a config.  FM_E_NOSUP names its model_type. */
fm_status fm_model_find(const fm_model **out, const fm_model_config *c);

#endif
