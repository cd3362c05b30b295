/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/number_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { FIRST_SLOTS = 64 };

static void clear(fm__table *t)
{
    memset(t->slot, 0xff, ((size_t)t->mask + 1) * sizeof *t->slot);
    t->n = 0;
}

static void make_slots(fm__table *t, uint32_t n)
{
    t->slot = malloc((size_t)n * sizeof *t->slot);
    FM_BUG_UNLESS(t->slot != NULL);
    t->mask = n - 1;
    clear(t);
}

static void put(fm__table *t, fm__numbered s)
{
    uint32_t at = s.hash;
    while (t->slot[at & t->mask].number >= 0) at++;
    t->slot[at & t->mask] = s;
    t->n++;
}

void fm__table_insert(fm__table *t, uint32_t hash, int32_t number)
{
    if (2 * t->n > t->mask) {
        const fm__table old = *t;
        make_slots(t, 2 * (old.mask + 1));
        for (uint32_t i = 0; i <= old.mask; i++)
            if (old.slot[i].number >= 0) put(t, old.slot[i]);
        free(old.slot);
    }
    put(t, (fm__numbered){hash, number});
}

int32_t fm__table_find(const fm__table *t, uint32_t hash, uint32_t *at)
{
    for (;;) {
        const fm__numbered s = t->slot[(*at)++ & t->mask];
        if (s.number < 0 || s.hash == hash) return s.number;
    }
}

void fm__table_init(fm__table *t)
{
    make_slots(t, FIRST_SLOTS);
}

void fm__table_fini(fm__table *t)
{
    free(t->slot);
    *t = (fm__table){0};
}

void fm__table_empty(fm__table *t)
{
    if (t->mask / 32 <= t->n + FIRST_SLOTS) {
        clear(t);
    } else {
        free(t->slot);
        make_slots(t, FIRST_SLOTS);
    }
}
