/* SPDX-License-Identifier: Apache-2.0 */
/* From a checkup to words: who is named for what, and the whole report of a job with one slow
 * host, which is in tests/data/doctor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "base/mapped_file.h"
#include "probe/findings.h"
#include "probe/report.h"

/* A rate with noise of a percent, the same in every run. */
static fm_rate rate(double x, uint64_t seed)
{
    const double off = 0.01 * ((double)(fm_rng_u32(3, seed) % 1000) / 1000 - 0.5);
    return (fm_rate){
        .median = x * (1 + off), .spread = 0.004 * x, .best = x * (1.006 + off), .n = 5};
}

static fm_rate time_of(double x, uint64_t seed)
{
    fm_rate r = rate(x, seed);
    r.best    = r.median - 0.006 * x;
    return r;
}

static void fill_rank(fm_checkup_rank *r, int host, int seed)
{
    const uint64_t s = 10 * (uint64_t)seed;
    *r               = (fm_checkup_rank){.on_cpu = 0.997, .gpu.index = -1};
    snprintf(r->rates.host, sizeof r->rates.host, "node-%c", 'a' + host);
    strcpy(r->rates.cpu, "A CPU");
    strcpy(r->rates.isa, "amx");
    r->rates.n_core = r->rates.n_thread = 32;
    r->rates.memory                     = (uint64_t)256e9;
    r->rates.read                       = rate(204e9, s);
    r->rates.n_node                     = 1;
    r->rates.node[0]                    = (fm_rates_node){.read = r->rates.read};
    r->rates.product[FM_FACTOR_BF16]    = rate(42e12, s + 1);
    r->rates.product[FM_FACTOR_F32]     = rate(4.1e12, s + 2);
    r->rates.product[FM_FACTOR_F64]     = rate(2.05e12, s + 3);
    r->facts                            = (fm_facts){.n_cpu        = 64,
                                                     .load         = 0.3,
                                                     .corrected    = 0,
                                                     .memory_limit = -1,
                                                     .quota_stops  = -1,
                                                     .steal_s      = 0,
                                                     .cpu_s        = 100};
    strcpy(r->facts.cpu, "A CPU");
    strcpy(r->facts.kernel, "6.1.0");
    strcpy(r->facts.governor, "performance");
    strcpy(r->facts.huge_pages, "madvise");
    strcpy(r->facts.variables, "OMP_NUM_THREADS=32\n");
}

/* Hosts of `each` ranks; links of 1 us within a host and 2 us between hosts. */
static void fill(fm_checkup *c, int n_host, int each)
{
    assert_int_equal(fm_checkup_init(c, n_host * each), FM_OK);
    for (int i = 0; i < c->n_rank; i++) fill_rank(&c->rank[i], i / each, i);
    for (int i = 0; i < c->n_rank * c->n_rank; i++) {
        const int a = i / c->n_rank, b = i % c->n_rank, is_near = a / each == b / each;
        if (a == b) continue;
        c->links.latency[i]   = time_of(is_near ? 1e-6 : 2e-6, 1000 + (uint64_t)i);
        c->links.bandwidth[i] = rate(is_near ? 9e9 : 24e9, 5000 + (uint64_t)i);
    }
    c->links.all_to_all = rate(11e9, 1);
    strcpy(c->mpi, "An MPI v5");
    fm_checkup_settle(c);
}

static void scale(fm_rate *r, double by)
{
    r->median *= by;
    r->spread *= by;
    r->best *= by;
}

/* Links to and from the ranks of a host are `by` times as slow. */
static void slow_links(fm_checkup *c, int host, double by)
{
    for (int i = 0; i < c->n_rank * c->n_rank; i++) {
        const int a = c->host_of[i / c->n_rank], b = c->host_of[i % c->n_rank];
        if ((a == host) != (b == host)) scale(&c->links.latency[i], by);
    }
}

static int n_fault(const fm_checkup *c, fm_findings *f)
{
    fm_findings_make(f, c);
    return fm_findings_faults(f);
}

/* The i-th finding is about `who` and says all of that. */
static void says(const fm_findings *f, const fm_checkup *c, int i, const char *who,
                 const char *what, const char *todo)
{
    char name[192];
    assert_true(i < f->n);
    fm_finding_who(&f->item[i], c, name, sizeof name);
    assert_string_equal(name, who);
    if (!strstr(f->item[i].what, what)) fail_msg("\"%s\", not \"%s\"", f->item[i].what, what);
    if (!strstr(f->item[i].todo, todo)) fail_msg("\"%s\", not \"%s\"", f->item[i].todo, todo);
}

static void nobody_is_named_among_equals(void **state)
{
    (void)state;
    static const int shape[][2] = {{1, 1}, {1, 2}, {1, 8}, {2, 1}, {2, 8}, {4, 1}, {5, 2}, {16, 8}};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
        fm_checkup  c;
        fm_findings f;
        fm_str      bad = {0};
        fill(&c, shape[i][0], shape[i][1]);
        assert_int_equal(n_fault(&c, &f), 0);
        assert_int_equal(f.n, 0);
        fm_findings_excluded(&f, &c, &bad);
        assert_int_equal(bad.len, 0);
        fm_findings_fini(&f);
        fm_checkup_fini(&c);
    }
}

static void a_host_is_named_for_its_memory(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fm_str      bad = {0}, good = {0};
    fill(&c, 4, 1);
    scale(&c.rank[1].rates.read, 0.69);
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "node-b", "memory bandwidth 31 % below the other 3 (141 against 203 GB/s)",
         "dmidecode");
    fm_findings_excluded(&f, &c, &bad);
    fm_findings_healthy(&f, &c, 1, &good);
    assert_string_equal(bad.text, "node-b");
    assert_string_equal(good.text, "node-a:1,node-c:1,node-d:1");
    fm_str_fini(&bad);
    fm_str_fini(&good);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void a_host_is_named_once_for_all_its_ranks(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 3, 4);
    for (int i = 4; i < 8; i++)
        for (int k = 0; k < FM_N_FACTOR; k++) scale(&c.rank[i].rates.product[k], 0.7);
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "node-b", "bf16 product 30 % below the other 2", "turbostat");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void a_rank_is_named_on_its_host(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 2, 4);
    scale(&c.rank[6].rates.read, 0.5);
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "rank 6 on node-b", "memory bandwidth 50 % below the other 7", "");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void causes_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        double      quota, on_cpu, steal;
        int         threads, throttled;
        const char *todo;
    } cause[] = {
        {16, 0.5, 0, 32, 0, "a control group allows it 16 CPUs for 32 threads"},
        {0, 0.52, 0, 32, 0, "running 52 % of the time"},
        {0, 0.8, 20, 32, 0, "the hypervisor gave 20 %"},
        {0, 1.0, 0, 32, 7, "for heat 7 times"},
        {0, 1.0, 0, 16, 0, "it has 16 threads where others have 32"},
        {0, 1.0, 0, 32, 0, "power limits and BIOS"},
    };
    for (size_t i = 0; i < sizeof cause / sizeof cause[0]; i++) {
        fm_checkup  c;
        fm_findings f;
        fill(&c, 4, 1);
        fm_checkup_rank *r = &c.rank[2];
        scale(&r->rates.product[FM_FACTOR_BF16], 0.5);
        r->facts.quota     = cause[i].quota;
        r->facts.steal_s   = cause[i].steal;
        r->facts.throttled = cause[i].throttled;
        r->on_cpu          = cause[i].on_cpu;
        r->rates.n_thread  = cause[i].threads;
        assert_int_equal(n_fault(&c, &f), 1);
        says(&f, &c, 0, "node-c", "bf16 product 50 % below", cause[i].todo);
        fm_findings_fini(&f);
        fm_checkup_fini(&c);
    }
}

static void a_numa_node_is_named(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 4, 1);
    for (int i = 0; i < 4; i++) {
        c.rank[i].rates.n_node = 2;
        for (int k = 0; k < 2; k++)
            c.rank[i].rates.node[k] =
                (fm_rates_node){.id      = k,
                                .read    = rate(102e9, 90 + 2 * (uint64_t)i + (uint64_t)k),
                                .product = rate(21e12, 7)};
    }
    scale(&c.rank[3].rates.node[1].read, 0.75);
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "node-d", "NUMA node 1: memory bandwidth of a NUMA node 25 % below the other 7",
         "dmidecode");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

/* Two nodes a rank, each with half of what the rank has; cores[k] of them. */
static void fill_nodes(fm_checkup *c, int cores_0, int cores_1)
{
    const int cores[2] = {cores_0, cores_1};
    for (int i = 0; i < c->n_rank; i++) {
        c->rank[i].rates.n_node = 2;
        for (int k = 0; k < 2; k++) {
            const uint64_t s         = 90 + 4 * (uint64_t)i + 2 * (uint64_t)k;
            c->rank[i].rates.node[k] = (fm_rates_node){.id      = k,
                                                       .n_core  = cores[k],
                                                       .read    = rate(6e9 * cores[k], s),
                                                       .product = rate(1.3e12 * cores[k], s + 1)};
        }
    }
}

static void the_peak_of_a_numa_node_is_judged(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 4, 1);
    fill_nodes(&c, 16, 16);
    assert_int_equal(n_fault(&c, &f), 0);
    fm_findings_fini(&f);
    scale(&c.rank[2].rates.node[1].product, 0.7);
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "node-c", "NUMA node 1: product of a NUMA node 30 % below the other 7",
         "turbostat");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

/* A host that is slow as a whole is named once, not again for each node. */
static void nodes_of_a_slow_host_are_not_named_again(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 4, 1);
    fill_nodes(&c, 16, 16);
    for (int k = 0; k < FM_N_FACTOR; k++) scale(&c.rank[2].rates.product[k], 0.6);
    for (int k = 0; k < 2; k++) scale(&c.rank[2].rates.node[k].product, 0.6);
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "node-c", "bf16 product 40 % below the other 3", "");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void nodes_with_fewer_cores_are_not_accused(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 4, 1);
    fill_nodes(&c, 16, 6); /* a share of the second socket */
    assert_int_equal(n_fault(&c, &f), 0);
    fm_findings_fini(&f);
    c.rank[3].rates.node[1].n_core = 2;
    scale(&c.rank[3].rates.node[1].product, 1.0 / 3);
    scale(&c.rank[3].rates.node[1].read, 1.0 / 3);
    assert_int_equal(n_fault(&c, &f), 0);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void a_host_behind_a_slow_cable_is_named_alone(void **state)
{
    (void)state;
    for (int n_host = 3; n_host <= 6; n_host++)
        for (int each = 1; each <= 2; each++) {
            fm_checkup  c;
            fm_findings f;
            fill(&c, n_host, each);
            slow_links(&c, 1, 100);
            assert_int_equal(n_fault(&c, &f), 1);
            says(&f, &c, 0, "node-b", "latency of its best link 100 times that of the other",
                 "cable");
            fm_findings_fini(&f);
            fm_checkup_fini(&c);
        }
}

static void one_slow_link_is_named_with_both_ends(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fm_str      bad = {0};
    fill(&c, 4, 1);
    scale(&c.links.latency[1 * 4 + 3], 50);
    scale(&c.links.latency[3 * 4 + 1], 50);
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "the link between node-b and node-d", "50 times that of the other 5", "cable");
    fm_findings_excluded(&f, &c, &bad);
    assert_string_equal(bad.text, "node-d");
    fm_str_fini(&bad);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

/* Matrices that were measured between four hosts, in GB/s and us; scatter: of the repeats. */
static void set_links(fm_checkup *c, const double speed[4][4], const double us[4][4],
                      double scatter)
{
    for (int i = 0; i < 16; i++) {
        const double b = 1e9 * speed[i / 4][i % 4], t = 1e-6 * us[i / 4][i % 4];
        if (i / 4 == i % 4) continue;
        c->links.bandwidth[i] = (fm_rate){b, scatter * b, b * (1 + scatter), 5};
        c->links.latency[i]   = (fm_rate){t, scatter * t, t * (1 - scatter), 5};
    }
}

/* node-c has a fault of its own and its links are not judged; of the three others two shared a
 * core, which made their link faster than those of the third. */
static void of_three_hosts_two_with_a_fast_link_accuse_nobody(void **state)
{
    (void)state;
    static const double speed[4][4] = {{0, 8.188, 6.216, 6.395},
                                       {9.595, 0, 6.049, 6.154},
                                       {6.075, 6.145, 0, 9.389},
                                       {6.181, 6.094, 9.789, 0}};
    static const double us[4][4]    = {
           {0, 2.04, 0.49, 0.49}, {2.04, 0, 0.49, 0.49}, {0.49, 0.49, 0, 2.06}, {0.49, 0.49, 2.06, 0}};
    fm_checkup  c;
    fm_findings f;
    fm_str      bad = {0};
    fill(&c, 4, 1);
    set_links(&c, speed, us, 0.01);
    scale(&c.rank[2].rates.read, 0.28);
    c.rank[2].on_cpu = 0.31;
    assert_int_equal(n_fault(&c, &f), 1);
    fm_findings_excluded(&f, &c, &bad);
    assert_string_equal(bad.text, "node-c");
    fm_str_fini(&bad);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

/* Links of a host that is known to be slow are not named beside it, whatever their number, and
 * their other ends are not accused. */
static void the_good_end_of_a_slow_link_is_not_accused(void **state)
{
    (void)state;
    static const double speed[4][4] = {{0, 1.676, 0.033, 1.730},
                                       {1.626, 0, 0.033, 1.757},
                                       {0.032, 0.032, 0, 0.032},
                                       {1.656, 1.770, 0.032, 0}};
    static const double us[4][4]    = {{0, 16.47, 2103.58, 16.50},
                                       {9.50, 0, 2092.00, 9.52},
                                       {2082.17, 2065.81, 0, 2095.65},
                                       {9.47, 9.50, 2085.53, 0}};
    fm_checkup          c;
    fm_findings         f;
    fm_str              bad = {0};
    fill(&c, 4, 1);
    set_links(&c, speed, us, 0.25);
    assert_int_equal(n_fault(&c, &f), 2);
    says(&f, &c, 0, "node-c", "latency of its best link 218 times that of the other 3", "cable");
    says(&f, &c, 1, "node-c", "bandwidth of its best link 98 % below the other 3", "cable");
    fm_findings_excluded(&f, &c, &bad);
    assert_string_equal(bad.text, "node-c");
    fm_str_fini(&bad);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

/* Two links of one host are slow, and no host as a whole: that host is the one to leave out. */
static void of_slow_links_the_common_end_is_left_out(void **state)
{
    (void)state;
    static const int slow[] = {1 * 5 + 2, 2 * 5 + 1, 2 * 5 + 4, 4 * 5 + 2};
    fm_checkup       c;
    fm_findings      f;
    fm_str           bad = {0};
    fill(&c, 5, 1);
    for (int i = 0; i < 4; i++) scale(&c.links.latency[slow[i]], 50);
    assert_int_equal(n_fault(&c, &f), 2);
    says(&f, &c, 0, "the link between node-b and node-c", "50 times", "cable");
    says(&f, &c, 1, "the link between node-c and node-e", "50 times", "cable");
    fm_findings_excluded(&f, &c, &bad);
    assert_string_equal(bad.text, "node-c");
    fm_str_fini(&bad);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void links_of_ranks_that_waited_are_not_judged(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 4, 1);
    slow_links(&c, 1, 100);
    for (int i = 0; i < 4; i++) c.rank[i].on_cpu = 0.6;
    assert_int_equal(n_fault(&c, &f), 0);
    assert_int_equal(f.n, 1);
    says(&f, &c, 0, "node-a and 3 more", "links are not judged", "");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void errors_and_settings(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 4, 1);
    c.rank[0].facts.uncorrected = 2;
    strcpy(c.rank[3].facts.governor, "powersave");
    strcpy(c.rank[2].facts.variables, "OMP_NUM_THREADS=1\n");
    for (int i = 0; i < 4; i++) strcat(c.rank[i].facts.variables, "NCCL_ALGO=Tree\n");
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "node-a", "2 uncorrected memory errors", "memory module");
    says(&f, &c, 1, "node-d", "governor is powersave", "");
    says(&f, &c, 2, "node-d", "governor: powersave, with the other 3: performance", "");
    says(&f, &c, 3, "node-c", "OMP_NUM_THREADS: 1, with the other 3: 32", "");
    says(&f, &c, 4, "all hosts", "NCCL_ALGO is set by hand", "measure");
    assert_int_equal(f.n, 5);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void a_host_alone_is_held_against_its_good_days(void **state)
{
    (void)state;
    fm_checkup  good, now;
    fm_rates    rates = {0};
    fm_findings f;
    fm_str      out = {0};
    fill(&good, 3, 1);
    fill(&now, 1, 1);
    assert_int_equal(fm_checkup_rates(&rates, &good), FM_OK);
    assert_int_equal(fm_checkup_remember(&now, &rates), FM_OK);
    assert_int_equal(n_fault(&now, &f), 0);
    fm_report_verdict(&out, &now, &f);
    assert_non_null(strstr(out.text, "verdict: as before"));
    fm_findings_fini(&f);
    scale(&now.rank[0].rates.read, 0.8);
    assert_int_equal(n_fault(&now, &f), 1);
    says(&f, &now, 0, "node-a", "memory bandwidth 20 % below what was measured before (163 against",
         "dmidecode");
    fm_findings_fini(&f);
    now.rank[0].rates.n_thread = 8; /* another share of the machine: nothing to compare with */
    assert_int_equal(n_fault(&now, &f), 0);
    fm_findings_fini(&f);
    fm_str_fini(&out);
    fm_rates_fini(&rates);
    fm_checkup_fini(&good);
    fm_checkup_fini(&now);
}

static void bad_gpus(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 2, 4);
    for (int i = 0; i < 8; i++) {
        fm_checkup_rank *r = &c.rank[i];
        r->gpu             = (fm_gpu_facts){.index           = i % 4,
                                            .mhz             = 1980,
                                            .mhz_most        = 1980,
                                            .throttled       = 1,
                                            .pcie_width      = 16,
                                            .pcie_width_most = 16,
                                            .n_link          = 18,
                                            .n_link_active   = 18,
                                            .celsius         = 50,
                                            .watt            = 600};
        strcpy(r->gpu.name, "H200");
        strcpy(r->rates.gpu.name, "H200");
        r->rates.gpu.read                    = rate(4.2e12, 700 + (uint64_t)i);
        r->rates.gpu.product[FM_FACTOR_BF16] = rate(790e12, 800 + (uint64_t)i);
    }
    scale(&c.rank[5].rates.gpu.product[FM_FACTOR_BF16], 0.6);
    c.rank[5].gpu.mhz           = 1100;
    c.rank[5].gpu.throttled     = FM_GPU_POWER_CAP;
    c.rank[2].gpu.uncorrected   = 1;
    c.rank[7].gpu.n_link_active = 17;
    assert_int_equal(n_fault(&c, &f), 2);
    says(&f, &c, 0, "rank 5 on node-b", "GPU bf16 product 40 % below the other 7",
         "its clock is 1100 of 1980 MHz because of the power cap");
    says(&f, &c, 1, "rank 2 on node-a", "uncorrected memory errors", "nvidia-smi -r");
    says(&f, &c, 2, "rank 7 on node-b", "17 of 18 NVLinks", "");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void fill_gpus(fm_checkup *c)
{
    for (int i = 0; i < c->n_rank; i++) {
        fm_checkup_rank *r = &c->rank[i];
        r->gpu             = (fm_gpu_facts){.index                = i,
                                            .mhz                  = 1755,
                                            .mhz_most             = 1980,
                                            .mhz_memory           = 3201,
                                            .mhz_memory_most      = 3201,
                                            .throttled            = FM_GPU_POWER_CAP,
                                            .celsius              = 55,
                                            .watt                 = 690,
                                            .watt_limit           = 700,
                                            .pcie_generation      = 5,
                                            .pcie_generation_most = 5,
                                            .pcie_width           = 16,
                                            .pcie_width_most      = 16,
                                            .has_ecc              = 1,
                                            .corrected            = 3,
                                            .n_link               = 18,
                                            .n_link_active        = 18};
        strcpy(r->gpu.name, "H200");
        strcpy(r->gpu.driver, "580.1");
        strcpy(r->gpu.runtime, "13.0");
        snprintf(r->gpu.pci, sizeof r->gpu.pci, "0000:%02d:00.0", i);
        strcpy(r->rates.gpu.name, "H200");
        r->rates.gpu.read                    = rate(4.2e12, 700 + (uint64_t)i);
        r->rates.gpu.product[FM_FACTOR_BF16] = rate(790e12, 800 + (uint64_t)i);
        r->rates.gpu.upload                  = rate(55e9, 900 + (uint64_t)i);
    }
}

/* NVLink within a host, a network between hosts. */
static void fill_gpu_links(fm_checkup *c)
{
    fm_links *l = &c->gpu_links.links;
    assert_int_equal(fm_links_init(l, c->n_rank), FM_OK);
    for (int i = 0; i < c->n_rank * c->n_rank; i++) {
        const int a = i / c->n_rank, b = i % c->n_rank, is_near = c->host_of[a] == c->host_of[b];
        if (a == b) continue;
        l->latency[i]   = time_of(is_near ? 6e-6 : 14e-6, 2000 + (uint64_t)i);
        l->bandwidth[i] = rate(is_near ? 380e9 : 46e9, 3000 + (uint64_t)i);
    }
    l->all_to_all = rate(90e9, 2);
}

static void slow_gpu_links(fm_checkup *c, int of, int (*is_of)(const fm_checkup *, int, int),
                           double by)
{
    fm_links *l = &c->gpu_links.links;
    for (int i = 0; i < c->n_rank * c->n_rank; i++)
        if (is_of(c, i / c->n_rank, of) != is_of(c, i % c->n_rank, of)) scale(&l->bandwidth[i], by);
}

static int is_on_host(const fm_checkup *c, int rank, int host) { return c->host_of[rank] == host; }

static int is_rank(const fm_checkup *c, int rank, int which)
{
    (void)c;
    return rank == which;
}

static void links_between_gpus_are_judged(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fill(&c, 4, 2);
    fill_gpus(&c);
    fill_gpu_links(&c);
    assert_int_equal(n_fault(&c, &f), 0);
    assert_int_equal(f.n, 0);
    fm_findings_fini(&f);
    slow_gpu_links(&c, 2, is_on_host, 0.5);
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "node-c", "NCCL bandwidth of its GPU's best link 50 % below the other 3",
         "NCCL_IB_HCA");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);

    fill(&c, 1, 8);
    fill_gpus(&c);
    fill_gpu_links(&c);
    slow_gpu_links(&c, 5, is_rank, 0.1); /* it has lost its NVLinks */
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "rank 5 on node-a",
         "NCCL bandwidth of its GPU's best link 90 % below the other 7", "nvidia-smi nvlink");
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void nccl_that_fails_is_a_fault_and_none_is_a_note(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fm_str      out = {0};
    fill(&c, 2, 1);
    fill_gpus(&c);
    strcpy(c.gpu_links.why, "ranks 0 and 1 share a GPU");
    assert_int_equal(n_fault(&c, &f), 0);
    says(&f, &c, 0, "all hosts", "links between GPUs were not measured: ranks 0 and 1 share a GPU",
         "");
    fm_findings_fini(&f);
    c.gpu_links.has_failed = 1;
    strcpy(c.gpu_links.why, "NCCL, rank 1 of 2: unhandled system error");
    assert_int_equal(n_fault(&c, &f), 1);
    says(&f, &c, 0, "all hosts", "NCCL does not connect the GPUs: NCCL, rank 1 of 2", "NCCL_DEBUG");
    fm_findings_excluded(&f, &c, &out);
    assert_int_equal(out.len, 0); /* no --exclude: either end of the slow link may be the cause */
    fm_str_fini(&out);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

/* --- the whole report ----------------------------------------------------------- */

/* What differs is left beside the test, to be looked at. */
static void leave(const char *name, const fm_str *got)
{
    FILE *f = fopen(name, "w");
    if (f) fputs(got->text, f);
    if (f) fclose(f);
}

static void check_golden(const char *name, const fm_str *got)
{
    char           path[512];
    fm_mapped_file want = {0};
    snprintf(path, sizeof path, "%s/doctor/%s", FM_TEST_DATA, name);
    const int is_open = fm_mapped_file_open(&want, path) == FM_OK;
    const int is_same = is_open && want.size == got->len && !memcmp(want.data, got->text, got->len);
    if (!is_same) leave(name, got);
    if (!is_same) fail_msg("%s differs from ./%s", path, name);
    fm_mapped_file_close(&want);
}

static void golden_text(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fm_str      out = {0};
    fill(&c, 4, 1);
    scale(&c.rank[1].rates.read, 0.69);
    slow_links(&c, 3, 40);
    c.rank[2].facts.load = 31.5;
    fm_findings_make(&f, &c);
    fm_report_tables(&out, &c);
    fm_report_verdict(&out, &c, &f);
    check_golden("two_slow_hosts.txt", &out);
    fm_str_clear(&out);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);

    fill(&c, 2, 2);
    fm_findings_make(&f, &c);
    fm_report_tables(&out, &c);
    fm_report_verdict(&out, &c, &f);
    check_golden("healthy.txt", &out);
    fm_str_fini(&out);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void limits_nodes_and_libraries_are_printed(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fm_str      out = {0};
    fill(&c, 4, 1);
    c.rank[0].facts.memory_limit = 64000000000;
    c.rank[0].rates.n_node       = 2;
    c.rank[0].rates.node[1] =
        (fm_rates_node){.id = 1, .read = {100e9, 0, 100e9, 3}, .product = {21e12, 0, 21e12, 3}};
    for (int i = 0; i < 4; i++)
        strcpy(c.rank[i].facts.libraries, i == 2 ? "NCCL=2.19.3\n" : "NCCL=2.21.5\nUCX=1.13.1\n");
    fm_findings_make(&f, &c);
    fm_report_tables(&out, &c);
    fm_report_verdict(&out, &c, &f);
    assert_non_null(strstr(out.text, "; memory limit 64 GB; "));
    assert_non_null(strstr(out.text, " 1       100 ±  0%        21 ±  0%\n"));
    assert_non_null(strstr(out.text, "\nNCCL 2.21.5\nUCX 1.13.1\n"));
    assert_non_null(strstr(out.text, "note  node-c: NCCL: 2.19.3, with the other 3: 2.21.5\n"));
    fm_str_clear(&out);
    fm_report_json(&out, &c, &f, NULL);
    assert_non_null(strstr(out.text, "\"libraries\": \"NCCL=2.21.5\\nUCX=1.13.1\\n\""));
    fm_str_fini(&out);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

/* What a GPU node shows: every named item in the text and in the JSON. */
static void gpus_are_printed(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fm_str      out = {0};
    fill(&c, 1, 2);
    fill_gpus(&c);
    fill_gpu_links(&c);
    fm_findings_make(&f, &c);
    fm_report_tables(&out, &c);
    fm_report_verdict(&out, &c, &f);
    check_golden("gpus.txt", &out);
    fm_str_clear(&out);
    fm_report_json(&out, &c, &f, NULL);
    static const char *const want[] = {"\"throttle_reasons\": \"the power cap\"",
                                       "\"pcie_width\": 16",
                                       "\"pcie_generation\": 5",
                                       "\"ecc\": 1",
                                       "\"nvlinks_active\": 18",
                                       "\"mhz_memory\": 3201",
                                       "\"watt_limit\": 700",
                                       "\"cuda_runtime\": \"13.0\"",
                                       "\"driver\": \"580.1\"",
                                       "\"pci\": \"0000:01:00.0\"",
                                       "\"memory_errors_corrected\": 3",
                                       "\"gpu_link\": {",
                                       "\"gpu_all_to_all\": {",
                                       "\"gpu_near\": {",
                                       "\"mpi\": \"An MPI v5\"",
                                       "\"cpu_s\": 100.0"};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        if (!strstr(out.text, want[i])) fail_msg("no %s", want[i]);
    fm_str_fini(&out);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

static void json_has_the_lists(void **state)
{
    (void)state;
    fm_checkup  c;
    fm_findings f;
    fm_str      out = {0};
    fill(&c, 3, 1);
    scale(&c.rank[1].rates.read, 0.5);
    fm_findings_make(&f, &c);
    fm_report_json(&out, &c, &f, "{\"model\": {\"fits\": true}}");
    assert_non_null(strstr(out.text, "\"verdict\": \"outlier\""));
    assert_non_null(strstr(out.text, "\"exclude\": [\n  \"node-b\"\n ]"));
    assert_non_null(strstr(out.text, "\"hosts\": [\n  \"node-a\",\n  \"node-c\"\n ]"));
    assert_non_null(strstr(out.text, "\"fits\": true"));
    assert_non_null(strstr(out.text, "\"rates_version\": 1"));
    fm_str_fini(&out);
    fm_findings_fini(&f);
    fm_checkup_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_named_among_equals),
        cmocka_unit_test(a_host_is_named_for_its_memory),
        cmocka_unit_test(a_host_is_named_once_for_all_its_ranks),
        cmocka_unit_test(a_rank_is_named_on_its_host),
        cmocka_unit_test(causes_are_told_apart),
        cmocka_unit_test(a_numa_node_is_named),
        cmocka_unit_test(the_peak_of_a_numa_node_is_judged),
        cmocka_unit_test(nodes_of_a_slow_host_are_not_named_again),
        cmocka_unit_test(nodes_with_fewer_cores_are_not_accused),
        cmocka_unit_test(a_host_behind_a_slow_cable_is_named_alone),
        cmocka_unit_test(one_slow_link_is_named_with_both_ends),
        cmocka_unit_test(of_three_hosts_two_with_a_fast_link_accuse_nobody),
        cmocka_unit_test(the_good_end_of_a_slow_link_is_not_accused),
        cmocka_unit_test(of_slow_links_the_common_end_is_left_out),
        cmocka_unit_test(links_of_ranks_that_waited_are_not_judged),
        cmocka_unit_test(errors_and_settings),
        cmocka_unit_test(a_host_alone_is_held_against_its_good_days),
        cmocka_unit_test(bad_gpus),
        cmocka_unit_test(links_between_gpus_are_judged),
        cmocka_unit_test(nccl_that_fails_is_a_fault_and_none_is_a_note),
        cmocka_unit_test(golden_text),
        cmocka_unit_test(limits_nodes_and_libraries_are_printed),
        cmocka_unit_test(gpus_are_printed),
        cmocka_unit_test(json_has_the_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
