/* SPDX-License-Identifier: Apache-2.0 */
/* One block of memory carved into pieces that live as long as it does.
 *
 * A slab without a base only counts.  The same carving code runs twice, first
 * to measure and then to place, so a planned size is exact by construction:
 *
 *     fm_slab s = {0};            carve(&thing, &s);      // s.used = bytes needed
 *     s = (fm_slab){.base = p, .size = s.used};  carve(&thing, &s);
 */
#ifndef FM_BASE_SLAB_H
#define FM_BASE_SLAB_H

#include <stddef.h>

#include "base/number.h"
#include "base/status.h"

enum { FM_SLAB_ALIGN = 64 };

typedef struct {
    char  *base; /* borrowed; NULL: measure only */
    size_t size;
    size_t used;
} fm_slab;

/* The next `bytes`, 64-byte aligned; NULL while measuring.  A slab that was
 * measured never runs out: doing so is a bug. */
static inline void *fm_slab_take(fm_slab *s, size_t bytes)
{
    const size_t at = s->used;
    s->used += fm_round_up(bytes, FM_SLAB_ALIGN);
    if (!s->base) return NULL;
    FM_BUG_UNLESS(s->used <= s->size);
    return s->base + at;
}

#endif
