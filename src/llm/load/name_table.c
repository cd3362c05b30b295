/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/load/name_table.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_NAMES = 1 << 28 };

static uint32_t hash(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

const char *fm_name_table_name(const fm_name_table *t, int32_t i)
{
    return t->text + t->start[i];
}

/* Where the name is, or the free slot where it would go. */
static uint32_t probe(const fm_name_table *t, const char *name)
{
    uint32_t i = hash(name) & (t->n_slot - 1);
    while (t->slot[i] && strcmp(fm_name_table_name(t, t->slot[i] - 1), name) != 0)
        i = (i + 1) & (t->n_slot - 1);
    return i;
}

int32_t fm_name_table_find(const fm_name_table *t, const char *name)
{
    return t->n_slot ? t->slot[probe(t, name)] - 1 : -1;
}

static fm_status no_memory(void)
{
    return fm_fail(FM_E_OOM, "no memory for the table of tensor names");
}

static fm_status grow_slots(fm_name_table *t)
{
    if (t->n >= MAX_NAMES) return no_memory();
    const uint32_t n_slot = t->n_slot ? t->n_slot * 2 : 64;
    int32_t       *slot   = calloc(n_slot, sizeof *slot);
    if (!slot) return no_memory();
    free(t->slot);
    t->slot   = slot;
    t->n_slot = n_slot;
    for (int32_t i = 0; i < t->n; i++) slot[probe(t, fm_name_table_name(t, i))] = i + 1;
    return FM_OK;
}

static fm_status grow_starts(fm_name_table *t)
{
    const int32_t cap   = t->cap ? t->cap * 2 : 64;
    size_t       *start = realloc(t->start, (size_t)cap * sizeof *start);
    if (!start) return no_memory();
    t->start = start;
    t->cap   = cap;
    return FM_OK;
}

static fm_status grow_text(fm_name_table *t, size_t len)
{
    const size_t cap  = (t->n_text + len) * 2 + 4096;
    char        *text = realloc(t->text, cap);
    if (!text) return no_memory();
    t->text     = text;
    t->cap_text = cap;
    return FM_OK;
}

fm_status fm_name_table_add(fm_name_table *t, const char *name, int32_t *out, int *is_new)
{
    const size_t len = strlen(name) + 1;
    if ((uint64_t)t->n * 2 >= t->n_slot) FM_TRY(grow_slots(t));
    const uint32_t at = probe(t, name);
    *is_new           = !t->slot[at];
    if (*is_new) {
        if (t->n == t->cap) FM_TRY(grow_starts(t));
        if (t->n_text + len > t->cap_text) FM_TRY(grow_text(t, len));
        memcpy(t->text + t->n_text, name, len);
        t->start[t->n] = t->n_text;
        t->n_text += len;
        t->slot[at] = ++t->n;
    }
    *out = t->slot[at] - 1;
    return FM_OK;
}

void fm_name_table_fini(fm_name_table *t)
{
    free(t->text);
    free(t->start);
    free(t->slot);
    *t = (fm_name_table){0};
}
