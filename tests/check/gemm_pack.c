/* SPDX-License-Identifier: Apache-2.0 */
/* Panels: the layouts the header draws, and every variant against ref. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kernel/gemm/gemm.h"

enum { MAX_ROWS = 80, MAX_N = 576, VARIANTS = 2, GUARD = 0xa5 };

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static char        raw[MAX_ROWS][MAX_N * 4 + 4]; /* 4 bytes off: aligned for its type, no more */
static const void *row[MAX_ROWS];
static _Alignas(64) unsigned char got[96 * MAX_N * 4 + 64], want[96 * MAX_N * 4 + 64];

static int fill(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof raw; i++) ((char *)raw)[i] = (char)fm_rng_u32(1, i);
    for (int i = 0; i < MAX_ROWS; i++) row[i] = raw[i] + 4;
    return 0;
}

/* Value (j, k) of a panel, by the drawing in gemm.h. */
static const unsigned char *at(const unsigned char *panel, fm_dtype type, int j, int k)
{
    const int pair = k / 2, which = k % 2, half = j / 16;
    if (type == FM_BF16) return panel + ((pair * 32 + j) * 2 + which) * 2;
    if (type == FM_FP8) return panel + ((pair * 16 + j % 16) * 2 + which) * 2 + half;
    return panel + (k * 32 + j) * 4;
}

static void panel_has_the_drawn_layout(void **state)
{
    (void)state;
    static const fm_dtype type[] = {FM_BF16, FM_FP8, FM_F32};
    static const char     zero[4];
    const void           *some[FM_PANEL];
    for (int j = 0; j < FM_PANEL; j++) some[j] = j == 7 ? NULL : row[j];
    for (size_t t = 0; t < LENGTH(type); t++)
        for (int k = 32; k <= 96; k += 16) { /* 48 and 80 end in zeros */
            const size_t size = fm_dtype_bytes(type[t]);
            const int    full = (int)fm_round_up((size_t)k, 32);
            memset(got, GUARD, sizeof got);
            fm_pack_panel(got, some, type[t], k);
            for (int j = 0; j < FM_PANEL; j++)
                for (int q = 0; q < full; q++) {
                    const char *v =
                        some[j] && q < k ? (const char *)some[j] + (size_t)q * size : zero;
                    assert_memory_equal(at(got, type[t], j, q), v, size);
                }
            assert_int_equal(got[fm_panel_bytes(type[t], full)], GUARD);
        }
}

/* The two values of a byte, by the drawing in gemm.h; the scales behind each 32 k. */
static void int4_panel_has_the_drawn_layout(void **state)
{
    (void)state;
    enum { K = 64, GROUP = 32 * 16 + 64 };
    const uint8_t *bytes[FM_PANEL];
    const fm_bf16 *scale[FM_PANEL];
    for (int j = 0; j < FM_PANEL; j++) {
        bytes[j] = j == 9 ? NULL : row[j];
        scale[j] = (const fm_bf16 *)row[j] + 40;
    }
    memset(got, GUARD, sizeof got);
    fm_pack_int4(got, bytes, scale, K);
    for (int j = 0; j < FM_PANEL; j++)
        for (int k = 0; k < K; k++) {
            const unsigned char *group = got + k / 32 * GROUP;
            const int at   = ((k % 32 / 4 * 16 + j % 16) * 2 + k % 2) * 2 + j / 16;
            const int code = bytes[j] ? bytes[j][k / 2] >> k % 2 * 4 & 15 : 8;
            assert_int_equal(group[at] >> (k % 4 > 1 ? 4 : 0) & 15, (code + 8) & 15);
            fm_bf16 factor;
            memcpy(&factor, group + 32 * 16 + j * 2, 2);
            assert_int_equal(factor, bytes[j] ? scale[j][k / 32] : 0);
        }
    assert_int_equal(fm_panel_bytes(FM_INT4, K), 2 * GROUP);
    assert_int_equal(got[2 * GROUP], GUARD);
}

/* The definition of `across` and `along`, by value. */
static void ref_places_every_value(void **state)
{
    (void)state;
    size_t         count;
    const fm_pack *ref     = fm_pack_all(&count) + VARIANTS - 1;
    const char     zero[4] = {0};
    ref->across_bf16(got, row, 5, 48);
    for (int j = 0; j < 32; j++)
        for (int k = 0; k < 64; k++)
            assert_memory_equal(at(got, FM_BF16, j, k),
                                j < 5 && k < 48 ? (const char *)row[j] + k * 2 : zero, 2);
    ref->along_f32(got, row, 33, 64);
    for (int j = 0; j < 64; j++)
        for (int k = 0; k < 64; k++)
            assert_memory_equal(at(got + (j / 32) * 64 * 32 * 4, FM_F32, j % 32, k),
                                k < 33 ? (const char *)row[k] + j * 4 : zero, 4);
    ref->across_f32(got, row, 17, 32);
    for (int j = 0; j < 32; j++)
        for (int k = 0; k < 32; k++)
            assert_memory_equal(at(got, FM_F32, j, k), j < 17 ? (const char *)row[j] + k * 4 : zero,
                                4);
    ref->along_bf16(got, row, 3, 96);
    for (int j = 0; j < 96; j++)
        for (int k = 0; k < 32; k++)
            assert_memory_equal(at(got + (j / 32) * 32 * 32 * 2, FM_BF16, j % 32, k),
                                k < 3 ? (const char *)row[k] + j * 2 : zero, 2);
}

static void same(fm_pack_fn *f, fm_pack_fn *ref, int m, int n)
{
    memset(got, GUARD, sizeof got);
    memset(want, GUARD, sizeof want);
    f(got, row, m, n);
    ref(want, row, m, n);
    if (memcmp(got, want, sizeof got) != 0) fail_msg("m=%d n=%d", m, n);
}

static void equals_ref(void **state)
{
    static const int across_n[] = {2, 31, 32, 48, 64, 80, 192, 576};
    static const int along_m[]  = {1, 2, 3, 31, 32, 33, 64, 80};
    static const int along_n[]  = {32, 64, 512};
    const fm_pack   *v          = *state;
    size_t           count;
    const fm_pack   *ref = fm_pack_all(&count) + VARIANTS - 1;
    if (!fm_cpu_detects(v->isa)) {
        print_message("this CPU has no %s\n", fm_isa_name(v->isa));
        skip();
    }
    for (int m = 0; m <= FM_PANEL; m++)
        for (size_t b = 0; b < LENGTH(across_n); b++) {
            same(v->across_bf16, ref->across_bf16, m, across_n[b]);
            same(v->across_fp8, ref->across_fp8, m, across_n[b]);
            same(v->across_f32, ref->across_f32, m, across_n[b]);
        }
    for (size_t a = 0; a < LENGTH(along_m); a++)
        for (size_t b = 0; b < LENGTH(along_n); b++) {
            same(v->along_bf16, ref->along_bf16, along_m[a], along_n[b]);
            same(v->along_f32, ref->along_f32, along_m[a], along_n[b]);
        }
}

int main(void)
{
    size_t                  count;
    const fm_pack          *all     = fm_pack_all(&count);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panel_has_the_drawn_layout),
        cmocka_unit_test(int4_panel_has_the_drawn_layout),
        cmocka_unit_test(ref_places_every_value),
        cmocka_unit_test_prestate(equals_ref, (void *)all),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
