/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* The planner's arithmetic: tables, clusters, collectives, layouts, files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/open/foresee.h"
#include "llm/planner/forecast.h"
#include "probe/rates.h"

static void near_to(double x, double want) { assert_true(fabs(x - want) <= 1e-9 * fabs(want)); }

/* --- tables ------------------------------------------------------------------- */

static void interpolates_in_logarithms(void **state)
{
    (void)state;
    fm_table t = {0};
    near_to(fm_table_at(&t, 5, 5), 1); /* nothing is known */
    assert_true(fm_table_put(&t, 4, 1, 0.4) && fm_table_put(&t, 1, 1, 0.1));
    assert_true(t.row[0] == 1 && t.row[1] == 4);
    near_to(fm_table_at(&t, 1, 1), 0.1);
    near_to(fm_table_at(&t, 2, 1), 0.2); /* half way from 1 to 4 */
    near_to(fm_table_at(&t, 4, 7), 0.4);
    near_to(fm_table_at(&t, 0.5, 1), 0.1); /* constant outside */
    near_to(fm_table_at(&t, 100, 1), 0.4);
    assert_true(fm_table_put(&t, 1, 16, 0.9) && fm_table_put(&t, 4, 16, 1.6));
    near_to(fm_table_at(&t, 1, 4), 0.3);
    near_to(fm_table_at(&t, 2, 4), sqrt(0.3 * 0.8));
    assert_true(fm_table_put(&t, 1, 16, 0.4)); /* replaces */
    near_to(fm_table_at(&t, 1, 16), 0.4);
}

static void holes_take_the_nearest(void **state)
{
    (void)state;
    fm_table t = {0};
    fm_table_put(&t, 1, 1, 0.1);
    fm_table_put(&t, 8, 64, 0.8);
    fm_table_put(&t, 64, 64, 0.9);
    fm_table_complete(&t);
    near_to(t.value[0][1], 0.1);
    near_to(t.value[1][0], 0.8);
    near_to(t.value[2][0], 0.9);
}

static void a_full_table_says_so(void **state)
{
    (void)state;
    fm_table t = {0};
    for (int i = 1; i <= FM_TABLE_ROWS; i++) assert_true(fm_table_put(&t, i, 1, 1));
    assert_false(fm_table_put(&t, 0.5, 1, 1));
}

/* --- clusters ----------------------------------------------------------------- */

static void reads_clusters(void **state)
{
    (void)state;
    fm_cluster c;
    assert_int_equal(fm_cluster_read(&c, "2x8xH200"), FM_OK);
    assert_true(c.n_node == 2 && c.per_node == 8 && !strcmp(c.device, "H200"));
    assert_int_equal(fm_cluster_read(&c, "4xH100-PCIe"), FM_OK);
    assert_true(c.n_node == 1 && c.per_node == 4 && !strcmp(c.device, "H100-PCIe"));
    const char *const bad[] = {"",          "H200",         "2x",        "0x8xH200",
                               "2x0xH200",  "2x8x",         "x8xH200",   "2x800xH200",
                               "2x8xH200,", "2 x 8 x H200", "2x8xH200/", "2x8x-H200"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (fm_cluster_read(&c, bad[i]) != FM_E_ARG) fail_msg("\"%s\" was taken", bad[i]);
        assert_non_null(strstr(fm_why(), "2x8xH200"));
    }
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void reads_files(void **state)
{
    (void)state;
    char path[] = "/tmp/fathom-cluster-XXXXXX.json";
    assert_true(mkstemps(path, 5) >= 0);
    fm_cluster c;
    write_file(path, "{\"nodes\": 4, \"devices\": 8, \"device\": \"H200\", \"far\": "
                     "{\"latency_s\": 2e-5, \"bytes_per_s\": 2.5e10}}");
    assert_int_equal(fm_cluster_read(&c, path), FM_OK);
    assert_true(c.n_node == 4 && c.far.bytes_per_s == 2.5e10 && c.near.bytes_per_s == 0);
    fm_tuned t = {.is_gpu = 1};
    fm_cluster_fill_links(&c, &t);
    assert_true(c.far.bytes_per_s == 2.5e10 && c.near.bytes_per_s > 1e11); /* NVLink */
    write_file(path, "{\"nodes\": 1, \"devices\": 8, \"device\": \"H200\", \"tiers\": "
                     "{\"host_in_bytes_per_s\": 2e10, \"file_read_bytes_per_s\": 6e9}}");
    assert_int_equal(fm_cluster_read(&c, path), FM_OK);
    t.tiers.file_write = 3e9;
    fm_cluster_fill_links(&c, &t); /* described, measured with the table, usual */
    assert_true(c.tiers.host_in == 2e10 && c.tiers.file_read == 6e9 && c.tiers.file_write == 3e9);
    assert_true(c.tiers.host_out > 1e10); /* PCIe */
    write_file(path, "{\"nodes\": 1, \"devices\": 8, \"device\": \"H200\", \"tiers\": "
                     "{\"host_in_bytes_per_s\": -2}}");
    assert_int_equal(fm_cluster_read(&c, path), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "tiers.host_in_bytes_per_s"));
    write_file(path, "{\"nodes\": 4, \"devices\": 8, \"device\": \"H200\", \"far\": "
                     "{\"latency_s\": -1, \"bytes_per_s\": 1}}");
    assert_int_equal(fm_cluster_read(&c, path), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "far.latency_s"));
    unlink(path);
    assert_int_equal(fm_cluster_read(&c, path), FM_E_IO);
}

/* Doctor's file of two hosts with two ranks of four threads each; links between hosts and those of
 * GPUs were not measured. */
static void read_rates(fm_cluster *c, const char *gpu)
{
    char          path[] = "/tmp/fathom-rates-XXXXXX.json";
    fm_str        text   = {0};
    fm_rates      r;
    const fm_rate fast = {8e9, 0, 8e9, 3}, slow = {2e-6, 0, 2e-6, 3};
    assert_true(mkstemps(path, 5) >= 0);
    assert_int_equal(fm_rates_init(&r, 4, 0, 0), FM_OK);
    for (int i = 0; i < 4; i++) {
        fm_rates_rank *k = &r.rank[i];
        snprintf(k->host, sizeof k->host, "host%d", i / 2);
        snprintf(k->cpu, sizeof k->cpu, "AMD EPYC");
        snprintf(k->gpu.name, sizeof k->gpu.name, "%s", gpu);
        k->n_core = k->n_thread    = 4;
        k->memory                  = 1 << 30;
        k->read                    = (fm_rate){3e10, 0, 3e10, 5};
        k->product[FM_FACTOR_BF16] = (fm_rate){2e11, 0, 2e11, 5};
        k->file                    = (fm_rate){2e9, 0, 2e9, 5};
        snprintf(k->directory, sizeof k->directory, "/scratch");
        if (*gpu) k->gpu.upload = (fm_rate){5e10, 0, 5e10, 5};
    }
    r.near = (fm_rates_links){slow, fast};
    fm_rates_print(&r, &text);
    write_file(path, text.text);
    if (fm_cluster_read(c, path) != FM_OK) fail_msg("%s", fm_why());
    unlink(path);
    fm_str_fini(&text);
    fm_rates_fini(&r);
}

static void reads_rates_of_cpus(void **state)
{
    (void)state;
    fm_cluster c;
    read_rates(&c, "");
    assert_true(c.n_node == 2 && c.per_node == 2 && c.cpu.n_thread == 8);
    assert_string_equal(c.device, "AMD EPYC x8"); /* as --calibrate names its table */
    assert_true(c.is_near_measured && !c.is_far_measured && c.near.bytes_per_s == 8e9);
    near_to(c.cpu.read, 3e10);
    near_to(c.cpu.peak_bf16, 4e11);
    near_to(c.cpu.peak_f32, 5e10);
    near_to(c.tiers.file_read, 2e9);
    fm_cluster_fill_links(&c, &(fm_tuned){.read = 4e10, .n_thread = 4});
    near_to(c.tiers.host_in, 5e9); /* one of four threads reads and writes */
    near_to(c.tiers.file_read, 2e9);
}

static void reads_rates_of_gpus(void **state)
{
    (void)state;
    fm_cluster c;
    read_rates(&c, "NVIDIA H100 PCIe");
    assert_string_equal(c.device, "H100-PCIe");
    assert_true(!c.is_near_measured && !c.is_far_measured && !c.cpu.n_thread);
    assert_true(c.tiers.host_in == 5e10 && c.tiers.file_read == 2e9);
    fm_cluster_fill_links(&c, &(fm_tuned){.is_gpu = 1});
    assert_true(!c.is_near_measured && c.near.bytes_per_s > 1e10);
}

/* --- collectives -------------------------------------------------------------- */

static const fm_cluster two_by_eight = {
    .n_node = 2, .per_node = 8, .near = {1e-6, 1e11}, .far = {1e-5, 1e10}};

static void groups_spread_over_hosts(void **state)
{
    (void)state;
    assert_int_equal(fm_group_of(8, 1, 8).n_host, 1);
    assert_int_equal(fm_group_of(16, 1, 8).n_host, 2);
    assert_int_equal(fm_group_of(2, 8, 8).n_host, 2); /* one rank of each of two hosts */
    assert_int_equal(fm_group_of(4, 4, 8).n_host, 2);
    assert_int_equal(fm_group_of(1, 1, 8).n_host, 1);
}

static void collectives_add_latency_and_bytes(void **state)
{
    (void)state;
    const fm_cluster *c = &two_by_eight;
    near_to(fm_gather_seconds(c, fm_group_of(1, 1, 8), 1e6), 0);
    near_to(fm_gather_seconds(c, fm_group_of(8, 1, 8), 7e5), 3e-6 + 7e5 / 1e11);
    /* Half of the 15 parts and one come from the other host, through eight cards. */
    near_to(fm_gather_seconds(c, fm_group_of(16, 1, 8), 15e5),
            3e-6 + 1e-5 + 8e5 / 8 / 1e10 + 15e5 / 1e11);
    near_to(fm_all_to_all_seconds(c, fm_group_of(16, 1, 8), 15e5),
            3e-6 + 1e-5 + 8e5 / 1e10 + 7e5 / 1e11);
    near_to(fm_gather_seconds(c, fm_group_of(2, 8, 8), 1e6), 1e-5 + 1e6 / 1e10);
    near_to(fm_send_seconds(c, 1, 1e4), 1e-5 + 1e4 / 1e10);
    near_to(fm_send_seconds(c, 0, 1e4), 1e-6 + 1e4 / 1e11);
}

/* --- layouts ------------------------------------------------------------------ */

static fm_model_config config_of(const char *name)
{
    fm_model_path   path;
    fm_model_config c;
    assert_int_equal(fm_model_path_find(&path, name), FM_OK);
    assert_int_equal(fm_config_of(&c, &path, NULL), FM_OK);
    return c;
}

static void lists_layouts(void **state)
{
    (void)state;
    static fm_rank_sizes  list[FM_MAX_FORECAST];
    const fm_model_config c   = config_of("r1");
    const fm_layout_wish  any = {.dp_attention = -1}, tp8 = {.tp = 8, .pp = 2, .dp_attention = 0};
    const int             n           = fm_layouts_of(list, FM_MAX_FORECAST, 16, &c, &any);
    int                   n_attention = 0;
    assert_true(n > 30);
    for (int i = 0; i < n; i++) {
        const fm_rank_sizes *s = &list[i];
        assert_int_equal(s->tp * s->pp * (s->dp_attention ? 1 : s->dp), 16);
        n_attention += s->dp_attention;
        for (int k = 0; k < i; k++) assert_true(memcmp(s, &list[k], sizeof *s) != 0);
    }
    assert_true(n_attention > 10);
    assert_int_equal(fm_layouts_of(list, FM_MAX_FORECAST, 16, &c, &tp8), 2); /* ep 1 and 8 */
    assert_int_equal(
        fm_layouts_of(list, FM_MAX_FORECAST, 3, &c, &(fm_layout_wish){.tp = 3, .dp_attention = 0}),
        0);
}

/* --- the table of costs -------------------------------------------------------- */

static fm_tuned some_table(void)
{
    fm_tuned t = {.is_gpu    = 1,
                  .memory    = 1e11,
                  .read      = 4e12,
                  .read_one  = 3e12,
                  .peak_f32  = 6e13,
                  .peak_bf16 = 7e14,
                  .peak_fp8  = 1.4e15,
                  .op_s      = 2e-6,
                  .step_s    = 5e-5,
                  .spread    = 0.02,
                  .near      = {3e-6, 3e11},
                  .tiers     = {.host_in = 5e10, .file_write = 1e9}};
    snprintf(t.name, sizeof t.name, "Some GPU");
    for (int k = 0; k < FM_N_WORK; k++)
        for (int r = 1; r <= 64; r *= 8)
            fm_table_put(&t.share[k], r, 1, 0.1 + 0.001 * r + 0.01 * k);
    fm_tuned_steps *s = fm_tuned_add_steps(&t, "r1");
    fm_table_put(&s->generated, 1, 1, 1.1);
    fm_table_put(&s->prompt, 2048, 1, 0.9);
    return t;
}

static void the_file_comes_back(void **state)
{
    (void)state;
    const fm_tuned t = some_table();
    fm_tuned       u;
    fm_str         text = {0};
    fm_tuned_print(&t, &text);
    if (fm_tuned_parse(&u, text.text, text.len, "t.json") != FM_OK) fail_msg("%s", fm_why());
    assert_true(!strcmp(u.name, t.name) && u.is_gpu && u.read == t.read && u.op_s == t.op_s);
    assert_true(u.read_one == t.read_one);
    assert_true(u.near.bytes_per_s == 3e11 && u.far.bytes_per_s == 0);
    assert_true(u.tiers.host_in == 5e10 && u.tiers.host_out == 0 && u.tiers.file_write == 1e9);
    for (int k = 0; k < FM_N_WORK; k++)
        assert_true(fabs(fm_table_at(&u.share[k], 20, 1) / fm_table_at(&t.share[k], 20, 1) - 1) <
                    1e-3);
    assert_true(fm_table_at(&fm_tuned_steps_of(&u, "r1")->prompt, 1, 1) == 0.9);
    assert_null(fm_tuned_steps_of(&u, "v2-lite"));
    fm_str_fini(&text);
}

static void complains_about_files(void **state)
{
    (void)state;
    const fm_tuned t = some_table();
    fm_tuned       u;
    fm_str         text = {0};
    fm_tuned_print(&t, &text);
    static const struct {
        const char *find, *put, *says;
    } harm[] = {{"\"gpu\"", "\"toy\"", "neither cpu nor gpu"},
                {"\"read_bytes_per_s\"", "\"x\"", "read_bytes_per_s"},
                {"\"experts\"", "\"exports\"", "share.experts is missing"},
                {"[1.0, 8.0", "[8.0, 1.0", "ascend"},
                {"\"step\": {", "\"step\": 3, \"other\": {", "step: expected an object"},
                {"\"tiers\": {", "\"tiers\": 3, \"other\": {", "tiers: expected an object"},
                {"\"fathom_tuned\": 1", "\"fathom_tuned\": 9", "fathom_tuned"}};
    for (size_t i = 0; i < sizeof harm / sizeof *harm; i++) {
        fm_str      bad = {0};
        const char *at  = strstr(text.text, harm[i].find);
        assert_non_null(at);
        fm_str_add(&bad, text.text, (size_t)(at - text.text));
        fm_str_puts(&bad, harm[i].put);
        fm_str_puts(&bad, at + strlen(harm[i].find));
        assert_int_equal(fm_tuned_parse(&u, bad.text, bad.len, "t.json"), FM_E_FORMAT);
        if (!strstr(fm_why(), harm[i].says) || !strstr(fm_why(), "t.json"))
            fail_msg("%s", fm_why());
        fm_str_fini(&bad);
    }
    fm_str_fini(&text);
}

static void names_files(void **state)
{
    (void)state;
    fm_str s = {0};
    fm_tuned_file_name(&s, "Intel(R) Xeon(R) 8488C x2");
    assert_string_equal(s.text, "intel-r-xeon-r-8488c-x2");
    fm_str_fini(&s);
}

/* --- devices that were not measured ------------------------------------------- */

static void scales_gpus(void **state)
{
    (void)state;
    fm_tuned       t = some_table();
    const fm_tuned u = t;
    assert_string_equal(fm_gpu_kind("on NVIDIA H200"), "H200");
    assert_string_equal(fm_gpu_kind("NVIDIA H100 80GB HBM3"), "H100");
    assert_string_equal(fm_gpu_kind("NVIDIA H20"), "H20");
    assert_null(fm_gpu_kind("NVIDIA A100-SXM4-80GB"));
    assert_null(fm_scaled_from("H200"));
    assert_null(fm_scaled_from("A100"));
    assert_string_equal(fm_scaled_from("h100"), "H200");
    fm_scale_gpu(&t, "H100");
    near_to(t.read, u.read * 3.35 / 4.8);
    assert_true(t.peak_bf16 == u.peak_bf16 && t.memory < 9e10 && t.spread > 0.1);
    assert_true(strstr(t.about, "not measured") && !strcmp(t.name, "H100"));
    assert_true(t.near.bytes_per_s == 0); /* those of its kind */
}

static void scales_cpus(void **state)
{
    (void)state;
    fm_tuned            t = some_table();
    const fm_cpu_limits l = {8, 6e10, 1e11, 4e11, 2e12, 4e10};
    fm_scale_cpu(&t, &l);
    assert_true(t.n_thread == 8 && t.memory == 6e10 && t.read == 1e11 && t.peak_f32 == 4e11);
    assert_true(t.read_one == 4e10);
    assert_true(t.peak_bf16 == 2e12 && t.peak_fp8 == 2e12 && t.spread >= 0.3);
}

/* --- steps -------------------------------------------------------------------- */

/* Shares of 1 and no overhead: a step takes what the roofline says. */
static void a_step_is_the_sum_of_its_ops(void **state)
{
    (void)state;
    const fm_tuned t = {
        .read = 1e9, .peak_bf16 = 1e12, .peak_f32 = 1e12, .peak_fp8 = 1e12, .n_thread = 1};
    const fm_stage_work w = {
        .product = {{FM_WORK_LINEAR, FM_BF16, 1e6, 1e6, 10}, {FM_WORK_HEAD, FM_BF16, 2e6, 1e6, 1}},
        .n_product = 2,
        .n_layer   = 10};
    fm_step_model  m = {.tuned   = &t,
                        .cluster = &two_by_eight,
                        .size    = {1, 1, 1, 1, 0},
                        .n_group = 1,
                        .stage   = &w,
                        .slow    = 1};
    fm_span        s = {.n_row = 1, .pos0 = 9, .form = FM_FORM_GENERATED};
    const fm_batch b = {.n_row = 1, .n_span = 1, .n_out = 1, .span = &s}, *one = &b;
    fm_sim_times   out = {0};
    fm_step_seconds(&m, &one, &out);
    near_to(out.stage[0], 10e-3 + 2e-3);
    near_to(m.by[FM_BOUND_MEMORY], 12e-3);
    near_to(out.reads[0], 12e-3); /* all of it */
    m.slow = 2;                   /* two ranks share the machine */
    fm_step_seconds(&m, &one, &out);
    near_to(out.stage[0], 24e-3);
    near_to(out.reads[0], 24e-3);
    fm_tuned slow_core = t; /* at half the bandwidth memory is half of what takes time */
    m.tuned            = &slow_core;
    for (int k = 0; k < FM_N_WORK; k++) fm_table_put(&slow_core.share[k], 1, 1, 0.5);
    fm_step_seconds(&m, &one, &out);
    near_to(out.stage[0], 48e-3);
    near_to(out.reads[0], 24e-3);
}

/* 16 prompts of 64 rows behind 960 cached tokens: a GPU rebuilds 16 x 1024 keys in one product at
 * the share of a large one, and a tile of 64 rows takes as long as one of 128. */
static void short_prompts_share_a_product_on_a_gpu(void **state)
{
    (void)state;
    enum { N = 16 };
    fm_tuned t = {.is_gpu = 1, .read = 1e18, .peak_bf16 = 1e12, .n_thread = 1};
    fm_table_put(&t.share[FM_WORK_LINEAR], 64, 1, 0.1);
    fm_table_put(&t.share[FM_WORK_LINEAR], 16384, 1, 0.8);
    fm_table_put(&t.share[FM_WORK_PROMPT], 128, 1, 0.5);
    const fm_stage_work w = {.n_layer = 1, .heads = 2, .attend = {.up = 1e3, .head = 100}};
    fm_step_model       m = {.tuned   = &t,
                             .cluster = &two_by_eight,
                             .size    = {1, 1, 1, 1, 0},
                             .n_group = 1,
                             .stage   = &w,
                             .slow    = 1};
    fm_span             s[N];
    for (int i = 0; i < N; i++)
        s[i] = (fm_span){.row0 = 64 * i, .n_row = 64, .pos0 = 960, .form = FM_FORM_PROMPT};
    const fm_batch b = {.n_row = 64 * N, .n_span = N, .span = s}, *one = &b;
    fm_sim_times   out = {0};
    fm_step_seconds(&m, &one, &out);
    const double expand = 2 * 1024 * N * 1e3 / 1e12 / 0.8;
    const double tiles  = N * 2 * 2 * 128 * (960 + 32.5) * 100 / 1e12 / 0.5;
    near_to(out.stage[0], expand + tiles);
}

/* A link of a chain of drafts reads a layer with its experts, and what it has as a head. */
static void a_draft_costs_a_layer_and_the_head(void **state)
{
    (void)state;
    const fm_tuned      t = {.is_gpu = 1, .read = 1e9, .peak_bf16 = 1e15, .n_thread = 1};
    const fm_stage_work w = {
        .product   = {{FM_WORK_LINEAR, FM_BF16, 1e6, 1, 10}, {FM_WORK_HEAD, FM_BF16, 5e6, 1, 1}},
        .n_product = 2,
        .n_layer   = 10,
        .n_moe     = 5,
        .expert    = {FM_WORK_EXPERTS, FM_BF16, 4e6, 1, 8},
        .n_expert  = 8,
        .top_k     = 8,
        .n_draft_layer = 1,
        .link_head     = {FM_WORK_HEAD, FM_BF16, 3e6, 1, 1}};
    fm_step_model  m = {.tuned   = &t,
                        .cluster = &two_by_eight,
                        .size    = {1, 1, 1, 1, 0},
                        .n_group = 1,
                        .stage   = &w,
                        .slow    = 1};
    fm_span        s = {.n_row = 1, .pos0 = 9, .form = FM_FORM_GENERATED};
    const fm_batch b = {.n_row = 1, .n_span = 1, .n_out = 1, .span = &s}, *one = &b;
    fm_sim_times   without = {0}, with = {0};
    fm_step_seconds(&m, &one, &without);
    m.n_draft = 2;
    fm_step_seconds(&m, &one, &with);
    near_to(with.stage[0] - without.stage[0], 2 * (1e-3 + 8 * 4e-3 + 3e-3));
}

/* Four sets of experts with 16 pairs each: the busiest is sqrt(2 ln 4 / 16) above the mean; on two
 * cores, which have 32 pairs each, the busier core sqrt(2 ln 2 / 32). */
static void sets_of_experts_even_out_on_shared_cores(void **state)
{
    (void)state;
    const fm_tuned      t    = {.read = 1e18, .peak_bf16 = 1e12, .n_thread = 2};
    const fm_cluster    fast = {.n_node = 1, .per_node = 4, .near = {0, 1e18}, .far = {0, 1e18}};
    const fm_stage_work w    = {.n_layer  = 1,
                                .n_moe    = 1,
                                .expert   = {FM_WORK_EXPERTS, FM_BF16, 1, 1e6, 2},
                                .n_expert = 8,
                                .top_k    = 4};
    fm_step_model       m    = {.tuned   = &t,
                                .cluster = &fast,
                                .size    = {.tp = 4, .pp = 1, .dp = 1, .ep = 4},
                                .n_group = 1,
                                .stage   = &w,
                                .slow    = 1};
    fm_span             s    = {.n_row = 16, .form = FM_FORM_PROMPT};
    const fm_batch      b = {.n_row = 16, .n_span = 1, .n_out = 1, .span = &s}, *one = &b;
    fm_sim_times        out = {0};
    fm_step_seconds(&m, &one, &out);
    assert_true(fabs(out.stage[0] / (16e-6 * (1 + sqrt(2 * log(4) / 16))) - 1) < 1e-6);
    m.n_core = 4;
    fm_step_seconds(&m, &one, &out);
    assert_true(fabs(out.stage[0] / (16e-6 * (1 + sqrt(2 * log(4) / 16))) - 1) < 1e-6);
    m.n_core = 2;
    fm_step_seconds(&m, &one, &out);
    assert_true(fabs(out.stage[0] / (16e-6 * (1 + sqrt(2 * log(2) / 32))) - 1) < 1e-6);
    m.n_core = 1;
    fm_step_seconds(&m, &one, &out);
    assert_true(fabs(out.stage[0] / 16e-6 - 1) < 1e-6);
}

/* Eight threads read 80 GB/s together and 20 alone: one of four ranks with two of them each has
 * twice its part by itself; a rank that has the host has all there is. */
static void ranks_of_a_host_share_its_cores(void **state)
{
    (void)state;
    fm_tuned     t = {.n_thread = 8, .read = 8e10, .read_one = 2e10};
    fm_sim_cores c = fm_shared_cores(&t, 4, 2, 2);
    assert_true(c.n_core == 8 && c.n_rank == 2);
    near_to(c.most_read, 2);
    near_to(fm_shared_cores(&t, 1, 2, 1).most_read, 1);
    near_to(fm_shared_cores(&t, 8, 1, 1).most_read, 2);
    c = fm_shared_cores(&t, 16, 1, 1); /* more ranks than threads */
    assert_true(c.n_core == 8);
    near_to(c.most_read, 2);
    t.is_gpu = 1;
    assert_int_equal(fm_shared_cores(&t, 8, 1, 1).n_core, 0);
}

/* The memory plan has a copy of the head in bytes, and that is what links are charged for. */
static void links_read_the_head_in_bytes(void **state)
{
    (void)state;
    const fm_place place = {.n_rank   = 1,
                            .on_gpu   = 1,
                            .n_thread = 1,
                            .memory   = {.total = 1ll << 41, .available = 1ll << 41}};
    fm_foreseen    seen  = {0};
    fm_options    *o;
    fm_stage_work  w;
    assert_int_equal(fm_options_create(&o), FM_OK);
    assert_int_equal(fm_options_set(o, "model-path", "r1"), FM_OK);
    assert_int_equal(fm_options_set(o, "speculative-algorithm", "NEXTN"), FM_OK);
    if (fm_engine_foresee(&seen, o, &place) != FM_OK) fail_msg("%s", fm_why());
    const double    head    = (double)seen.config.vocab * seen.config.hidden;
    fm_run_limits   without = seen.limits;
    const fm_shard *shard   = &seen.weights.shard;
    without.draft_head      = 0;
    const size_t with_copy =
        fm_backend_cuda_counts.workspace(&seen.config, shard, FM_BF16, &seen.limits);
    const size_t with_none =
        fm_backend_cuda_counts.workspace(&seen.config, shard, FM_BF16, &without);
    assert_true(seen.plan.workspace >= with_copy);
    assert_true(with_copy - with_none > head && with_copy - with_none < 1.05 * head);
    fm_stage_work_of(&w, &seen.weights, 1, 1, seen.limits.draft_head);
    assert_true(w.link_head.bytes == head && w.link_head.factor == FM_FP8);
    fm_stage_work_of(&w, &seen.weights, 1, 1, 0);
    assert_true(w.link_head.bytes == 2 * head && w.link_head.factor == FM_BF16);
    fm_foreseen_fini(&seen);
    fm_options_destroy(o);
}

/* Each of two ranks takes 10 ms give or take 1: they meet after the longer one. */
static void ranks_wait_for_the_slowest(void **state)
{
    (void)state;
    const fm_tuned      t    = {.read = 1e9, .peak_bf16 = 1e12, .n_thread = 1};
    const fm_stage_work w[2] = {
        {.product = {{FM_WORK_LINEAR, FM_BF16, 1e7, 1, 1}}, .n_product = 1, .n_layer = 1},
        {.product = {{FM_WORK_LINEAR, FM_BF16, 1e7, 1, 1}}, .n_product = 1, .n_layer = 1}};
    const fm_cluster fast = {.n_node = 1, .per_node = 2, .near = {0, 1e18}, .far = {0, 1e18}};
    fm_step_model    m    = {.tuned   = &t,
                             .cluster = &fast,
                             .size    = {.tp = 2, .pp = 1, .dp = 1, .ep = 1},
                             .n_group = 1,
                             .stage   = w,
                             .slow    = 1,
                             .jitter  = 0.1};
    fm_span          s    = {.n_row = 1, .pos0 = 9, .form = FM_FORM_GENERATED};
    const fm_batch   b = {.n_row = 1, .n_span = 1, .n_out = 1, .span = &s}, *one = &b;
    fm_sim_times     out = {0};
    fm_step_seconds(&m, &one, &out);
    if (!(fabs(out.stage[0] - 10.564e-3) < 0.05e-3)) fail_msg("%g s", out.stage[0]);
    m.size = (fm_rank_sizes){.tp = 1, .pp = 2, .dp = 1, .ep = 1};
    fm_step_seconds(&m, &one, &out);
    assert_true(fabs(out.stage[1] - 10.564e-3) < 0.05e-3);
    m.size = (fm_rank_sizes){.tp = 1, .pp = 1, .dp = 1, .ep = 1};
    fm_step_seconds(&m, &one, &out);
    near_to(out.stage[0], 10e-3);
    m.size =
        (fm_rank_sizes){.tp = 1, .pp = 8, .dp = 1, .ep = 1}; /* on two cores: two are held up */
    m.n_core           = 2;
    fm_step_model many = m;
    fm_stage_work stage[8];
    for (int i = 0; i < 8; i++) stage[i] = w[0];
    many.stage = stage;
    fm_step_seconds(&many, &one, &out);
    assert_true(fabs(out.stage[7] - 10.564e-3) < 0.05e-3);
}

/* Two ranks that never meet are as unequal as two that do; four are held up as much whether they
 * are one replica or two. */
static void replicas_are_unequal(void **state)
{
    (void)state;
    fm_step_model m = {.size = {.tp = 1, .pp = 1, .dp = 2, .ep = 1}, .jitter = 0.1};
    double        pace[3];
    fm_replica_paces(&m, pace, 1);
    near_to(pace[0], 1);
    fm_replica_paces(&m, pace, 2);
    assert_true(fabs(pace[0] - 1.0564) < 5e-3 && fabs(pace[0] + pace[1] - 2) < 1e-12);
    fm_replica_paces(&m, pace, 3);
    assert_true(pace[0] > 1.05 && fabs(pace[1] - 1) < 1e-12 && fabs(pace[0] + pace[2] - 2) < 1e-12);
    m.size.tp = 2;
    fm_replica_paces(&m, pace, 2);
    assert_true(fabs(1.0564 * pace[0] - 1.103) < 5e-3);
    m.jitter = 0; /* a GPU */
    fm_replica_paces(&m, pace, 2);
    assert_true(pace[0] == 1 && pace[1] == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interpolates_in_logarithms),
        cmocka_unit_test(holes_take_the_nearest),
        cmocka_unit_test(a_full_table_says_so),
        cmocka_unit_test(reads_clusters),
        cmocka_unit_test(reads_files),
        cmocka_unit_test(reads_rates_of_cpus),
        cmocka_unit_test(reads_rates_of_gpus),
        cmocka_unit_test(groups_spread_over_hosts),
        cmocka_unit_test(collectives_add_latency_and_bytes),
        cmocka_unit_test(lists_layouts),
        cmocka_unit_test(the_file_comes_back),
        cmocka_unit_test(complains_about_files),
        cmocka_unit_test(names_files),
        cmocka_unit_test(scales_gpus),
        cmocka_unit_test(scales_cpus),
        cmocka_unit_test(a_step_is_the_sum_of_its_ops),
        cmocka_unit_test(short_prompts_share_a_product_on_a_gpu),
        cmocka_unit_test(a_draft_costs_a_layer_and_the_head),
        cmocka_unit_test(sets_of_experts_even_out_on_shared_cores),
        cmocka_unit_test(ranks_of_a_host_share_its_cores),
        cmocka_unit_test(links_read_the_head_in_bytes),
        cmocka_unit_test(ranks_wait_for_the_slowest),
        cmocka_unit_test(replicas_are_unequal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
