/* SPDX-License-Identifier: Apache-2.0 */
/* A model family: all that the engine, the memory plan and the back ends need to
 * know of it.  One file per family ends with its record.
 *
 * Drafts (speculation).  The MTP layer guesses the token after next: from token t and the hidden
 * state h of the row before it (after the last norm) follows an input of one more decoder layer,
 * whose output is a state again and, by the head, the next token.
 *
 *     forward   a row's MTP latent is made of its own token and the state of the row before, and
 *               cached under the row's own position: a page that is complete for the model is
 *               complete for its drafts, behind cache hits and after preemption, too
 *     draft     the newest token of each sequence, whose row did not run yet, with the state kept
 *               of the row before gives draft 1; that with the layer's own state draft 2; ...
 *     verify    drafts are rows of the next step; their latents are written again with true states
 *
 * Where states are kept, the scheduler says in the spans (batch.h): every rank keeps those of its
 * own group's sequences.  The last stage of a pipeline has the MTP layer, and a copy of the
 * embedding; all its ranks run a chain together, as the leader's plan says (rank/plan_wire.h),
 * groups without rows as well, and rank 0 collects the tokens.  Chains of different micro-batches
 * have different places.  A state that is not known (behind a cache hit) counts as zero: drafts
 * may be inexact in any way, what is generated does not change. */
#ifndef FM_LLM_MODEL_MODEL_H
#define FM_LLM_MODEL_MODEL_H

#include "llm/kv/planes.h"
#include "llm/load/config_read.h"
#include "llm/op/cost.h"

enum { FM_MAX_LINEAR = 8 };

typedef struct {
    const char             *name;
    const fm_config_reader *config; /* reads its config.json */

    /* The structure of this rank's weights; run on a counting slab it measures them. */
    fm_status (*weights)(fm_weights *w, const fm_model_config *c, const fm_weights_want *want,
                         fm_slab *slab);

    /* What this rank caches of a token, in numbers of type `cache`. */
    fm_planes (*planes)(const fm_model_config *c, const fm_shard *s, fm_dtype cache);

    /* What a pass computes in on this rank. */
    fm_activations (*activations)(const fm_model_config *c, const fm_shard *s);

    /* For planning: the matrices that every row of a layer is multiplied with, but for the FFN's,
     * and the sizes of its attention. */
    int (*linears)(const fm_layer_weights *l, const fm_matrix *out[FM_MAX_LINEAR]);
    fm_attend_sizes (*attention)(const fm_model_config *c, const fm_attn_weights *w, int n_head);

    /* Batch in r->batch -> r->act.logits [n_out, V]; the cache of every row is written. */
    void (*forward)(fm_run *r);

    /* One link of a chain of drafts, on ranks that have the MTP layer: each row's token, and the
     * hidden state before it, give the token that probably follows (see above). */
    void (*draft)(fm_run *r);
} fm_model;

extern const fm_model fm_model_deepseek;

/* The family of a config.  FM_E_NOSUP names its model_type. */
fm_status fm_model_find(const fm_model **out, const fm_model_config *c);

/* Sets the limits' planes and activations. */
void fm_model_declare(const fm_model *m, const fm_model_config *c, const fm_shard *s, fm_dtype cache,
                      fm_run_limits *lim);

#endif
