/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/checkup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "probe/host_rates.h"

/* --- the record -------------------------------------------------------------- */

fm_status fm_checkup_init(fm_checkup *c, int n_rank)
{
    const size_t n = (size_t)n_rank;
    *c             = (fm_checkup){.n_rank  = n_rank,
                                  .rank    = calloc(n, sizeof *c->rank),
                                  .host_of = calloc(n, sizeof *c->host_of),
                                  .host    = calloc(n, sizeof *c->host)};
    if (c->rank && c->host_of && c->host && fm_links_init(&c->links, n_rank) == FM_OK) return FM_OK;
    fm_checkup_fini(c);
    return fm_fail(FM_E_OOM, "checkup of %d ranks", n_rank);
}

void fm_checkup_settle(fm_checkup *c)
{
    c->n_host = 0;
    for (int i = 0; i < c->n_rank; i++) {
        const char *name = c->rank[i].rates.host;
        int         h    = 0;
        while (h < c->n_host && strcmp(c->host[h].name, name) != 0) h++;
        if (h == c->n_host) {
            c->host[h] = (fm_checkup_host){.first = i};
            snprintf(c->host[h].name, sizeof c->host[h].name, "%s", name);
            c->n_host++;
        }
        c->host[h].n_rank++;
        c->host_of[i] = h;
    }
}

void fm_checkup_fini(fm_checkup *c)
{
    free(c->rank);
    free(c->host_of);
    free(c->host);
    free(c->before);
    fm_links_fini(&c->links);
    fm_gpu_links_fini(&c->gpu_links);
    *c = (fm_checkup){0};
}

fm_status fm_checkup_remember(fm_checkup *c, const fm_rates *before)
{
    fm_checkup_rank *all = calloc((size_t)before->n_rank, sizeof *all);
    if (!all) return fm_fail(FM_E_OOM, "rates of %d ranks", before->n_rank);
    for (int i = 0; i < before->n_rank; i++) all[i].rates = before->rank[i];
    free(c->before);
    c->before   = all;
    c->n_before = before->n_rank;
    return FM_OK;
}

fm_rate fm_checkup_host_rate(const fm_checkup *c, int                                 host,
                             fm_rate (*get)(const fm_checkup_rank *r, int which), int which)
{
    const size_t most = (size_t)c->host[host].n_rank;
    double      *x    = calloc(3 * most, sizeof *x);
    int          n = 0, repeats = 0;
    FM_BUG_UNLESS(x != NULL);
    for (int i = 0; i < c->n_rank; i++) {
        const fm_rate r = c->host_of[i] == host ? get(&c->rank[i], which) : (fm_rate){0};
        if (r.n == 0) continue;
        x[n]                    = r.median;
        x[most + (size_t)n]     = r.spread;
        x[2 * most + (size_t)n] = r.best;
        repeats                 = r.n;
        n++;
    }
    const fm_rate all = {.median = fm_rate_of(x, n).median,
                         .spread = fm_rate_of(x + most, n).median,
                         .best   = fm_rate_of(x + 2 * most, n).median,
                         .n      = repeats};
    free(x);
    return all;
}

/* --- measuring ----------------------------------------------------------------- */

/* What a turn needs. */
typedef struct {
    fm_checkup_rank *mine;
    int              index;     /* among the ranks of the machine */
    int              n_machine; /* and which machine this is */
    int              machine;
    const char      *directory;
    fm_gpu_product  *gpu_product;
} turn;

static void measure_gpu(void *ctx)
{
    turn     *t = ctx;
    const int n = fm_gpu_rates_count();
    if (n == 0) {
        if (fm_gpu_facts_read(&t->mine->gpu, t->index, NULL) == FM_OK)
            snprintf(t->mine->gpu_why, sizeof t->mine->gpu_why,
                     "this build or its driver has no "
                     "CUDA that can use it");
        return;
    }
    if (fm_gpu_rates(&t->mine->rates.gpu, &t->mine->gpu, t->index % n, t->gpu_product) != FM_OK)
        snprintf(t->mine->gpu_why, sizeof t->mine->gpu_why, "%.150s", fm_why());
}

/* One rank of each machine. */
static void measure_files(void *ctx)
{
    turn                   *t    = ctx;
    const fm_file_read_plan plan = {
        .directory = t->directory, .seconds = 2, .index = t->machine, .n = t->n_machine};
    if (t->index > 0) return;
    snprintf(t->mine->rates.directory, sizeof t->mine->rates.directory, "%.255s", t->directory);
    if (fm_file_read_measure(&t->mine->file, &plan) == FM_OK)
        t->mine->rates.file = t->mine->file.rate;
    else
        snprintf(t->mine->file_why, sizeof t->mine->file_why, "%.150s", fm_why());
}

static turn turn_of(fm_checkup_rank *mine, const fm_turns *turns, const char *directory)
{
    const fm_comm *c  = fm_world_comm(turns->world);
    const int      me = fm_world_machine(turns->world, c->rank);
    turn           t  = {.mine = mine, .index = turns->index, .directory = directory};
    for (int i = 0; i < c->n_rank; i++) {
        const int is_first = fm_world_machine(turns->world, i) == i;
        t.n_machine += is_first;
        t.machine += is_first && i < me;
    }
    return t;
}

static fm_status measure_links(fm_checkup *out, const fm_checkup_rank *mine, const fm_turns *turns,
                               const fm_checkup_plan *plan)
{
    const int has_gpu = *mine->rates.gpu.name && !*mine->gpu_why;
    fm_links  links   = {0};
    fm_world_doing(turns->world, "measuring links");
    FM_TRY(fm_links_measure(&links, turns));
    fm_links_fini(&out->links);
    out->links = links;
    fm_world_doing(turns->world, "measuring links between GPUs");
    if (plan->no_gpu) return FM_OK;
    return fm_gpu_links_measure(&out->gpu_links, turns, has_gpu ? mine->gpu.pci : NULL);
}

static fm_status measure(fm_checkup *out, fm_checkup_rank *mine, const fm_turns *turns,
                         const fm_checkup_plan *plan)
{
    const fm_host_rates_plan host = {plan->threads, plan->seconds};
    turn                     t    = turn_of(mine, turns, plan->directory);
    fm_facts                 before;
    t.gpu_product = plan->gpu_product;
    fm_facts_read(&before, "");
    fm_world_doing(turns->world, "measuring cores and memory");
    FM_TRY(fm_host_rates(&mine->rates, &mine->on_cpu, &host, turns));
    fm_facts_read(&mine->facts, "");
    fm_facts_since(&mine->facts, &before);
    fm_world_doing(turns->world, "measuring a GPU");
    if (!plan->no_gpu) FM_TRY(fm_turns_run(turns, measure_gpu, &t));
    fm_world_doing(turns->world, "reading files");
    if (plan->directory) FM_TRY(fm_turns_run(turns, measure_files, &t));
    return measure_links(out, mine, turns, plan);
}

static fm_status gather(fm_checkup *c, const fm_checkup_rank *mine, fm_comm *comm)
{
    size_t *bytes = calloc((size_t)c->n_rank, sizeof *bytes);
    if (!bytes) return fm_fail(FM_E_OOM, "checkup");
    for (int i = 0; i < c->n_rank; i++) bytes[i] = sizeof *mine;
    const fm_status rc = fm_all_gather(comm, c->rank, mine, bytes);
    free(bytes);
    return rc;
}

static fm_status run(fm_checkup *c, fm_world *w, const fm_checkup_plan *plan)
{
    fm_comm        *comm  = fm_world_comm(w);
    const fm_turns  turns = fm_turns_of(w, plan->patience);
    fm_checkup_rank mine  = {.gpu.index = -1};
    const double    began = fm_now();
    snprintf(mine.rates.host, sizeof mine.rates.host, "%s", fm_world_host(w, comm->rank));
    FM_TRY(measure(c, &mine, &turns, plan));
    snprintf(mine.rates.cpu, sizeof mine.rates.cpu, "%s", mine.facts.cpu);
    FM_TRY(gather(c, &mine, comm));
    fm_checkup_settle(c);
    if (comm->n_rank > 1) fm_world_library(c->mpi, sizeof c->mpi);
    c->seconds = fm_now() - began;
    return FM_OK;
}

fm_status fm_checkup_run(fm_checkup *out, fm_world *w, const fm_checkup_plan *plan)
{
    fm_checkup c;
    FM_TRY(fm_checkup_init(&c, fm_world_comm(w)->n_rank));
    const fm_status rc = run(&c, w, plan);
    if (rc == FM_OK)
        *out = c;
    else
        fm_checkup_fini(&c);
    return rc;
}
