/* SPDX-License-Identifier: Apache-2.0 */
/* The head in bytes: every variant against its definition, and how far that is from exact logits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kernel/draft_head/draft_head.h"

#ifndef FM_AMX_EMULATED
#define FM_AMX_EMULATED 0
#endif

enum { MAX_K = 512, MAX_M = 37, PANELS = 9, GUARD = 0xa5 };

static const int some_k[] = {32, 96, 256, 512};
static const int some_m[] = {1, 2, 3, 4, 5, 8, 9, 16, 17, 37};

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static struct {
    fm_bf16        x[MAX_M][MAX_K], w[PANELS][FM_PANEL][MAX_K];
    fm_bf16        panel[FM_PANEL * MAX_K];
    uint8_t        q[MAX_M][MAX_K];
    const uint8_t *row[MAX_M];
    float          row_scale[MAX_M];
    fm_draft_words words[PANELS];
    _Alignas(64) int8_t bytes[PANELS * FM_PANEL * MAX_K];
    fm_draft_head  head;
} t;

static float got[(PANELS * MAX_M + 1) * FM_PANEL], want[PANELS * MAX_M * FM_PANEL];

static float number(uint64_t key, uint64_t i) /* [-2, 2) */
{
    return ldexpf((float)(int32_t)fm_rng_u32(key, i), -30);
}

static void pack(int p, int k)
{
    const void *row[FM_PANEL];
    for (int j = 0; j < FM_PANEL; j++) {
        for (int i = 0; i < k; i++)
            t.w[p][j][i] = fm_bf16_of_f32(number(1, (uint64_t)((p * FM_PANEL + j) * MAX_K + i)));
        row[j] = t.w[p][j];
    }
    fm_pack_panel(t.panel, row, FM_BF16, k);
    fm_draft_head_pack(&t.head, p, t.panel);
}

static void fill(int k)
{
    t.head = (fm_draft_head){t.bytes, t.words, k};
    for (int p = 0; p < PANELS; p++) pack(p, k);
    for (int i = 0; i < MAX_M; i++) {
        for (int j = 0; j < k; j++) t.x[i][j] = fm_bf16_of_f32(number(2, (uint64_t)(i * MAX_K + j)));
        t.row_scale[i] = fm_draft_head_row(t.q[i], t.x[i], k);
        t.row[i]       = t.q[i];
    }
}

static double exact(int i, int p, int j)
{
    double sum = 0;
    for (int k = 0; k < t.head.k; k++)
        sum += (double)fm_f32_of_bf16(t.x[i][k]) * (double)fm_f32_of_bf16(t.w[p][j][k]);
    return sum;
}

/* Both factors are rounded to 1/127 of their largest: at most half of that each. */
static void is_close_to_exact_logits(void **state)
{
    (void)state;
    for (size_t a = 0; a < LENGTH(some_k); a++) {
        fill(some_k[a]);
        fm__draft_head_ref(want, t.row, t.row_scale, &t.head, 0, PANELS, MAX_M);
        const double bound = some_k[a] * 2.0 * 2.0 * (1.0 / 127 + 0.25 / 127 / 127);
        for (int p = 0; p < PANELS; p++)
            for (int i = 0; i < MAX_M; i++)
                for (int j = 0; j < FM_PANEL; j++)
                    assert_true(fabs((double)want[(p * MAX_M + i) * FM_PANEL + j] -
                                     exact(i, p, j)) <= bound);
    }
}

static void check_call(fm_draft_head_fn *f, int first, int n, int m)
{
    const size_t bytes = (size_t)(n * m * FM_PANEL) * sizeof *got;
    memset(got, GUARD, sizeof got);
    f(got, t.row, t.row_scale, &t.head, first, n, m);
    fm__draft_head_ref(want, t.row, t.row_scale, &t.head, first, n, m);
    assert_memory_equal(got, want, bytes);
    for (size_t i = bytes; i < sizeof got; i++)
        assert_int_equal(((const unsigned char *)got)[i], GUARD);
}

static void check_calls(fm_draft_head_fn *f)
{
    for (size_t a = 0; a < LENGTH(some_k); a++) {
        fill(some_k[a]);
        for (size_t b = 0; b < LENGTH(some_m); b++)
            for (int n = 1; n <= PANELS; n++) check_call(f, PANELS - n, n, some_m[b]);
    }
}

static void avx512_has_the_bits_of_the_definition(void **state)
{
    (void)state;
    if (!fm_cpu_detects(FM_ISA_AVX512)) skip();
    check_calls(fm__draft_head_avx512);
}

static void amx_has_the_bits_of_the_definition(void **state)
{
    (void)state;
    if (!fm_cpu_detects(FM_AMX_EMULATED ? FM_ISA_AVX512 : FM_ISA_AMX)) skip();
    check_calls(fm__draft_head_amx);
}

/* Rows in any order: no tile can be loaded from them in place. */
static void rows_may_lie_anywhere(void **state)
{
    (void)state;
    if (!fm_cpu_detects(FM_AMX_EMULATED ? FM_ISA_AVX512 : FM_ISA_AMX)) skip();
    fill(256);
    for (int i = 0; i < MAX_M; i++) t.row[i] = t.q[i * 5 % MAX_M];
    check_call(fm__draft_head_amx, 0, PANELS, MAX_M);
}

/* NaN is no reason to stop, an infinity leaves nothing of the others, zeros give zeros. */
static void rows_of_any_bits_give_numbers(void **state)
{
    (void)state;
    fill(32);
    t.x[0][3]      = 0x7fc0;
    t.x[1][5]      = 0x7f80;
    t.row_scale[0] = fm_draft_head_row(t.q[0], t.x[0], 32);
    t.row_scale[1] = fm_draft_head_row(t.q[1], t.x[1], 32);
    memset(t.x[2], 0, sizeof t.x[2]);
    t.row_scale[2] = fm_draft_head_row(t.q[2], t.x[2], 32);
    for (int i = 0; i < 32; i++) assert_int_equal(t.q[2][i], 128);
    assert_true(isinf(t.row_scale[1]));
    fm__draft_head_ref(want, t.row, t.row_scale, &t.head, 0, 1, 3);
    for (int j = 0; j < FM_PANEL; j++) assert_true(want[2 * FM_PANEL + j] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_close_to_exact_logits),
        cmocka_unit_test(avx512_has_the_bits_of_the_definition),
        cmocka_unit_test(amx_has_the_bits_of_the_definition),
        cmocka_unit_test(rows_may_lie_anywhere),
        cmocka_unit_test(rows_of_any_bits_give_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
