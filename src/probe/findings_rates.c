/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and ranks whose cores, memory, GPUs or files are slower than the others'. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/findings_internal.h"

typedef enum { OF_CORES, OF_MEMORY, OF_GPU, OF_FILES } subject;

/* One thing that is compared. */
typedef struct {
    fm_metric   metric;
    subject     of;
    const char *group; /* a rank that is accused by one metric of a group is not by the next */
    fm_rate (*get)(const fm_checkup_rank *r, int which);
    int which;
} comparison;

static fm_rate get_read(const fm_checkup_rank *r, int which)
{
    (void)which;
    return r->rates.read;
}

static fm_rate get_product(const fm_checkup_rank *r, int which) { return r->rates.product[which]; }

static fm_rate get_node_read(const fm_checkup_rank *r, int which)
{
    return r->rates.node[which].read;
}

static fm_rate get_node_product(const fm_checkup_rank *r, int which)
{
    return r->rates.node[which].product;
}

static fm_rate get_gpu_read(const fm_checkup_rank *r, int which)
{
    (void)which;
    return r->rates.gpu.read;
}

static fm_rate get_gpu_product(const fm_checkup_rank *r, int which)
{
    return r->rates.gpu.product[which];
}

static fm_rate get_gpu_bus(const fm_checkup_rank *r, int which)
{
    return which ? r->rates.gpu.download : r->rates.gpu.upload;
}

static fm_rate get_file(const fm_checkup_rank *r, int which)
{
    (void)which;
    return r->rates.file;
}

#define GB "GB/s", 1e-9, 0
#define TFLOP "TFLOP/s", 1e-12, 0

/* clang-format off */
static const comparison all[] = {
    {{"memory bandwidth", GB, 0.10, 0}, OF_MEMORY, "memory", get_read, 0},
    {{"bf16 product", TFLOP, 0.10, 0}, OF_CORES, "cores", get_product, FM_FACTOR_BF16},
    {{"f32 product", TFLOP, 0.15, 0}, OF_CORES, "cores", get_product, FM_FACTOR_F32},
    {{"f64 product", TFLOP, 0.15, 0}, OF_CORES, "cores", get_product, FM_FACTOR_F64},
    {{"GPU memory bandwidth", GB, 0.05, 0}, OF_GPU, "GPU memory", get_gpu_read, 0},
    {{"GPU bf16 product", TFLOP, 0.08, 0}, OF_GPU, "GPU", get_gpu_product, FM_FACTOR_BF16},
    {{"GPU fp8 product", TFLOP, 0.08, 0}, OF_GPU, "GPU", get_gpu_product, FM_FACTOR_FP8},
    {{"GPU f64 product", TFLOP, 0.10, 0}, OF_GPU, "GPU", get_gpu_product, FM_FACTOR_F64},
    {{"copy to the GPU", GB, 0.20, 0}, OF_GPU, "bus", get_gpu_bus, 0},
    {{"copy from the GPU", GB, 0.20, 0}, OF_GPU, "bus", get_gpu_bus, 1},
    {{"file reading", GB, 0.40, 0}, OF_FILES, "files", get_file, 0},
};
/* Nodes of ranks that were found well in the same group. */
static const comparison nodes[] = {
    {{"memory bandwidth of a NUMA node", GB, 0.15, 0}, OF_MEMORY, "memory", get_node_read, 0},
    {{"product of a NUMA node", TFLOP, 0.15, 0}, OF_CORES, "cores", get_node_product, 0},
};
/* clang-format on */
enum { N_COMPARISON = sizeof all / sizeof all[0], N_NODES = sizeof nodes / sizeof nodes[0] };

static const char *kind_of(const fm_checkup_rank *r, subject of)
{
    return of == OF_GPU ? r->rates.gpu.name : of == OF_FILES ? r->rates.directory : r->rates.cpu;
}

/* --- words -------------------------------------------------------------------- */

static void put_sentence(char *out, size_t size, const fm_metric *m, double value,
                         const fm_deviation *d, const char *them)
{
    char by[32];
    fm_deviation_words(m, d->off, by, sizeof by);
    snprintf(out, size,
             m->is_time ? "%s %s that of %s (%.3g against %.3g %s)"
                        : "%s %s %s (%.3g against %.3g %s)",
             m->name, by, them, value * m->scale, d->others * m->scale, m->unit);
}

void fm__deviation_sentence(char *out, size_t size, const fm_metric *m, double value,
                            const fm_deviation *d)
{
    char them[48] = "the other one";
    if (d->n_other > 1) snprintf(them, sizeof them, "the other %d", d->n_other);
    put_sentence(out, size, m, value, d, them);
}

/* Of a host that has no others beside it: "... below what was measured before (...)". */
static void decline_sentence(char *out, size_t size, const fm_metric *m, double value,
                             const fm_deviation *d)
{
    put_sentence(out, size, m, value, d, "what was measured before");
}

static void advise(fm_finding *f, const fm_checkup *c, const comparison *x, int rank)
{
    if (x->of == OF_GPU)
        fm__advise_gpu(f->todo, sizeof f->todo, c, rank);
    else if (x->of == OF_FILES)
        snprintf(
            f->todo, sizeof f->todo,
            "check its mount and the network of its file system; what is read there takes longer");
    else
        fm__advise_host(f->todo, sizeof f->todo, c, rank, x->of == OF_MEMORY);
}

static void accuse(fm_findings *f, const fm_checkup *c, const comparison *x, int host, int rank,
                   double value, const fm_deviation *d)
{
    const int of = rank >= 0 ? rank : c->host[host].first;
    char      text[256];
    const int is_alone = c->n_host == 1 && c->n_before > 0;
    (is_alone ? decline_sentence : fm__deviation_sentence)(text, sizeof text, &x->metric, value, d);
    advise(fm__finding_add(f, FM_FINDING_FAULT, host, rank, "%s", text), c, x, of);
}

static void remark(fm_findings *f, const comparison *x, int host, int rank, const fm_rate *r,
                   const fm_deviation *d)
{
    const fm_metric *m = &x->metric;
    fm_finding      *n =
        fm__finding_add(f, FM_FINDING_NOTE, host, rank,
                        "%s is unsteady: %.3g %s as a rule, %.3g at best (others %.3g)", m->name,
                        r->median * m->scale, m->unit, r->best * m->scale, d->others * m->scale);
    snprintf(n->todo, sizeof n->todo, "something disturbs it now and then; measure again");
}

/* --- hosts, then ranks ----------------------------------------------------------- */

/* Who has been accused, by group of metrics. */
typedef struct {
    const char **host, **rank; /* [n_host], [n_rank]: the group; NULL: not accused */
} accused;

static int is_new(const char *group, const comparison *x)
{
    return !group || strcmp(group, x->group) != 0;
}

/* Rates of another day count as those of further hosts, if as many threads measured them. */
static fm_sample sample_before(const fm_checkup *c, const comparison *x, int i)
{
    const fm_checkup_rank *r       = &c->before[i];
    const int              is_like = r->rates.n_thread == c->rank[0].rates.n_thread;
    return (fm_sample){is_like ? kind_of(r, x->of) : NULL, x->get(r, x->which)};
}

static void compare_hosts(fm_findings *f, const fm_checkup *c, const comparison *x, accused *a,
                          fm_sample *sample, fm_deviation *d)
{
    for (int h = 0; h < c->n_host; h++)
        sample[h] = (fm_sample){kind_of(&c->rank[c->host[h].first], x->of),
                                fm_checkup_host_rate(c, h, x->get, x->which)};
    for (int i = 0; i < c->n_before; i++) sample[c->n_host + i] = sample_before(c, x, i);
    fm_compare(&x->metric, sample, c->n_host + c->n_before, d);
    for (int h = 0; h < c->n_host; h++) {
        const int rank = c->host[h].n_rank == 1 ? c->host[h].first : -1;
        if (d[h].is_unsteady) remark(f, x, h, rank, &sample[h].rate, &d[h]);
        if (d[h].off == 0 || !is_new(a->host[h], x)) continue;
        accuse(f, c, x, h, rank, sample[h].rate.median, &d[h]);
        a->host[h] = x->group;
    }
}

static void compare_ranks(fm_findings *f, const fm_checkup *c, const comparison *x, accused *a,
                          fm_sample *sample, fm_deviation *d)
{
    for (int r = 0; r < c->n_rank; r++)
        sample[r] =
            (fm_sample){is_new(a->host[c->host_of[r]], x) ? kind_of(&c->rank[r], x->of) : NULL,
                        x->get(&c->rank[r], x->which)};
    fm_compare(&x->metric, sample, c->n_rank, d);
    for (int r = 0; r < c->n_rank; r++) {
        const int h = c->host_of[r];
        if (c->host[h].n_rank == 1) continue; /* was compared as a host */
        if (d[r].is_unsteady) remark(f, x, h, r, &sample[r].rate, &d[r]);
        if (d[r].off == 0 || !is_new(a->rank[r], x)) continue;
        accuse(f, c, x, h, r, sample[r].rate.median, &d[r]);
        a->rank[r] = x->group;
    }
}

/* --- NUMA nodes -------------------------------------------------------------------- */

/* The same CPU, the same instructions and as many cores: with fewer a node is slower, and well. */
typedef struct {
    char text[160];
} node_kind;

static void describe_node(node_kind *out, const fm_rates_rank *r, int node)
{
    snprintf(out->text, sizeof out->text, "%s, %s, %d", r->cpu, r->isa, r->node[node].n_core);
}

static void accuse_node(fm_findings *f, const fm_checkup *c, const comparison *x, int rank,
                        int node, const fm_deviation *d)
{
    const fm_checkup_rank *r = &c->rank[rank];
    char                   text[200];
    fm__deviation_sentence(text, sizeof text, &x->metric, x->get(r, node).median, d);
    advise(fm__finding_add(f, FM_FINDING_FAULT, c->host_of[rank], rank, "NUMA node %d: %s",
                           r->rates.node[node].id, text),
           c, x, rank);
}

/* Nodes of all ranks whose cores or memory as a whole were found well. */
static void compare_nodes(fm_findings *f, const fm_checkup *c, const comparison *x,
                          const accused *a)
{
    enum { MOST = FM_RATES_MAX_NODE };
    const int     n      = c->n_rank * MOST;
    fm_sample    *sample = calloc((size_t)n, sizeof *sample);
    fm_deviation *d      = calloc((size_t)n, sizeof *d);
    node_kind    *kind   = calloc((size_t)n, sizeof *kind);
    FM_BUG_UNLESS(sample && d && kind);
    for (int i = 0; i < n; i++) {
        const int              rank = i / MOST, node = i % MOST;
        const fm_checkup_rank *r = &c->rank[rank];
        if (r->rates.n_node < 2 || node >= r->rates.n_node) continue;
        if (!is_new(a->host[c->host_of[rank]], x) || !is_new(a->rank[rank], x)) continue;
        describe_node(&kind[i], &r->rates, node);
        sample[i] = (fm_sample){kind[i].text, x->get(r, node)};
    }
    fm_compare(&x->metric, sample, n, d);
    for (int i = 0; i < n; i++)
        if (d[i].off > 0) accuse_node(f, c, x, i / MOST, i % MOST, &d[i]);
    free(sample);
    free(d);
    free(kind);
}

/* Is `i` the last comparison of its group? */
static int ends_group(int i)
{
    return i + 1 == N_COMPARISON || strcmp(all[i + 1].group, all[i].group) != 0;
}

void fm__findings_rates(fm_findings *f, const fm_checkup *c)
{
    const size_t  n = (size_t)c->n_rank, n_all = n + (size_t)c->n_before;
    fm_sample    *sample = calloc(n_all, sizeof *sample);
    fm_deviation *d      = calloc(n_all, sizeof *d);
    const char  **group  = calloc(2 * n, sizeof *group);
    FM_BUG_UNLESS(sample && d && group);
    accused a = {.host = group, .rank = group + n};
    for (int i = 0; i < N_COMPARISON; i++) {
        compare_hosts(f, c, &all[i], &a, sample, d);
        compare_ranks(f, c, &all[i], &a, sample, d);
        for (int k = 0; k < N_NODES && ends_group(i); k++)
            if (!strcmp(nodes[k].group, all[i].group)) compare_nodes(f, c, &nodes[k], &a);
    }
    free(sample);
    free(d);
    free(group);
}
