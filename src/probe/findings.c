/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/findings_internal.h"

fm_finding *fm__finding_add(fm_findings *f, fm_finding_level level, int host, int rank,
                            const char *what, ...)
{
    va_list ap;
    if (f->n == f->cap) {
        f->cap  = f->cap ? 2 * f->cap : 16;
        f->item = realloc(f->item, (size_t)f->cap * sizeof *f->item);
        FM_BUG_UNLESS(f->item != NULL);
    }
    fm_finding *new = &f->item[f->n++];
    *new            = (fm_finding){.level = level, .host = host, .rank = rank, .peer_host = -1};
    va_start(ap, what);
    vsnprintf(new->what, sizeof new->what, what, ap);
    va_end(ap);
    return new;
}

/* The same note about several hosts becomes one. */
static void merge_notes(fm_findings *f)
{
    int n = 0;
    for (int i = 0; i < f->n; i++) {
        fm_finding *x = &f->item[i];
        int         j = 0;
        while (j < n && (f->item[j].level != x->level || x->level != FM_FINDING_NOTE ||
                         f->item[j].host == x->host || strcmp(f->item[j].what, x->what) != 0))
            j++;
        if (j < n)
            f->item[j].n_more++;
        else
            f->item[n++] = *x;
    }
    f->n = n;
}

/* Faults before notes, otherwise as they were found. */
static void faults_first(fm_findings *f)
{
    fm_finding *sorted = calloc((size_t)f->n + 1, sizeof *sorted);
    int         n      = 0;
    FM_BUG_UNLESS(sorted != NULL);
    for (int level = FM_FINDING_FAULT; level >= FM_FINDING_NOTE; level--)
        for (int i = 0; i < f->n; i++)
            if ((int)f->item[i].level == level) sorted[n++] = f->item[i];
    free(f->item);
    f->item = sorted;
    f->cap  = f->n + 1;
}

void fm_findings_make(fm_findings *out, const fm_checkup *c)
{
    fm_findings f = {0};
    fm__findings_rates(&f, c);
    fm__findings_links(&f, c);
    fm__findings_facts(&f, c);
    fm__findings_differ(&f, c);
    merge_notes(&f);
    faults_first(&f);
    *out = f;
}

void fm_findings_fini(fm_findings *f)
{
    free(f->item);
    *f = (fm_findings){0};
}

int fm_findings_faults(const fm_findings *f)
{
    int n = 0;
    for (int i = 0; i < f->n; i++) n += f->item[i].level == FM_FINDING_FAULT;
    return n;
}

void fm_finding_who(const fm_finding *f, const fm_checkup *c, char *out, size_t size)
{
    const char *host = f->host >= 0 ? c->host[f->host].name : "";
    if (f->host < 0)
        snprintf(out, size, c->n_host > 1 ? "all hosts" : "%s", c->host[0].name);
    else if (f->peer_host >= 0)
        snprintf(out, size, "the link between %s and %s", host, c->host[f->peer_host].name);
    else if (f->rank >= 0 && c->host[f->host].n_rank > 1 && !f->n_more)
        snprintf(out, size, "rank %d on %s", f->rank, host);
    else if (f->n_more > 0)
        snprintf(out, size, "%s and %d more", host, f->n_more);
    else
        snprintf(out, size, "%s", host);
}

/* Faults of a host itself, and slow links that it is an end of. */
static int count_faults(const fm_findings *f, int host, int of_links)
{
    int n = 0;
    for (int i = 0; i < f->n; i++) {
        const fm_finding *x = &f->item[i];
        if (x->level != FM_FINDING_FAULT || (x->peer_host >= 0) != of_links) continue;
        n += x->host == host || (of_links && x->peer_host == host);
    }
    return n;
}

/* A link has two ends, and leaving out one is enough: one that has a fault of its own, or else the
 * one with more slow links. */
static int end_to_leave_out(const fm_findings *f, const fm_finding *link)
{
    const int a = link->host, b = link->peer_host;
    const int own_a = count_faults(f, a, 0) > 0, own_b = count_faults(f, b, 0) > 0;
    if (own_a != own_b) return own_a ? a : b;
    return count_faults(f, a, 1) > count_faults(f, b, 1) ? a : b;
}

static int is_accused(const fm_findings *f, int host)
{
    for (int i = 0; i < f->n; i++) {
        const fm_finding *x = &f->item[i];
        if (x->level != FM_FINDING_FAULT) continue;
        if ((x->peer_host >= 0 ? end_to_leave_out(f, x) : x->host) == host) return 1;
    }
    return 0;
}

static void list_hosts(const fm_findings *f, const fm_checkup *c, int accused, int with_slots,
                       fm_str *out)
{
    const size_t before = out->len;
    for (int h = 0; h < c->n_host; h++) {
        if (is_accused(f, h) != accused) continue;
        fm_str_printf(out, "%s%s", out->len > before ? "," : "", c->host[h].name);
        if (with_slots) fm_str_printf(out, ":%d", c->host[h].n_rank);
    }
}

void fm_findings_excluded(const fm_findings *f, const fm_checkup *c, fm_str *out)
{
    list_hosts(f, c, 1, 0, out);
}

void fm_findings_healthy(const fm_findings *f, const fm_checkup *c, int with_slots, fm_str *out)
{
    list_hosts(f, c, 0, with_slots, out);
}
