/* SPDX-License-Identifier: Apache-2.0 */
/* The least time that calls can take: bytes at the memory's rate, operations at the product peak
 * of their type, whichever is longer.  Calls are joined by operations per byte, so a key that is
 * bound by memory in some calls and by arithmetic in others is judged call by call. */
#include <string.h>

#include "trace_report/analysis_internal.h"

static const fm_rates_rank *rates_of(const fm_trace_job *j, const fm_rates *r, int i)
{
    const fm_trace_head *h = &j->file[i].head;
    if (r->n_rank == j->n_rank) return &r->rank[h->rank];
    for (int k = 0; k < r->n_rank; k++)
        if (!strcmp(r->rank[k].host, h->host)) return &r->rank[k];
    return &r->rank[0];
}

static int ranks_on_host(const fm_trace_job *j, int i)
{
    int n = 0;
    for (int k = 0; k < j->n; k++) n += !strcmp(j->file[k].head.host, j->file[i].head.host);
    return n;
}

/* Ranks of a host share its memory: none has more than its part of what all NUMA nodes give. */
static double read_rate(const fm_trace_job *j, const fm_rates_rank *r, int i)
{
    double all = 0;
    for (int k = 0; k < r->n_node; k++) all += r->node[k].read.median;
    const double part = all / ranks_on_host(j, i);
    return part > 0 && part < r->read.median ? part : r->read.median;
}

static double product_rate(const fm_rate *product, const char *factor)
{
    for (int f = 0; f < FM_N_FACTOR; f++)
        if (!strcmp(factor, fm_factor_name((fm_factor)f))) return product[f].median;
    return 0;
}

double fm__limit_of(const fm_trace_job *j, const fm_rates *r, const fm_trace_key *k,
                    const fm_trace_sum *s, int i, double *memory)
{
    double all = 0;
    if (!r || k->cls != FM_TRACE_WORK) return 0;
    const fm_rates_rank *m      = rates_of(j, r, i);
    const int            is_gpu = k->flags & FM_TRACE_IS_DEVICE;
    const double         read   = is_gpu ? m->gpu.read.median : read_rate(j, m, i);
    const double         peak   = product_rate(is_gpu ? m->gpu.product : m->product, k->factor);
    if (!(read > 0) || !(peak > 0)) return 0;
    for (int b = 0; b < FM_TRACE_BINS; b++) {
        const double move = s->bin[b].bytes / read, compute = s->bin[b].flops / peak;
        all += move > compute ? move : compute;
        if (move > compute) *memory += move;
    }
    return all;
}
