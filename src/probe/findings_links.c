/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, links and ranks whose messages are slower than the others'.
 *
 * A host's connection is judged by its best link to any other host: the links of
 * the others to a slow host are slow, too, but their best ones are not.  Then
 * single links between hosts that are well, and ranks of one host by their best
 * link to another rank of it.  Links of ranks that had to wait for a CPU are not
 * judged. */
#include <stdio.h>
#include <stdlib.h>

#include "probe/findings_internal.h"

typedef struct {
    fm_metric      metric;     /* of hosts */
    double         least_pair; /* of single links: switches and sockets make differences */
    const fm_rate *matrix;     /* [n_rank, n_rank] */
} comparison;

static const char hint[] =
    "check its cable, port and link speed (ethtool, ibstat, dmesg), and that "
    "its ranks use the same network as the others (UCX_NET_DEVICES, "
    "btl_tcp_if_include)";

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
    snprintf(new->todo, sizeof new->todo, "%s", hint);
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
    FM_BUG_UNLESS(sample && d);
    for (int h = 0; h < n; h++) {
        sample[h].kind = "host";
        for (int k = 0; k < n; k++) keep_better(&x->metric, &sample[h].rate, &pair[h * n + k]);
    }
    fm_compare(&x->metric, sample, n, d);
    for (int h = 0; n > 2 && h < n; h++)
        if (d[h].off > 0) {
            accuse(f, x, h, -1, sample[h].rate.median, &d[h]);
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

static void compare_far(fm_findings *f, const fm_checkup *c, const comparison *x)
{
    const int n       = c->n_host;
    fm_rate  *pair    = calloc((size_t)(n * n), sizeof *pair);
    int      *is_slow = calloc((size_t)n, sizeof *is_slow);
    FM_BUG_UNLESS(pair && is_slow);
    fill_pairs(pair, c, x);
    compare_hosts(f, c, x, pair, is_slow);
    compare_pairs(f, c, x, pair, is_slow);
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
    for (int r = 0; r < c->n_rank; r++)
        sample[r] = (fm_sample){fm__was_running(&c->rank[r]) ? "rank" : NULL, best_near(c, x, r)};
    fm_compare(&single.metric, sample, c->n_rank, d);
    for (int r = 0; r < c->n_rank; r++)
        if (d[r].off > 0 && d[r].n_other > 1) {
            fm_finding *new = accuse(f, &single, c->host_of[r], r, sample[r].rate.median, &d[r]);
            snprintf(new->todo, sizeof new->todo,
                     "check which cores it is bound to (mpirun --report-bindings), and whether "
                     "shared memory is in use between the ranks of this host");
        }
    free(sample);
    free(d);
}

void fm__findings_links(fm_findings *f, const fm_checkup *c)
{
    const comparison all[] = {
        {{"latency of its best link", "us", 1e6, 1, 1.0, 10e-6}, 2.0, c->links.latency},
        {{"bandwidth of its best link", "GB/s", 1e-9, 0, 0.2, 0}, 0.5, c->links.bandwidth},
    };
    if (c->n_rank < 2 || !c->links.latency) return;
    for (int i = 0; i < 2; i++) {
        compare_far(f, c, &all[i]);
        compare_near(f, c, &all[i]);
    }
}
