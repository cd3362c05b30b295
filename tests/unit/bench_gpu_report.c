/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the GPU benchmark: ceilings are taken over as they come, and the
 * JSON file has everything. */
#define _GNU_SOURCE /* mkstemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/cuda/report.h"

static fm_gpu_result time_of(const char *section, const char *name, double us, double bytes,
                             double flop)
{
    fm_gpu_result x = {.us = us, .bytes = bytes, .flop = flop, .bound_us = us / 2, .tokens = 3};
    snprintf(x.section, sizeof x.section, "%s", section);
    snprintf(x.name, sizeof x.name, "%s", name);
    return x;
}

static void add(fm_gpu_report *r, fm_gpu_result x) { fm_gpu_report_add(r, &x); }

static void measured_ceilings_replace_the_usual_ones(void **state)
{
    fm_gpu_report r = {.commit = "c", .ceilings = fm_roof_h200};
    (void)state;
    add(&r, time_of("linear", FM_GPU_BF16, 1, 0, 1)); /* no ceiling: another section */
    assert_true(r.ceilings.bf16 == fm_roof_h200.bf16);
    add(&r, time_of("ceilings", FM_GPU_COPY, 2, 8e6, 0));
    assert_true(r.ceilings.bandwidth == 4e12);
    add(&r, time_of("ceilings", FM_GPU_READ, 2, 6e6, 0)); /* the larger of the two counts */
    assert_true(r.ceilings.bandwidth == 4e12);
    add(&r, time_of("ceilings", FM_GPU_READ, 2, 9e6, 0));
    assert_true(r.ceilings.bandwidth == 4.5e12);
    add(&r, time_of("ceilings", FM_GPU_BF16, 4, 0, 2.8e9));
    add(&r, time_of("ceilings", FM_GPU_FP8, 4, 0, 4.8e9));
    assert_true(r.ceilings.bf16 == 7e14 && r.ceilings.fp8 == 1.2e15);
    fm_gpu_report_fini(&r);
}

static void many_results_are_written_as_json(void **state)
{
    char          path[] = "/tmp/fathom-report-XXXXXX";
    const int     fd     = mkstemp(path);
    fm_gpu_report r      = {.commit = "abc", .ceilings = fm_roof_h200};
    fm_gpu_result gpu    = {
           .section = "device", .name = "GPU", .shape = "H200", .value = 132, .unit = "SMs"};
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    fm_gpu_report_add(&r, &gpu);
    for (int i = 0; i < 1000; i++) add(&r, time_of("linear", "tiles", 10, 100, 1000));
    fm_gpu_report_fault(&r, "r1-fp8", "took too long");
    assert_int_equal(fm_gpu_report_json(&r, path), FM_OK);

    json_t *all = json_load_file(path, 0, NULL), *list = json_object_get(all, "results");
    assert_string_equal(json_string_value(json_object_get(all, "gpu")), "H200");
    assert_string_equal(json_string_value(json_object_get(all, "commit")), "abc");
    assert_string_equal(json_string_value(json_object_get(all, "fault")), "r1-fp8: took too long");
    assert_int_equal(json_array_size(list), 1001);
    const json_t *one = json_array_get(list, 1000);
    assert_true(json_number_value(json_object_get(one, "percent")) == 50);
    assert_true(json_number_value(json_object_get(one, "tokens_per_second")) == 3e5);
    assert_null(json_object_get(one, "T"));
    assert_true(json_number_value(json_object_get(json_array_get(list, 0), "value")) == 132);
    json_decref(all);
    unlink(path);
    fm_gpu_report_fini(&r);
}

/* Eight columns in every row, whatever a result has. */
static void tables_have_as_many_cells_as_their_heads(void **state)
{
    char          path[] = "/tmp/fathom-report-XXXXXX", line[512];
    const int     fd     = mkstemp(path);
    fm_gpu_report r      = {.commit = "abc", .ceilings = fm_roof_h200};
    fm_gpu_result fact   = {.section = "device", .name = "L2", .value = 60, .unit = "MiB"};
    int           rows   = 0;
    (void)state;
    assert_true(fd >= 0);
    close(fd);
    fm_gpu_report_add(&r, &fact);
    add(&r, time_of("linear", "tiles", 10, 100, 1000));
    add(&r, time_of("linear", "tiles", 10, 0, 0));
    assert_int_equal(fm_gpu_report_markdown(&r, path), FM_OK);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        int bars = 0;
        for (const char *p = line; *p; p++) bars += *p == '|';
        if (line[0] != '|') continue;
        assert_int_equal(bars, 9);
        rows++;
    }
    assert_int_equal(rows, 3 + 2 * 2);
    fclose(f);
    unlink(path);
    fm_gpu_report_fini(&r);
}

static void many_faults_do_not_overflow(void **state)
{
    fm_gpu_report r = {.commit = "c"};
    (void)state;
    for (int i = 0; i < 100; i++) fm_gpu_report_fault(&r, "experts", "ended early");
    assert_int_equal(strlen(r.fault), sizeof r.fault - 1);
    assert_int_equal(fm_gpu_report_json(&r, "/nowhere/at/all"), FM_E_IO);
    fm_gpu_report_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured_ceilings_replace_the_usual_ones),
        cmocka_unit_test(many_results_are_written_as_json),
        cmocka_unit_test(tables_have_as_many_cells_as_their_heads),
        cmocka_unit_test(many_faults_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
