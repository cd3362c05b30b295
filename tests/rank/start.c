/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks tell each other at the start and at the end: placement,
 * fingerprints that differ, and the report. */
#include <string.h>

#include "rank.h"

static fm_world *w;

static void placement(const fm_comm *c)
{
    fm_str text  = {0};
    int    lines = 0;
    CHECK(w, fm_world_placement(w, &text) == FM_OK);
    for (const char *p = text.text; *p; p++) lines += *p == '\n';
    CHECK(w, lines == c->n_rank + 1 && strstr(text.text, fm_world_host(w, c->rank)));
    if (c->rank == 0) fputs(text.text, stdout);
    fm_str_fini(&text);
}

static void fingerprints(const fm_comm *c)
{
    const int last = c->n_rank - 1;
    char      want[32];
    CHECK(w, fm_world_agree(w, "build", 1, "v1") == FM_OK);
    CHECK(w, fm_world_agree(w, "checkpoint", c->rank == last, c->rank == last ? "other" : "this") ==
                 FM_E_COMM);
    snprintf(want, sizeof want, "\"other\" on rank %d (", last);
    CHECK(w, strstr(fm_why(), "checkpoint differs between ranks: \"this\" on rank 0 ("));
    CHECK(w, strstr(fm_why(), want));
    CHECK(w, fm_world_agree(w, "config", c->rank > 0, c->rank > 0 ? "b" : "a") == FM_E_COMM);
    CHECK(w, c->n_rank < 3 || strstr(fm_why(), "on ranks 1, 2"));
    CHECK(w, fm_world_agree(w, "build", 2, "v1") == FM_OK); /* a mismatch breaks nothing */
}

/* Nobody has bound these ranks: those of a host may all use the same cores. */
static void neighbours(const fm_comm *c)
{
    int n = 0, mine = 0, index = -1;
    for (int i = 0; i < c->n_rank; i++) {
        if (i == c->rank) mine = n;
        n += !strcmp(fm_world_host(w, i), fm_world_host(w, c->rank));
    }
    CHECK(w, fm_world_on_host(w, &index) == n && index == mine);
    index = -1;
    CHECK(w, fm_world_on_cpus(w, &index) == n && index == mine);
}

static void report(fm_comm *c)
{
    fm_str   text   = {0};
    float    x[100] = {0};
    fm_comm *part   = NULL;
    CHECK(w, fm_comm_split(c, &(fm_comm_part){0, 0, "inner", 0}, &part) == FM_OK);
    for (int i = 0; i < 10; i++) CHECK(w, fm_all_reduce_f32(part, x, 100) == FM_OK);
    CHECK(w, fm_world_report(w, &text) == FM_OK);
    if (c->rank == 0) {
        CHECK(w, strstr(text.text, "inner           all_reduce "));
        CHECK(w, strstr(text.text, "world           all_gather "));
        fputs(text.text, stdout);
    } else
        CHECK(w, text.len == 0);
    fm_str_fini(&text);
    fm_comm_close(part);
}

int main(void)
{
    w          = rank_open();
    fm_comm *c = fm_world_comm(w);
    placement(c);
    neighbours(c);
    fingerprints(c);
    report(c);
    fm_world_close(w);
    return 0;
}
