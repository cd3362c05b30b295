/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/tier_policy/files.h"

static int is_on(void *ctx) { return fm_store_is_on(ctx); }

static int can_write(void *ctx) { return fm_store_can_write(ctx); }

static int has(void *ctx, fm_page_hash key) { return fm_store_has(ctx, key); }

static void forget(void *ctx, fm_page_hash key) { fm_store_forget(ctx, key); }

static int free_buffers(void *ctx) { return fm_store_free_buffers(ctx); }

fm_tier_files fm_tier_files_of(fm_store *s)
{
    static const fm_tier_files_ops ops = {is_on, can_write, has, forget, free_buffers};
    return (fm_tier_files){s ? &ops : NULL, s};
}
