/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy asks of the files below the pool: which pages there are, and how many more may be
 * on their way there.  An engine has a store of real files (tier/store.h); a simulation answers
 * the same questions from a model of a disk. */
#ifndef FM_LLM_TIER_POLICY_FILES_H
#define FM_LLM_TIER_POLICY_FILES_H

#include "llm/kv/page_hash.h"
#include "llm/tier/store.h"

typedef struct {
    int (*is_on)(void *ctx);
    int (*can_write)(void *ctx);
    int (*has)(void *ctx, fm_page_hash key);
    void (*forget)(void *ctx, fm_page_hash key); /* it could not be read */
    int (*free_buffers)(void *ctx);              /* for pages on their way to files */
} fm_tier_files_ops;

typedef struct {
    const fm_tier_files_ops *ops; /* NULL: there are no files */
    void                    *ctx;
} fm_tier_files;

fm_tier_files fm_tier_files_of(fm_store *s); /* NULL: there are none */

#endif
