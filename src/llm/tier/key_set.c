/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/tier/key_set.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 1024 };

static int is_free(fm_page_hash k) { return !k.lo && !k.hi; }

/* Where the key is, or the free slot where it would be.  Keys are hashes: their low
 * bits are as good as any. */
static size_t find(const fm_key_set *s, fm_page_hash key)
{
    size_t at = key.lo & (s->n_slot - 1);
    while (!is_free(s->slot[at]) && !fm_hash_equal(s->slot[at], key))
        at = (at + 1) & (s->n_slot - 1);
    return at;
}

void fm_key_set_fini(fm_key_set *s)
{
    free(s->slot);
    *s = (fm_key_set){0};
}

int fm_key_set_has(const fm_key_set *s, fm_page_hash key)
{
    return s->n_slot && !is_free(s->slot[find(s, key)]);
}

static int grow(fm_key_set *s)
{
    fm_key_set wider = {.n_slot = s->n_slot ? 2 * s->n_slot : FIRST_SLOTS, .n = s->n};
    wider.slot       = calloc(wider.n_slot, sizeof *wider.slot);
    if (!wider.slot) return 0;
    for (size_t i = 0; i < s->n_slot; i++)
        if (!is_free(s->slot[i])) wider.slot[find(&wider, s->slot[i])] = s->slot[i];
    free(s->slot);
    *s = wider;
    return 1;
}

int fm_key_set_add(fm_key_set *s, fm_page_hash key)
{
    if (is_free(key)) return 0;
    if (4 * (s->n + 1) > 3 * s->n_slot && !grow(s)) return 0;
    const size_t at = find(s, key);
    s->n += (size_t)is_free(s->slot[at]);
    s->slot[at] = key;
    return 1;
}

/* Entries behind it move up, so that no search ends too early. */
void fm_key_set_remove(fm_key_set *s, fm_page_hash key)
{
    if (!s->n_slot) return;
    const size_t mask = s->n_slot - 1;
    size_t       hole = find(s, key);
    if (is_free(s->slot[hole])) return;
    s->n--;
    for (size_t at = (hole + 1) & mask; !is_free(s->slot[at]); at = (at + 1) & mask) {
        const size_t home = s->slot[at].lo & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        s->slot[hole] = s->slot[at];
        hole          = at;
    }
    s->slot[hole] = (fm_page_hash){0, 0};
}

size_t fm_key_set_bytes(const fm_key_set *s) { return s->n_slot * sizeof *s->slot; }
