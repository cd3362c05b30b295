/* SPDX-License-Identifier: Apache-2.0 */
/* Removes stored pages, least recently used first, and temporary files that no process
 * can still be writing.  Processes that use the directory see misses. */
#ifndef FM_LLM_TIER_PRUNE_H
#define FM_LLM_TIER_PRUNE_H

#include "llm/tier/page_dir.h"

typedef struct {
    double limit;   /* bytes: up to this nothing is removed; negative: no limit */
    double down_to; /* bytes that are left once there were more */
    double older;   /* seconds: pages not used for so long are removed as well; 0: none are */
    void (*removed)(void *ctx, const fm_stored_page *p); /* or NULL */
    void *ctx;
} fm_prune_options;

typedef struct {
    int64_t n_page, n_removed, n_temporary; /* temporary files that were removed */
    double  bytes, removed_bytes;
} fm_pruned;

/* 0 or an errno value.  NULL out is fine. */
int fm_prune(fm_disk *d, const char *dir, const fm_prune_options *o, fm_pruned *out);

#endif
