/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/report.h"

#include <stdio.h>
#include <string.h>

enum { MOST_ROWS = 32, MOST_COLUMNS = 16 };

/* --- a row is a rank, or a host where ranks are many -------------------------------- */

static int rows_are_ranks(const fm_checkup *c) { return c->n_rank <= MOST_ROWS; }

static fm_rate get_read(const fm_checkup_rank *r, int which)
{
    (void)which;
    return r->rates.read;
}

static fm_rate get_product(const fm_checkup_rank *r, int which) { return r->rates.product[which]; }

static fm_rate get_gpu_product(const fm_checkup_rank *r, int which)
{
    return r->rates.gpu.product[which];
}

static fm_rate get_gpu_read(const fm_checkup_rank *r, int which)
{
    (void)which;
    return r->rates.gpu.read;
}

static fm_rate get_gpu_copy(const fm_checkup_rank *r, int is_down)
{
    return is_down ? r->rates.gpu.download : r->rates.gpu.upload;
}

typedef fm_rate getter(const fm_checkup_rank *r, int which);

static fm_rate rate_of_row(const fm_checkup *c, int row, getter *get, int which)
{
    return rows_are_ranks(c) ? get(&c->rank[row], which) : fm_checkup_host_rate(c, row, get, which);
}

static const fm_checkup_rank *rank_of_row(const fm_checkup *c, int row)
{
    return &c->rank[rows_are_ranks(c) ? row : c->host[row].first];
}

static void add_rate(fm_str *out, fm_rate r, double scale)
{
    if (r.n == 0)
        fm_str_printf(out, " %15s", "-");
    else
        fm_str_printf(out, " %9.3g ± %2.0f%%", r.median * scale,
                      r.median > 0 ? 100 * r.spread / r.median : 0);
}

static void name_row(fm_str *out, const fm_checkup *c, int row)
{
    if (rows_are_ranks(c))
        fm_str_printf(out, "%5d %-16.16s", row, c->rank[row].rates.host);
    else
        fm_str_printf(out, "%5d %-16.16s", c->host[row].first, c->host[row].name);
}

static void table_of_hosts(fm_str *out, const fm_checkup *c)
{
    const int n = rows_are_ranks(c) ? c->n_rank : c->n_host;
    fm_str_printf(out, "%5s %-16s %-6s %7s %6s %15s %15s %15s %15s\n", "rank", "host", "isa",
                  "threads", "on CPU", "read GB/s", "bf16 TFLOP/s", "f32 TFLOP/s", "f64 TFLOP/s");
    for (int i = 0; i < n; i++) {
        const fm_checkup_rank *r = rank_of_row(c, i);
        name_row(out, c, i);
        fm_str_printf(out, " %-6s %7d %5.0f%%", r->rates.isa, r->rates.n_thread, 100 * r->on_cpu);
        add_rate(out, rate_of_row(c, i, get_read, 0), 1e-9);
        add_rate(out, rate_of_row(c, i, get_product, FM_FACTOR_BF16), 1e-12);
        add_rate(out, rate_of_row(c, i, get_product, FM_FACTOR_F32), 1e-12);
        add_rate(out, rate_of_row(c, i, get_product, FM_FACTOR_F64), 1e-12);
        fm_str_puts(out, "\n");
        for (int k = 0; r->rates.n_node > 1 && k < r->rates.n_node; k++) {
            fm_str_printf(out, "%5s %-16s %23d", "", "  NUMA node", r->rates.node[k].id);
            add_rate(out, r->rates.node[k].read, 1e-9);
            add_rate(out, r->rates.node[k].product, 1e-12);
            fm_str_puts(out, "\n");
        }
    }
}

/* --- GPUs ------------------------------------------------------------------------------ */

static void add_part(fm_str *out, int now, int most, int width)
{
    char text[24] = "-";
    if (now >= 0 && most >= 0)
        snprintf(text, sizeof text, "%d/%d", now, most);
    else if (now >= 0)
        snprintf(text, sizeof text, "%d", now);
    fm_str_printf(out, " %*s", width, text);
}

static const char *or_dash(const char *text) { return *text ? text : "-"; }

static void table_of_gpu_rates(fm_str *out, const fm_checkup *c, int n)
{
    fm_str_printf(out, "\n%5s %-16s %15s %15s %15s %15s %15s %15s  %s\n", "rank", "host",
                  "GPU read GB/s", "bf16 TFLOP/s", "fp8 TFLOP/s", "f64 TFLOP/s", "to GPU GB/s",
                  "from GPU GB/s", "GPU");
    for (int i = 0; i < n; i++) {
        const fm_checkup_rank *r = rank_of_row(c, i);
        name_row(out, c, i);
        add_rate(out, rate_of_row(c, i, get_gpu_read, 0), 1e-9);
        add_rate(out, rate_of_row(c, i, get_gpu_product, FM_FACTOR_BF16), 1e-12);
        add_rate(out, rate_of_row(c, i, get_gpu_product, FM_FACTOR_FP8), 1e-12);
        add_rate(out, rate_of_row(c, i, get_gpu_product, FM_FACTOR_F64), 1e-12);
        add_rate(out, rate_of_row(c, i, get_gpu_copy, 0), 1e-9);
        add_rate(out, rate_of_row(c, i, get_gpu_copy, 1), 1e-9);
        fm_str_printf(out, "  %s\n", or_dash(*r->gpu.name ? r->gpu.name : r->rates.gpu.name));
    }
}

static void add_errors(fm_str *out, const fm_gpu_facts *g)
{
    char text[48] = "-";
    if (g->uncorrected >= 0)
        snprintf(text, sizeof text, "%lld (%lld)", (long long)g->uncorrected,
                 (long long)g->corrected);
    fm_str_printf(out, " %18s", text);
}

/* Clocks and reasons are those under load. */
static void table_of_gpu_state(fm_str *out, const fm_checkup *c, int n)
{
    fm_str_printf(out, "\n%5s %-16s %10s %10s %8s %5s %9s %10s %8s %4s %18s  %s\n", "rank", "host",
                  "clock MHz", "memory MHz", "W", "C", "PCIe gen.", "PCIe lanes", "NVLinks", "ECC",
                  "errors (corrected)", "slowed down by");
    for (int i = 0; i < n; i++) {
        const fm_gpu_facts *g = &rank_of_row(c, i)->gpu;
        char                why[160];
        fm_gpu_throttle_words(g->throttled, why, sizeof why);
        name_row(out, c, i);
        add_part(out, g->mhz, g->mhz_most, 10);
        add_part(out, g->mhz_memory, g->mhz_memory_most, 10);
        add_part(out, g->watt, g->watt_limit, 8);
        add_part(out, g->celsius, -1, 5);
        add_part(out, g->pcie_generation, g->pcie_generation_most, 9);
        add_part(out, g->pcie_width, g->pcie_width_most, 10);
        add_part(out, g->n_link_active, g->n_link, 8);
        fm_str_printf(out, " %4s", g->has_ecc < 0 ? "-" : g->has_ecc ? "on" : "off");
        add_errors(out, g);
        fm_str_printf(out, "  %s\n", g->throttled < 0 ? "-" : *why ? why : "nothing");
    }
}

static void tables_of_gpus(fm_str *out, const fm_checkup *c)
{
    const int n = rows_are_ranks(c) ? c->n_rank : c->n_host;
    for (int i = 0; i < c->n_rank; i++) {
        if (c->rank[i].gpu.index < 0 && !*c->rank[i].rates.gpu.name) continue;
        table_of_gpu_rates(out, c, n);
        table_of_gpu_state(out, c, n);
        return;
    }
}

/* --- links ------------------------------------------------------------------------------ */

static void matrix(fm_str *out, const fm_checkup *c, const char *title, const fm_rate *m,
                   double scale)
{
    fm_str_printf(out, "\n%-22s", title);
    for (int j = 0; j < c->n_rank; j++) fm_str_printf(out, " %6d", j);
    fm_str_puts(out, "\n");
    for (int i = 0; i < c->n_rank; i++) {
        name_row(out, c, i);
        for (int j = 0; j < c->n_rank; j++) {
            const fm_rate *r = &m[(size_t)i * (size_t)c->n_rank + (size_t)j];
            if (r->n == 0)
                fm_str_printf(out, " %6s", i == j ? "." : "-");
            else
                fm_str_printf(out, " %6.3g", r->median * scale);
        }
        fm_str_puts(out, "\n");
    }
}

static void add_links(fm_str *out, const char *where, const fm_rates_links *l)
{
    if (l->latency.n == 0) return;
    fm_str_printf(out, "%-22s %7.3g us ± %2.0f%%   %7.3g GB/s ± %2.0f%%   (%d)\n", where,
                  1e6 * l->latency.median, 100 * l->latency.spread / l->latency.median,
                  1e-9 * l->bandwidth.median, 100 * l->bandwidth.spread / l->bandwidth.median,
                  l->latency.n);
}

static void add_all_to_all(fm_str *out, const char *what, const fm_rate *r)
{
    if (r->n) fm_str_printf(out, "%-21s %9.3g GB/s\n", what, 1e-9 * r->median);
}

static void add_matrices(fm_str *out, const fm_checkup *c, const fm_links *l, const char *latency,
                         const char *bandwidth)
{
    if (l->n_rank < 2 || c->n_rank > MOST_COLUMNS) return;
    matrix(out, c, latency, l->latency, 1e6);
    matrix(out, c, bandwidth, l->bandwidth, 1e-9);
}

static void links(fm_str *out, const fm_checkup *c)
{
    fm_rates r = {0};
    if (c->n_rank < 2) return;
    add_matrices(out, c, &c->links, "one way, us", "GB/s");
    add_matrices(out, c, &c->gpu_links.links, "NCCL, one way, us", "NCCL, GB/s");
    fm_str_puts(out, "\n");
    if (fm_checkup_rates(&r, c) != FM_OK) return;
    add_links(out, "links within hosts", &r.near);
    add_links(out, "links between hosts", &r.far);
    add_all_to_all(out, "all-to-all, a rank", &r.all_to_all);
    add_links(out, "NCCL within hosts", &r.gpu_near);
    add_links(out, "NCCL between hosts", &r.gpu_far);
    add_all_to_all(out, "NCCL all-to-all, a GPU", &r.gpu_all_to_all);
    fm_rates_fini(&r);
}

/* --- the rest ------------------------------------------------------------------------------ */

static void files(fm_str *out, const fm_checkup *c)
{
    for (int i = 0; i < c->n_rank; i++) {
        const fm_checkup_rank *r = &c->rank[i];
        if (r->rates.file.n == 0) continue;
        fm_str_printf(out, "files of %s read on %s at %.3g GB/s (%s)\n", r->rates.directory,
                      r->rates.host, 1e-9 * r->rates.file.median,
                      r->file.is_memory   ? "they lie in memory"
                      : r->file.is_direct ? "past the page cache"
                                          : "page cache dropped");
    }
}

static void levels(fm_str *out, const fm_rates_rank *r)
{
    const char *before = "product by instruction set, TFLOP/s: ";
    for (int i = 0; i < FM_RATES_LEVELS; i++) {
        if (r->level[i].n == 0) continue;
        fm_str_printf(out, "%s%s %.3g", before, fm_isa_name((fm_isa)i), 1e-12 * r->level[i].median);
        before = ", ";
    }
    if (before[0] == ',') fm_str_puts(out, "\n");
}

static void add_limits(fm_str *out, const fm_facts *f)
{
    fm_str_puts(out, "CPU quota ");
    if (f->quota > 0)
        fm_str_printf(out, "%.3g", f->quota);
    else
        fm_str_puts(out, "none");
    fm_str_puts(out, "; memory limit ");
    if (f->memory_limit >= 0)
        fm_str_printf(out, "%.3g GB", 1e-9 * (double)f->memory_limit);
    else
        fm_str_puts(out, "none");
}

/* What happened while cores and memory were measured; memory errors since the start. */
static void add_events(fm_str *out, const fm_facts *f)
{
    fm_str_puts(out, "; steal time ");
    if (f->steal_s >= 0 && f->cpu_s > 0)
        fm_str_printf(out, "%.1f %%", 100 * f->steal_s / f->cpu_s);
    else
        fm_str_puts(out, "-");
    fm_str_puts(out, "; slowed down for heat ");
    if (f->throttled >= 0)
        fm_str_printf(out, "%lld times", (long long)f->throttled);
    else
        fm_str_puts(out, "-");
    fm_str_puts(out, "; memory errors ");
    if (f->uncorrected < 0)
        fm_str_puts(out, "-");
    else
        fm_str_printf(out, "%lld (%lld corrected)", (long long)f->uncorrected,
                      (long long)f->corrected);
}

/* "NAME=value\n" lines, each behind `before`. */
static void add_list(fm_str *out, const char *before, const char *between, const char *list)
{
    for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const int name = (int)strcspn(line, "="), all = (int)strcspn(line, "\n");
        fm_str_printf(out, "%s%.*s%s%.*s\n", before, name, line, between, all - name - 1,
                      line + name + 1);
    }
}

/* Of rank 0; what differs elsewhere is a finding. */
static void settings(fm_str *out, const fm_checkup *c)
{
    const fm_facts     *f = &c->rank[0].facts;
    const fm_gpu_facts *g = &c->rank[0].gpu;
    fm_str_printf(out, "\nCPU %s; kernel %s; governor %s; huge pages %s; ", or_dash(f->cpu),
                  or_dash(f->kernel), or_dash(f->governor), or_dash(f->huge_pages));
    add_limits(out, f);
    add_events(out, f);
    fm_str_puts(out, "\n");
    levels(out, &c->rank[0].rates);
    if (*c->mpi) fm_str_printf(out, "MPI %s\n", c->mpi);
    if (*g->driver) fm_str_printf(out, "GPU driver %s\n", g->driver);
    if (*g->runtime) fm_str_printf(out, "CUDA runtime %s\n", g->runtime);
    add_list(out, "", " ", f->libraries);
    add_list(out, "variable ", "=", f->variables);
}

void fm_report_tables(fm_str *out, const fm_checkup *c)
{
    fm_str_printf(out, "%d %s on %d %s\n\n", c->n_rank, c->n_rank == 1 ? "rank" : "ranks",
                  c->n_host, c->n_host == 1 ? "host" : "hosts");
    table_of_hosts(out, c);
    tables_of_gpus(out, c);
    links(out, c);
    files(out, c);
    settings(out, c);
}

static void add_finding(fm_str *out, const fm_checkup *c, const fm_finding *f)
{
    char who[192];
    fm_finding_who(f, c, who, sizeof who);
    fm_str_printf(out, "%s %s: %s\n", f->level == FM_FINDING_FAULT ? "FAULT" : "note ", who,
                  f->what);
    if (*f->todo) fm_str_printf(out, "      %s\n", f->todo);
}

static void advise_without(fm_str *out, const fm_checkup *c, const fm_findings *f)
{
    fm_str bad = {0}, good = {0};
    fm_findings_excluded(f, c, &bad);
    fm_findings_healthy(f, c, 1, &good);
    fm_str_printf(out, "verdict: look at %s\n", bad.len ? bad.text : "the links");
    if (bad.len && good.len)
        fm_str_printf(out, "without: srun --exclude=%s ...   mpirun --host %s ...\n", bad.text,
                      good.text);
    fm_str_fini(&bad);
    fm_str_fini(&good);
}

void fm_report_verdict(fm_str *out, const fm_checkup *c, const fm_findings *f)
{
    fm_str_puts(out, "\n");
    for (int i = 0; i < f->n; i++) add_finding(out, c, &f->item[i]);
    if (fm_findings_faults(f) > 0)
        advise_without(out, c, f);
    else if (c->n_rank == 1 && c->n_before)
        fm_str_puts(out, "verdict: as before\n");
    else if (c->n_rank == 1)
        fm_str_puts(out, "verdict: nothing is wrong here as far as one rank can tell; start it on "
                         "several hosts by mpirun to compare them\n");
    else
        fm_str_printf(out, "verdict: no outlier among %d %s\n",
                      c->n_host > 1 ? c->n_host : c->n_rank, c->n_host > 1 ? "hosts" : "ranks");
}
