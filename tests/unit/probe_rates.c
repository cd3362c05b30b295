/* SPDX-License-Identifier: Apache-2.0 */
/* The file of rates: what is written is read again, and every complaint names file and field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probe/rates.h"

static fm_rate rate(double median)
{
    return (fm_rate){.median = median, .spread = 0.01 * median, .best = 1.02 * median, .n = 5};
}

static void same_rate(fm_rate a, fm_rate b)
{
    assert_int_equal(a.n, b.n);
    assert_true(a.median - b.median < 1e-6 * (1 + b.median));
    assert_true(b.median - a.median < 1e-6 * (1 + b.median));
}

static void fill(fm_rates *r)
{
    assert_int_equal(fm_rates_init(r, 2, 1, 1), FM_OK);
    strcpy(r->made, "2025-03-14T09:26:53Z");
    strcpy(r->version, "0.1.0");
    for (int i = 0; i < 2; i++) {
        fm_rates_rank *k = &r->rank[i];
        snprintf(k->host, sizeof k->host, "node-%d", i);
        strcpy(k->cpu, "A \"quoted\" CPU");
        strcpy(k->isa, "amx");
        k->n_core   = 8 + i;
        k->n_thread = 8;
        k->memory   = (uint64_t)1 << 41;
        k->read     = rate(2.1e11);
        k->n_node   = 2;
        k->node[1] =
            (fm_rates_node){.id = 3, .n_core = 4, .read = rate(1e11), .product = rate(3e12)};
        k->product[FM_FACTOR_BF16] = rate(3e12);
        k->level[FM_ISA_AVX2]      = rate(4e11);
    }
    strcpy(r->rank[1].gpu.name, "H200");
    r->rank[1].gpu.product[FM_FACTOR_FP8] = rate(1.4e15);
    strcpy(r->rank[1].directory, "/models/x");
    r->rank[1].file   = rate(3e9);
    r->link[1]        = (fm_rates_link){1.5e-6, 2.4e10};
    r->link[2]        = (fm_rates_link){1.6e-6, 2.3e10};
    r->far            = (fm_rates_links){rate(1.55e-6), rate(2.35e10)};
    r->all_to_all     = rate(1e10);
    r->gpu_link[1]    = (fm_rates_link){8e-6, 3.8e11};
    r->gpu_far        = (fm_rates_links){rate(8e-6), rate(3.8e11)};
    r->gpu_all_to_all = rate(9e10);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    fm_rates a = {0}, b = {0};
    fm_str   text = {0};
    fill(&a);
    fm_rates_print(&a, &text);
    assert_int_equal(fm_rates_parse(&b, text.text, text.len, "rates.json"), FM_OK);
    assert_int_equal(b.n_rank, 2);
    assert_string_equal(b.made, a.made);
    assert_string_equal(b.rank[1].host, "node-1");
    assert_string_equal(b.rank[0].cpu, "A \"quoted\" CPU");
    assert_int_equal(b.rank[1].n_core, 9);
    assert_true(b.rank[1].memory == (uint64_t)1 << 41);
    assert_int_equal(b.rank[0].node[1].id, 3);
    assert_int_equal(b.rank[0].node[1].n_core, 4);
    same_rate(b.rank[0].node[1].read, a.rank[0].node[1].read);
    same_rate(b.rank[0].node[1].product, a.rank[0].node[1].product);
    same_rate(b.rank[0].read, a.rank[0].read);
    same_rate(b.rank[1].product[FM_FACTOR_BF16], a.rank[1].product[FM_FACTOR_BF16]);
    assert_int_equal(b.rank[0].product[FM_FACTOR_F64].n, 0);
    same_rate(b.rank[1].level[FM_ISA_AVX2], a.rank[1].level[FM_ISA_AVX2]);
    assert_int_equal(b.rank[1].level[FM_ISA_AMX].n, 0);
    assert_string_equal(b.rank[0].gpu.name, "");
    same_rate(b.rank[1].gpu.product[FM_FACTOR_FP8], a.rank[1].gpu.product[FM_FACTOR_FP8]);
    same_rate(b.rank[1].file, a.rank[1].file);
    assert_true(b.link[1].latency > 1.4e-6 && b.link[1].latency < 1.6e-6);
    assert_true(b.link[2].bandwidth > 2.2e10 && b.link[2].bandwidth < 2.4e10);
    same_rate(b.far.bandwidth, a.far.bandwidth);
    assert_int_equal(b.near.latency.n, 0);
    same_rate(b.all_to_all, a.all_to_all);
    assert_true(b.gpu_link[1].bandwidth > 3.7e11 && b.gpu_link[1].bandwidth < 3.9e11);
    same_rate(b.gpu_far.latency, a.gpu_far.latency);
    same_rate(b.gpu_all_to_all, a.gpu_all_to_all);
    fm_str_fini(&text);
    fm_rates_fini(&a);
    fm_rates_fini(&b);
}

static void complaints_name_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"{}", "x.json is no file of rates"},
        {"[1]", "x.json is no file of rates"},
        {"{\"rates_version\": 7, \"rank\": [{}]}", "rates_version is 7"},
        {"{\"rates_version\": 1}", "rank is empty"},
        {"{\"rates_version\": 1, \"rank\": 3}", "rank: expected an array"},
        {"{\"rates_version\": 1, \"rank\": [3]}", "rank.0: expected an object"},
        {"{\"rates_version\": 1, \"rank\": [{}, {\"read\": 3}]}",
         "rank.1.read: expected an object"},
        {"{\"rates_version\": 1, \"rank\": [{\"read\": {\"median\": -1}}]}", "rank.0.read.median"},
        {"{\"rates_version\": 1, \"rank\": [{\"read\": {\"median\": 1, \"spread\": 0}}]}",
         "rank.0.read.best is missing"},
        {"{\"rates_version\": 1, \"rank\": [{\"product\": {\"bf16\": []}}]}",
         "rank.0.product.bf16: expected an object"},
        {"{\"rates_version\": 1, \"rank\": [{}], \"link\": {\"latency\": [[0, 1]]}}",
         "link.latency: expected 1 rows of 1"},
        {"{\"rates_version\": 1, \"rank\": [{}], \"link\": {\"latency\": [[\"a\"]]}}",
         "link.latency"},
        {"{\"rates_version\": 1, \"rank\": [{}], \"gpu_link\": {\"latency\": [[0, 1]]}}",
         "gpu_link.latency: expected 1 rows of 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fm_rates r = {.n_rank = -7};
        assert_int_equal(fm_rates_parse(&r, bad[i].text, strlen(bad[i].text), "x.json"),
                         FM_E_FORMAT);
        assert_int_equal(r.n_rank, -7);
        if (!strstr(fm_why(), bad[i].why)) fail_msg("\"%s\", not \"%s\"", fm_why(), bad[i].why);
    }
    fm_rates r;
    assert_int_equal(fm_rates_load(&r, "/nowhere/rates.json"), FM_E_IO);
}

static void unknown_members_are_ignored(void **state)
{
    (void)state;
    static const char text[] = "{\"rates_version\": 1, \"new\": 1, \"rank\": [{\"other\": {}}]}";
    fm_rates          r      = {0};
    assert_int_equal(fm_rates_parse(&r, text, strlen(text), "x.json"), FM_OK);
    assert_int_equal(r.n_rank, 1);
    assert_null(r.link);
    fm_rates_fini(&r);
}

static void a_rate_has_median_spread_and_best(void **state)
{
    (void)state;
    double  x[] = {10, 50, 11, 9, 10}, y[] = {10, 50, 11, 9, 10}, one[] = {3};
    fm_rate r = fm_rate_of(x, 5);
    assert_true(r.median == 10 && r.best == 50 && r.n == 5);
    assert_true(r.spread > 1.4 && r.spread < 1.5); /* the 50 does not count */
    assert_true(fm_rate_of_times(y, 5).best == 9);
    assert_true(fm_rate_of(one, 1).median == 3 && fm_rate_of(one, 1).spread == 0);
    assert_int_equal(fm_rate_of(one, 0).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(complaints_name_the_field),
        cmocka_unit_test(unknown_members_are_ignored),
        cmocka_unit_test(a_rate_has_median_spread_and_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
