/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, links and ranks whose messages are slower than the others'.
 *
 * A host's connection is judged by its best link to any other host: the links of
 * the others to a slow host are slow, too, but their best ones are not.  Of three
 * hosts two share their best link, which is the only one to compare the third with:
 * what links scatter is not known then, and the threshold is that of single links.
 * Then single links between hosts that are well in latency and bandwidth, and ranks
 * of one host by their best link to another rank of it.  Links of ranks that had to wait for a CPU
 * are not judged. */
#include <stdio.h>
#include <stdlib.h>

#include "probe/findings_internal.h"

enum { FEW_HOSTS = 3 };

typedef struct {
    fm_metric      metric;     /* of hosts */
    double         least_pair; /* of single links: switches and sockets make differences */
    const fm_rate *matrix;     /* [n_rank, n_rank] */
    const char    *far, *near; /* what to do about hosts, and about ranks of one host */
    int            is_gpu;
} comparison;

static const char far_hint[] =
    "check its cable, port and link speed (ethtool, ibstat, dmesg), and that "
    "its ranks use the same network as the others (UCX_NET_DEVICES, "
    "btl_tcp_if_include)";
static const char near_hint[] =
    "check which cores it is bound to (mpirun --report-bindings), and whether "
    "shared memory is in use between the ranks of this host";
static const char far_gpu_hint[] =
    "check its network adapters (ibstat, dmesg) and which of them NCCL uses there "
    "(NCCL_DEBUG=INFO, NCCL_IB_HCA, NCCL_SOCKET_IFNAME)";
static const char near_gpu_hint[] =
    "check its NVLinks and where it is plugged in (nvidia-smi nvlink -s, nvidia-smi topo -m), and "
    "the way NCCL takes (NCCL_DEBUG=INFO)";

static int is_better(const fm_metric *m, const fm_rate *a, const fm_rate *b)
{
    return b->n == 0 || (m->is_time ? a->median < b->median : a->median > b->median);
}

static const fm_rate *link_of(const fm_checkup *c, const comparison *x, int from, int to)
{
    return &x->matrix[(size_t)from * (size_t)c->n_rank + (size_t)to];
}

static void keep_better(const fm_metric *m, fm_rate *best, const fm_rate *r)
{
    if (r->n > 0 && is_better(m, r, best)) *best = *r;
}

static fm_finding *accuse(fm_findings *f, const comparison *x, int host, int rank, double value,
                          const fm_deviation *d)
{
    char text[256];
    fm__deviation_sentence(text, sizeof text, &x->metric, value, d);
    fm_finding *new = fm__finding_add(f, FM_FINDING_FAULT, host, rank, "%s", text);
    snprintf(new->todo, sizeof new->todo, "%s", rank < 0 ? x->far : x->near);
    return new;
}

/* --- between hosts ---------------------------------------------------------------- */

/* pair[n_host, n_host]: the best link of each two hosts. */
static void compare_hosts(fm_findings *f, const fm_checkup *c, const comparison *x,
                          const fm_rate *pair, int *is_slow)
{
    const int     n      = c->n_host;
    fm_sample    *sample = calloc((size_t)n, sizeof *sample);
    fm_deviation *d      = calloc((size_t)n, sizeof *d);
    comparison    host   = *x;
    int           n_host = 0; /* that have a link to judge */
    FM_BUG_UNLESS(sample && d);
    for (int h = 0; h < n; h++) {
        sample[h].kind = "host";
        for (int k = 0; k < n; k++) keep_better(&x->metric, &sample[h].rate, &pair[h * n + k]);
        n_host += sample[h].rate.n > 0;
    }
    if (n_host <= FEW_HOSTS) host.metric.least = x->least_pair;
    fm_compare(&host.metric, sample, n, d);
    for (int h = 0; n_host > 2 && h < n; h++)
        if (d[h].off > 0) {
            accuse(f, &host, h, -1, sample[h].rate.median, &d[h]);
            is_slow[h] = 1;
        }
    free(sample);
    free(d);
}

static void compare_pairs(fm_findings *f, const fm_checkup *c, const comparison *x,
                          const fm_rate *pair, const int *is_slow)
{
    const int     n      = c->n_host;
    fm_sample    *sample = calloc((size_t)(n * n), sizeof *sample);
    fm_deviation *d      = calloc((size_t)(n * n), sizeof *d);
    comparison    single = *x;
    single.metric.least  = x->least_pair;
    FM_BUG_UNLESS(sample && d);
    for (int i = 0; i < n * n; i++) {
        const int h = i / n, k = i % n;
        sample[i] = (fm_sample){h < k && !is_slow[h] && !is_slow[k] ? "pair" : NULL, pair[i]};
    }
    fm_compare(&single.metric, sample, n * n, d);
    for (int i = 0; i < n * n; i++)
        if (d[i].off > 0 && d[i].n_other > 1)
            accuse(f, &single, i / n, -1, sample[i].rate.median, &d[i])->peer_host = i % n;
    free(sample);
    free(d);
}

/* The better direction of the best pair of ranks of each two hosts. */
static void fill_pairs(fm_rate *pair, const fm_checkup *c, const comparison *x)
{
    for (int i = 0; i < c->n_rank; i++)
        for (int j = 0; j < c->n_rank; j++) {
            const int h = c->host_of[i], k = c->host_of[j];
            if (h == k || !fm__was_running(&c->rank[i]) || !fm__was_running(&c->rank[j])) continue;
            keep_better(&x->metric, &pair[h * c->n_host + k], link_of(c, x, i, j));
            keep_better(&x->metric, &pair[k * c->n_host + h], link_of(c, x, i, j));
        }
}

/* x[n_x]: latency and bandwidth of one kind of links. */
static void compare_far(fm_findings *f, const fm_checkup *c, const comparison *x, int n_x)
{
    const size_t n = (size_t)c->n_host, all = n * n;
    fm_rate     *pair    = calloc((size_t)n_x * all, sizeof *pair);
    int         *is_slow = calloc(n, sizeof *is_slow);
    FM_BUG_UNLESS(pair && is_slow);
    for (int i = 0; i < n_x; i++) {
        fill_pairs(pair + (size_t)i * all, c, &x[i]);
        compare_hosts(f, c, &x[i], pair + (size_t)i * all, is_slow);
    }
    for (int i = 0; i < n_x; i++) compare_pairs(f, c, &x[i], pair + (size_t)i * all, is_slow);
    free(pair);
    free(is_slow);
}

/* --- on one host --------------------------------------------------------------------- */

static fm_rate best_near(const fm_checkup *c, const comparison *x, int rank)
{
    fm_rate best = {0};
    for (int j = 0; j < c->n_rank; j++)
        if (c->host_of[j] == c->host_of[rank] && fm__was_running(&c->rank[j])) {
            keep_better(&x->metric, &best, link_of(c, x, rank, j));
            keep_better(&x->metric, &best, link_of(c, x, j, rank));
        }
    return best;
}

static void compare_near(fm_findings *f, const fm_checkup *c, const comparison *x)
{
    const size_t  n      = (size_t)c->n_rank;
    fm_sample    *sample = calloc(n, sizeof *sample);
    fm_deviation *d      = calloc(n, sizeof *d);
    comparison    single = *x;
    single.metric.least  = x->least_pair;
    FM_BUG_UNLESS(sample && d);
    for (int r = 0; r < c->n_rank; r++) {
        const char *kind = x->is_gpu ? c->rank[r].rates.gpu.name : "rank";
        sample[r] = (fm_sample){fm__was_running(&c->rank[r]) ? kind : NULL, best_near(c, x, r)};
    }
    fm_compare(&single.metric, sample, c->n_rank, d);
    for (int r = 0; r < c->n_rank; r++)
        if (d[r].off > 0 && d[r].n_other > 1)
            accuse(f, &single, c->host_of[r], r, sample[r].rate.median, &d[r]);
    free(sample);
    free(d);
}

static void compare_links(fm_findings *f, const fm_checkup *c, const comparison *x, int n_x)
{
    compare_far(f, c, x, n_x);
    for (int i = 0; i < n_x; i++) compare_near(f, c, &x[i]);
}

/* Where NCCL fails, a job on these GPUs fails; who is to blame it does not say. */
static void look_at_nccl(fm_findings *f, const fm_gpu_links *g)
{
    if (!*g->why) return;
    fm_finding *new = g->has_failed
                          ? fm__finding_add(f, FM_FINDING_FAULT, -1, -1,
                                            "NCCL does not connect the GPUs: %s", g->why)
                          : fm__finding_add(f, FM_FINDING_NOTE, -1, -1,
                                            "links between GPUs were not measured: %s", g->why);
    if (g->has_failed)
        snprintf(new->todo, sizeof new->todo,
                 "NCCL_DEBUG=WARN prints what it tried; check the network it uses "
                 "(NCCL_SOCKET_IFNAME, NCCL_IB_HCA) and that all hosts have the same version");
}

void fm__findings_links(fm_findings *f, const fm_checkup *c)
{
    const fm_metric time_of  = {"latency of its best link", "us", 1e6, 1, 1.0, 10e-6};
    const fm_metric speed_of = {"bandwidth of its best link", "GB/s", 1e-9, 0, 0.2, 0};
    comparison      all[]    = {{time_of, 2.0, c->links.latency, far_hint, near_hint, 0},
                                {speed_of, 0.5, c->links.bandwidth, far_hint, near_hint, 0}};
    const fm_links *gpu      = &c->gpu_links.links;
    comparison      nccl[]   = {{time_of, 2.0, gpu->latency, far_gpu_hint, near_gpu_hint, 1},
                                {speed_of, 0.5, gpu->bandwidth, far_gpu_hint, near_gpu_hint, 1}};
    nccl[0].metric.name      = "NCCL latency of its GPU's best link";
    nccl[1].metric.name      = "NCCL bandwidth of its GPU's best link";
    look_at_nccl(f, &c->gpu_links);
    if (c->links.n_rank > 1) compare_links(f, c, all, 2);
    if (gpu->n_rank > 1) compare_links(f, c, nccl, 2);
}
