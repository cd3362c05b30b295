/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other once, at the start: who they are and whether
 * they mean the same thing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/world_internal.h"

enum { TEXT_BYTES = 160, PLACE_BYTES = 128 };

typedef struct {
    uint64_t hash;
    char     text[TEXT_BYTES];
} claim;

/* "rank 2", "ranks 2, 3 and 5 more": those that claim what `odd` does. */
static void list_ranks(fm_str *out, const claim *all, int n, int odd)
{
    enum { NAMED = 8 };
    int count = 0;
    for (int i = odd; i < n; i++) count += all[i].hash == all[odd].hash;
    fm_str_puts(out, count == 1 ? "rank" : "ranks");
    int named = 0;
    for (int i = odd; i < n && named < NAMED; i++)
        if (all[i].hash == all[odd].hash) fm_str_printf(out, "%s %d", named++ ? "," : "", i);
    if (count > NAMED) fm_str_printf(out, " and %d more", count - NAMED);
}

static fm_status complain(fm_world *w, const char *name, const claim *all, int odd)
{
    fm_str ranks = {0};
    list_ranks(&ranks, all, w->comm->n_rank, odd);
    const fm_status rc = fm_fail(
        FM_E_COMM, "%s differs between ranks: \"%s\" on rank 0 (%s), \"%s\" on %s (%s)", name,
        all[0].text, fm_world_host(w, 0), all[odd].text, ranks.text, fm_world_host(w, odd));
    fm_str_fini(&ranks);
    return rc;
}

fm_status fm_world_agree(fm_world *w, const char *name, uint64_t hash, const char *text)
{
    const int n = w->comm->n_rank;
    if (n == 1) return FM_OK;
    claim mine = {.hash = hash}, *all = calloc((size_t)n, sizeof *all);
    if (!all) return fm_fail(FM_E_OOM, "%s", name);
    snprintf(mine.text, sizeof mine.text, "%s", text);
    for (char *p = mine.text; *p; p++)
        if (*p == '\n') *p = ' '; /* the sentence is one line */
    fm_status rc = fm__world_gather(w, all, &mine, sizeof mine);
    for (int i = 0; rc == FM_OK && i < n; i++)
        if (all[i].hash != all[0].hash) rc = complain(w, name, all, i);
    free(all);
    return rc;
}

fm_status fm_world_placement(fm_world *w, fm_str *out)
{
    char  mine[PLACE_BYTES] = "";
    char *all               = calloc((size_t)w->comm->n_rank, sizeof mine);
    if (!all) return fm_fail(FM_E_OOM, "placement");
    fm__place_text(mine, sizeof mine);
    const fm_status rc = fm__world_gather(w, all, mine, sizeof mine);
    if (rc == FM_OK)
        fm_str_puts(out, "rank host                 socket   numa     cores          cpus\n");
    for (int i = 0; rc == FM_OK && i < w->comm->n_rank; i++)
        fm_str_printf(out, "%4d %-20s %s\n", i, fm_world_host(w, i), all + (size_t)i * sizeof mine);
    free(all);
    return rc;
}
