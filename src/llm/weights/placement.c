/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/weights/placement.h"

#include <stdlib.h>
#include <string.h>

#include "llm/weights/shard.h"

/* One block: the record, copies, then the lists of numbers. */
static fm_placement *allocate(int n_expert, int n_set, int n_all)
{
    const size_t  all = (size_t)n_all, E = (size_t)n_expert, sets = (size_t)n_set;
    fm_placement *p =
        calloc(1, sizeof *p + all * sizeof *p->copy + (E + 1 + sets + 1 + all) * sizeof(int32_t));
    if (!p) return NULL;
    p->n_expert = n_expert;
    p->n_set    = n_set;
    p->copy     = (fm_expert_copy *)(p + 1);
    p->copy0    = (int32_t *)(p->copy + all);
    p->slot0    = p->copy0 + E + 1;
    p->expert   = p->slot0 + sets + 1;
    return p;
}

static void list_slots(fm_placement *p, const int32_t *n_slot, const int32_t *expert)
{
    for (int q = 0; q < p->n_set; q++) {
        p->slot0[q + 1] = p->slot0[q] + n_slot[q];
        if (n_slot[q] > p->most_slots) p->most_slots = n_slot[q];
    }
    memcpy(p->expert, expert, (size_t)p->slot0[p->n_set] * sizeof *expert);
}

/* Copies of an expert in the order of their sets: a counting sort. */
static void list_copies(fm_placement *p)
{
    const int n = p->slot0[p->n_set];
    for (int i = 0; i < n; i++) p->copy0[p->expert[i] + 1]++;
    for (int e = 0; e < p->n_expert; e++) p->copy0[e + 1] += p->copy0[e];
    for (int q = p->n_set - 1, i = n - 1; i >= 0; i--) {
        while (i < p->slot0[q]) q--;
        p->copy[--p->copy0[p->expert[i] + 1]] = (fm_expert_copy){q, i - p->slot0[q]};
    }
    for (int e = 0; e < p->n_expert; e++) p->copy0[e] = p->copy0[e + 1]; /* now first copies */
    p->copy0[p->n_expert] = n;
}

static fm_status check(const fm_placement *p)
{
    for (int e = 0; e < p->n_expert; e++) {
        if (p->copy0[e] == p->copy0[e + 1]) return fm_fail(FM_E_ARG, "expert %d lies nowhere", e);
        for (int i = p->copy0[e] + 1; i < p->copy0[e + 1]; i++)
            if (p->copy[i].set == p->copy[i - 1].set)
                return fm_fail(FM_E_ARG, "expert %d lies twice in set %d", e, (int)p->copy[i].set);
        if (p->n_set == 1 && p->copy[e].slot != e)
            return fm_fail(FM_E_ARG, "one set has the experts in order; slot %d has another", e);
    }
    return FM_OK;
}

fm_status fm_placement_create(fm_placement **out, int n_expert, int n_set, const int32_t *n_slot,
                              const int32_t *expert)
{
    int n = 0;
    for (int q = 0; q < n_set; q++) n += n_slot[q];
    for (int i = 0; i < n; i++)
        if (expert[i] < 0 || expert[i] >= n_expert)
            return fm_fail(FM_E_ARG, "there is no expert %d", (int)expert[i]);
    fm_placement *p = allocate(n_expert, n_set, n);
    if (!p) return fm_fail(FM_E_OOM, "placement of experts");
    list_slots(p, n_slot, expert);
    list_copies(p);
    const fm_status rc = check(p);
    if (rc == FM_OK)
        *out = p;
    else
        free(p);
    return rc;
}

fm_status fm_placement_create_even(fm_placement **out, int n_expert, int n_set)
{
    int32_t *expert = malloc(((size_t)n_expert + (size_t)n_set) * sizeof *expert);
    int32_t *n_slot = expert + n_expert;
    if (!expert) return fm_fail(FM_E_OOM, "placement of experts");
    for (int e = 0; e < n_expert; e++) expert[e] = e;
    for (int q = 0; q < n_set; q++)
        n_slot[q] = fm_range_len(fm_share_of((fm_share){q, n_set}, n_expert, 1));
    const fm_status rc = fm_placement_create(out, n_expert, n_set, n_slot, expert);
    free(expert);
    return rc;
}

void fm_placement_destroy(fm_placement *p) { free(p); }
