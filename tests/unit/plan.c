/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "llm/plan/plan.h"

enum { MIB = 1 << 20 };

static fm_plan_request request(void)
{
    return (fm_plan_request){.total       = (size_t)16384 * MIB,
                             .available   = (size_t)10240 * MIB,
                             .page_size   = 16,
                             .max_running = 64,
                             .max_context = 4096,
                             .weights     = (size_t)4096 * MIB,
                             .workspace   = (size_t)1024 * MIB,
                             .kv_page     = (size_t)MIB};
}

static void fills_what_is_free_minus_a_margin(void **state)
{
    (void)state;
    const fm_plan_request q = request();
    fm_plan               p;
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    assert_int_equal(p.budget, (size_t)(10240 - 1024) * MIB); /* a sixteenth of 16 GiB stays */
    assert_int_equal(p.n_page, 4096);
    assert_int_equal(p.max_tokens, 4096 * 16);
    assert_true(p.weights + p.workspace + p.kv <= p.budget);
}

static void takes_no_more_than_can_be_used(void **state)
{
    (void)state;
    fm_plan_request q = request();
    fm_plan         p;
    q.max_running = 2;
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    assert_int_equal(p.n_page, 2 * 4096 / 16);
}

static void honours_the_flags(void **state)
{
    (void)state;
    fm_plan_request q = request();
    fm_plan         p;
    q.max_total_tokens = 1000;
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    assert_int_equal(p.n_page, 63);
    q.max_total_tokens = 0;
    q.mem_fraction     = 0.5;
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    assert_int_equal(p.n_page, 8192 - 5120);
    q.mem_fraction = 1.0; /* more than is available: what is available */
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    assert_int_equal(p.n_page, 10240 - 5120);
}

static void refuse(const fm_plan_request *q, const char *words, const char *more)
{
    fm_plan p = {.n_page = -7};
    assert_int_equal(fm_plan_make(&p, q), FM_E_OOM);
    assert_int_equal(p.n_page, -7);
    if (!strstr(fm_why(), words) || !strstr(fm_why(), more)) fail_msg("%s", fm_why());
}

static void says_what_would_make_it_fit(void **state)
{
    (void)state;
    fm_plan_request q = request();
    q.weights         = (size_t)10000 * MIB; /* beside them 9216 - 1025 MiB */
    q.n_layer         = 60;
    q.limited_by      = "; the control group /job allows 9.50 GiB";
    refuse(&q, "0.77 GiB more", "{\"num_hidden_layers\": 49}");
    refuse(&q, "about 2 ranks", "for everything; the control group /job allows 9.50 GiB;");
    assert_null(strstr(fm_why(), "mem-fraction"));
    q.n_rank = 8; /* of which each has so much */
    refuse(&q, "about 10 ranks", "--tp-size");

    q           = request();
    q.workspace = (size_t)6144 * MIB;
    refuse(&q, "1.00 GiB over", "--chunked-prefill-size");
    q.chunk_fits = 512;
    refuse(&q, "1.00 GiB over", "--chunked-prefill-size 512 fits");

    q                  = request();
    q.max_total_tokens = 100000;
    refuse(&q, "--max-total-tokens 65536 fits", "2.10 GiB more");

    q.mem_fraction = 0.4;
    refuse(&q, "fits", "raise --mem-fraction-static");
}

static void prints_a_table(void **state)
{
    (void)state;
    const fm_plan_request q = request();
    fm_plan               p;
    fm_str                s = {0};
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    fm_plan_print(&p, &s);
    assert_string_equal(s.text, "memory plan       MiB   in main memory\n"
                                "  weights        4096\n"
                                "  workspace      1024\n"
                                "  reserve        1024   the rest of the machine\n"
                                "  KV pages       4096   65536 tokens in 4096 pages of 16, bfloat16\n"
                                "  in all        10240   of 10240 free\n");
    fm_str_fini(&s);
}

/* What a GPU's engine takes in main memory has a line of its own and is in no sum. */
static void prints_main_memory_beside_a_gpu(void **state)
{
    (void)state;
    fm_plan_request q = request();
    fm_plan         p, without;
    fm_str          s = {0};
    assert_int_equal(fm_plan_make(&without, &q), FM_OK);
    q.where    = "on a GPU";
    q.host     = (size_t)64 * MIB;
    q.host_for = "n-grams for drafts";
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    assert_int_equal(p.n_page, without.n_page);
    fm_plan_print(&p, &s);
    assert_non_null(strstr(s.text, "  in all        10240   of 10240 free\n"
                                   "  beside           64   in main memory: n-grams for drafts\n"));
    fm_str_fini(&s);
}

/* Pinned main memory is a line of its own: it is not the device's. */
static void shows_what_is_pinned_for_a_device(void **state)
{
    (void)state;
    const fm_plan_request q = request();
    fm_plan               p;
    fm_str                s = {0};
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    p.pinned         = (size_t)2048 * MIB;
    p.main_available = (size_t)8192 * MIB;
    p.n_host_page    = 1900;
    fm_plan_print(&p, &s);
    assert_non_null(strstr(s.text, "  in all        10240   of 10240 free\n"
                                   "  pinned         2048   in main memory, of 8192 free: 1900 "
                                   "pages of prefixes\n"));
    fm_str_fini(&s);
}

/* Halves of a MiB everywhere: rounded one by one they would not add up. */
static void prints_integers_that_add_up(void **state)
{
    (void)state;
    fm_plan_request q = request();
    fm_plan         p;
    fm_str          s = {0};
    long long       weights, workspace, reserve, kv, all;
    q.where    = "on a GPU";
    q.reserve  = (size_t)1023 * MIB + MIB / 2;
    q.kept_for = "libraries";
    q.kv_page  = MIB - 4096;
    q.weights += MIB / 2;
    q.workspace += MIB / 2;
    assert_int_equal(fm_plan_make(&p, &q), FM_OK);
    assert_true(p.weights + p.workspace + p.kv + p.reserve <= q.available);
    assert_true(p.weights + p.workspace + p.kv + p.reserve + q.kv_page > q.available);
    fm_plan_print(&p, &s);
    assert_int_equal(sscanf(s.text,
                            "memory plan MiB on a GPU weights %lld workspace %lld reserve %lld "
                            "libraries KV pages %lld",
                            &weights, &workspace, &reserve, &kv),
                     4);
    assert_int_equal(sscanf(strstr(s.text, "in all"), "in all %lld", &all), 1);
    assert_int_equal(weights + workspace + reserve + kv, all);
    fm_str_fini(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_what_is_free_minus_a_margin),
        cmocka_unit_test(takes_no_more_than_can_be_used),
        cmocka_unit_test(honours_the_flags),
        cmocka_unit_test(says_what_would_make_it_fit),
        cmocka_unit_test(prints_a_table),
        cmocka_unit_test(prints_main_memory_beside_a_gpu),
        cmocka_unit_test(shows_what_is_pinned_for_a_device),
        cmocka_unit_test(prints_integers_that_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
