/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm_stats.h"

#include <string.h>

static size_t sum(const size_t *n, int count)
{
    size_t all = 0;
    for (int i = 0; i < count; i++) all += n[i];
    return all;
}

size_t fm__call_bytes(const fm_comm *c, const fm_comm_call *call)
{
    switch (call->kind) {
    case FM_COMM_BARRIER: return 0;
    case FM_COMM_ALL_REDUCE: return call->n * sizeof(float);
    case FM_COMM_ALL_REDUCE_F64: return call->n * sizeof(double);
    case FM_COMM_ALL_GATHER: return sum(call->recv_n, c->n_rank);
    case FM_COMM_ALL_TO_ALL: return sum(call->send_n, c->n_rank);
    default: return call->n;
    }
}

/* One collective of one group over the ranks that used it. */
typedef struct {
    int      n_rank, slowest;
    uint64_t calls, bytes;
    double   busy_s, wait_s, max_s;
} row;

/* A rank's numbers for a group; NULL if it is in none of that name. */
static const fm_comm_stats *find(const fm_comm_stats *of_rank, int n_group, const char *name)
{
    for (int g = 0; g < n_group; g++)
        if (!strcmp(of_rank[g].name, name)) return &of_rank[g];
    return NULL;
}

static row add_up(const fm__stats_table *t, const char *group, fm_comm_kind k)
{
    row r = {.slowest = -1};
    for (int i = 0; i < t->n_rank; i++) {
        const fm_comm_stats *s = find(t->all + i * t->n_group, t->n_group, group);
        if (!s || !s->cost[k].calls) continue;
        const fm_comm_cost *c = &s->cost[k];
        r.n_rank++;
        r.calls += c->calls;
        r.bytes += c->bytes;
        r.busy_s += c->busy_s;
        r.wait_s += c->wait_s;
        if (c->busy_s >= r.max_s) r.max_s = c->busy_s, r.slowest = i;
    }
    return r;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static void print_wait(fm_str *out, double wait_s, double busy_s, int has_wait)
{
    if (has_wait)
        fm_str_printf(out, " %6.1f", 100 * ratio(wait_s, busy_s));
    else
        fm_str_puts(out, "      -");
}

static void print_row(fm_str *out, const char *group, fm_comm_kind k, const row *r, int has_wait)
{
    const double n = r->n_rank;
    fm_str_printf(out, "%-15s %-14s %5d %10.0f %12.3f %9.3f", group, fm_comm_kind_name(k),
                  r->n_rank, (double)r->calls / n, 1e-6 * (double)r->bytes / n, r->busy_s / n);
    print_wait(out, r->wait_s, r->busy_s, has_wait);
    fm_str_printf(out, " %9.2f   rank %d\n", ratio(r->max_s, r->busy_s / n), r->slowest);
}

static void print_group(fm_str *out, const fm__stats_table *t, const char *name)
{
    for (int k = 0; k < FM_N_COMM_KIND; k++) {
        const row r = add_up(t, name, (fm_comm_kind)k);
        if (r.calls) print_row(out, name, (fm_comm_kind)k, &r, t->has_wait);
    }
}

static fm_comm_cost rank_total(const fm_comm_stats *of_rank, int n_group)
{
    fm_comm_cost sum = {0};
    for (int j = 0; j < n_group * FM_N_COMM_KIND; j++) {
        const fm_comm_cost *c = &of_rank[j / FM_N_COMM_KIND].cost[j % FM_N_COMM_KIND];
        sum.calls += c->calls;
        sum.bytes += c->bytes;
        sum.busy_s += c->busy_s;
        sum.wait_s += c->wait_s;
    }
    return sum;
}

static void print_ranks(fm_str *out, const fm__stats_table *t)
{
    fm_str_puts(out, "\nrank      calls           MB   seconds  % of run  wait %\n");
    for (int i = 0; i < t->n_rank; i++) {
        const fm_comm_cost c = rank_total(t->all + i * t->n_group, t->n_group);
        fm_str_printf(out, "%4d %10llu %12.3f %9.3f %9.1f ", i, (unsigned long long)c.calls,
                      1e-6 * (double)c.bytes, c.busy_s, 100 * ratio(c.busy_s, t->wall_s));
        print_wait(out, c.wait_s, c.busy_s, t->has_wait);
        fm_str_puts(out, "\n");
    }
}

/* Ranks may be in different groups: a name is printed where it first appears. */
static int is_new(const fm__stats_table *t, int at)
{
    if (!t->all[at].name[0]) return 0;
    for (int i = 0; i < at; i++)
        if (!strcmp(t->all[i].name, t->all[at].name)) return 0;
    return 1;
}

void fm__stats_print(fm_str *out, const fm__stats_table *t)
{
    fm_str_puts(out, "group           collective     ranks calls/rank      MB/rank  sec/rank wait %"
                     "  max/mean   longest\n");
    for (int i = 0; i < t->n_rank * t->n_group; i++)
        if (is_new(t, i)) print_group(out, t, t->all[i].name);
    print_ranks(out, t);
}
