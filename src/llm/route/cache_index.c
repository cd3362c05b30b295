/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/route/cache_index.h"

#include <stdlib.h>

#include "base/status.h"

enum { MIN_ENTRIES = 1024, DELETED = -1, TICKS_PER_SECOND = 16 };

void fm_cache_index_fini(fm_cache_index *c)
{
    free(c->entry);
    *c = (fm_cache_index){0};
}

void fm_cache_index_clear(fm_cache_index *c) { fm_cache_index_fini(c); }

/* Keys are hashes already. */
static size_t place(const fm_cache_index *c, uint64_t key) { return key & (c->n_entry - 1); }

static fm_cache_entry *find(const fm_cache_index *c, uint64_t key)
{
    if (!c->n_entry) return NULL;
    for (size_t i = place(c, key); c->entry[i].key; i = (i + 1) & (c->n_entry - 1))
        if (c->entry[i].key == key && c->entry[i].n_held != DELETED) return &c->entry[i];
    return NULL;
}

static fm_cache_entry *add(fm_cache_index *c, uint64_t key)
{
    size_t i = place(c, key);
    while (c->entry[i].key) i = (i + 1) & (c->n_entry - 1);
    c->entry[i] = (fm_cache_entry){.key = key};
    c->n_used++;
    return &c->entry[i];
}

static int is_live(const fm_cache_entry *e) { return e->key && e->n_held != DELETED; }

/* Leaves deleted entries behind, and grows if the others need it. */
static void rebuild(fm_cache_index *c)
{
    fm_cache_index new = {.n_entry = MIN_ENTRIES};
    size_t n_live      = 0;
    for (size_t i = 0; i < c->n_entry; i++) n_live += (size_t)is_live(&c->entry[i]);
    while (new.n_entry < 4 * n_live) new.n_entry *= 2;
    new.entry = calloc(new.n_entry, sizeof *new.entry);
    FM_BUG_UNLESS(new.entry != NULL);
    for (size_t i = 0; i < c->n_entry; i++)
        if (is_live(&c->entry[i])) *add(&new, c->entry[i].key) = c->entry[i];
    new.n_held     = c->n_held;
    new.n_expected = c->n_expected;
    new.n_shared   = c->n_shared;
    new.n_room     = c->n_room;
    new.tick       = c->tick;
    new.ages       = c->ages;
    free(c->entry);
    *c = new;
}

static fm_cache_entry *find_or_add(fm_cache_index *c, uint64_t key)
{
    if (!key) key = 1;
    fm_cache_entry *e = find(c, key);
    if (e) return e;
    if (2 * (c->n_used + 1) > c->n_entry) rebuild(c);
    e       = add(c, key);
    e->used = c->tick;
    fm_page_ages_add(&c->ages, e->used);
    return e;
}

static void delete(fm_cache_index *c, fm_cache_entry *e)
{
    e->n_held = DELETED;
    c->n_shared -= e->n_use > 1;
    fm_page_ages_remove(&c->ages, e->used);
}

static uint32_t tick_of(double now) { return (uint32_t)(uint64_t)(now * TICKS_PER_SECOND); }

static void tell_time(fm_cache_index *c, double now)
{
    const uint32_t tick = tick_of(now);
    if (tick > c->tick) c->tick = tick;
}

void fm_cache_index_insert(fm_cache_index *c, uint64_t key)
{
    fm_cache_entry *e = find_or_add(c, key);
    c->n_expected -= e->expected > 0;
    e->expected = 0;
    c->n_held += e->n_held++ == 0;
}

void fm_cache_index_evict(fm_cache_index *c, uint64_t key)
{
    fm_cache_entry *e = find(c, key ? key : 1);
    if (!e || e->n_held < 1 || --e->n_held) return;
    delete(c, e);
    c->n_held--;
}

static void drop_expected(fm_cache_index *c, fm_cache_entry *e)
{
    e->expected = 0;
    delete(c, e);
    c->n_expected--;
}

void fm_cache_index_expect(fm_cache_index *c, uint64_t key, double until)
{
    fm_cache_entry *e = find_or_add(c, key);
    if (e->n_held) return;
    c->n_expected += e->expected <= 0;
    e->expected = (float)until;
}

void fm_cache_index_unexpect(fm_cache_index *c, uint64_t key, double until)
{
    fm_cache_entry *e = find(c, key ? key : 1);
    if (e && e->expected > 0 && e->expected <= (float)until) drop_expected(c, e);
}

/* Memory follows what is held now, not the most there ever was. */
static void shrink(fm_cache_index *c)
{
    if (c->n_entry > MIN_ENTRIES && 16 * (c->n_held + c->n_expected) < c->n_entry) rebuild(c);
}

void fm_cache_index_expire(fm_cache_index *c, double now, size_t most)
{
    tell_time(c, now);
    if (!c->n_expected) return;
    for (size_t n = most < c->n_entry ? most : c->n_entry; n; n--) {
        fm_cache_entry *e = &c->entry[c->at];
        c->at             = (c->at + 1) & (c->n_entry - 1);
        if (is_live(e) && e->expected > 0 && (double)e->expected <= now) drop_expected(c, e);
    }
    shrink(c);
}

void fm_cache_index_use(fm_cache_index *c, const uint64_t *key, int n, double now)
{
    tell_time(c, now);
    for (int i = 0; i < n; i++) {
        fm_cache_entry *e = find(c, key[i] ? key[i] : 1);
        if (!e) continue;
        c->n_shared += ++e->n_use == 2;
        if (e->used == c->tick) continue;
        fm_page_ages_remove(&c->ages, e->used);
        e->used = c->tick;
        fm_page_ages_add(&c->ages, e->used);
    }
}

double fm_cache_index_age(const fm_cache_index *c, int64_t n, double now)
{
    return (double)fm_page_ages_oldest(&c->ages, n, tick_of(now)) / TICKS_PER_SECOND;
}

static int is_there(const fm_cache_entry *e, double now)
{
    return e && (e->n_held > 0 || (double)e->expected > now);
}

int fm_cache_index_has(const fm_cache_index *c, uint64_t key, double now)
{
    return is_there(find(c, key ? key : 1), now);
}

/* Pages last used before this tick are more than fit. */
static uint32_t oldest_that_fits(const fm_cache_index *c, double now)
{
    const int64_t n_over = (int64_t)(c->n_held + c->n_expected) - c->n_room;
    if (!c->n_room || n_over <= 0) return 0;
    return tick_of(now) - fm_page_ages_oldest(&c->ages, n_over, tick_of(now));
}

int fm_cache_index_match(const fm_cache_index *c, const uint64_t *key, int n, double now)
{
    const uint32_t from = oldest_that_fits(c, now);
    for (int i = 0; i < n; i++) {
        const fm_cache_entry *e = find(c, key[i] ? key[i] : 1);
        if (!is_there(e, now) || e->used < from) return i;
    }
    return n;
}
