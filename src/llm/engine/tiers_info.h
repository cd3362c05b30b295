/* SPDX-License-Identifier: Apache-2.0 */
/* What the tiers of the KV cache below the pool have done. */
#ifndef FM_LLM_ENGINE_TIERS_INFO_H
#define FM_LLM_ENGINE_TIERS_INFO_H

#include "llm/tier_policy/tier_policy.h"

typedef struct {
    fm_tier_policy_stats policy;        /* all partitions together */
    fm_store_stats       store;         /* of this rank */
    double               saved_seconds; /* computing what came from below, less the time it took */
    double               page_bytes;    /* of one page on this rank */
    int                  has_tiers, has_files, page_size;
} fm_tiers_info;

#endif
