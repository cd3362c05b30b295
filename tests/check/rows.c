/* SPDX-License-Identifier: Apache-2.0 */
/* Row and tile operations against their definitions: exactly where they are
 * elementwise, within a bound where they sum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kernel/rows/exp.h"
#include "llm/kernel/rows/rows.h"

enum { MAX_M = 33, MAX_TILE = 4 };

/* Uniform in [-size, size). */
static void fill(float *x, size_t n, uint64_t key, float size)
{
    for (size_t i = 0; i < n; i++) x[i] = ((float)fm_rng_u32(key, i) * 0x1p-31f - 1.0f) * size;
}

static void exp_is_close_and_flushes(void **state)
{
    (void)state;
    for (int i = 0; i < 175000; i++) { /* -87 .. 88 */
        const float  x    = -87.0f + (float)i * 0.001f;
        const double want = exp((double)x);
        if (fabs(fm_exp(x) - want) > 0x1p-21 * want) fail_msg("exp(%g) = %g", x, fm_exp(x));
    }
    assert_true(fm_exp(0.0f) == 1.0f);
    assert_true(fm_exp(-87.5f) == 0.0f && fm_exp(-INFINITY) == 0.0f);
    assert_true(fm_exp(100.0f) == fm_exp(88.0f));
    assert_true(isnan(fm_exp(NAN)));
}

static void tiles_are_stored_where_they_belong(void **state)
{
    (void)state;
    static const int width[] = {32, 31, 16, 1};
    float            c[MAX_M * 32];
    fill(c, MAX_M * 32, 1, 3.0f);
    for (int k = 0; k < 4; k++) {
        fm_bf16 half[MAX_M * 40];
        float   full[MAX_M * 40];
        memset(half, 0xa5, sizeof half);
        memset(full, 0xa5, sizeof full);
        fm_tile_store(half, FM_BF16, 40, c, MAX_M, width[k]);
        fm_tile_store(full, FM_F32, 40, c, MAX_M, width[k]);
        for (int i = 0; i < MAX_M; i++)
            for (int j = 0; j < 40; j++) {
                const int in = j < width[k];
                assert_int_equal(half[i * 40 + j], in ? fm_bf16_of_f32(c[i * 32 + j]) : 0xa5a5);
                assert_int_equal(fm_bits_of_f32(full[i * 40 + j]),
                                 in ? fm_bits_of_f32(c[i * 32 + j]) : 0xa5a5a5a5);
            }
    }
}

static void rows_are_scaled_as_they_are_stored(void **state)
{
    (void)state;
    static const int width[] = {1, 15, 128, 200};
    float            x[200], y[200];
    fill(x, 200, 9, 3.0f);
    for (int k = 0; k < 4; k++)
        for (int a = 0; a < 2; a++) {
            const fm_dtype t     = a ? FM_BF16 : FM_F32;
            const size_t   bytes = (size_t)width[k] * fm_dtype_bytes(t);
            char           got[201 * sizeof(float)], want[200 * sizeof(float)];
            memset(got, 0xa5, sizeof got);
            memcpy(y, x, sizeof y);
            fm_row_scale(y, 0.37f, width[k]);
            fm_row_store(want, t, y, width[k]);
            fm_row_store_scaled(got, t, x, 0.37f, width[k]);
            assert_memory_equal(got, want, bytes);
            assert_int_equal((unsigned char)got[bytes], 0xa5);
        }
}

/* To places in any order, some of them between lines. */
static void tiles_are_scattered(void **state)
{
    (void)state;
    enum { APART = 48 }; /* floats: three lines */
    _Alignas(64) float room[MAX_M * APART + 16];
    float              c[MAX_M * 32];
    void              *to[MAX_M];
    fill(c, MAX_M * 32, 8, 3.0f);
    for (int a = 0; a < 2; a++) {
        const fm_dtype t = a ? FM_BF16 : FM_F32;
        memset(room, 0xa5, sizeof room);
        for (int i = 0; i < MAX_M; i++) to[i] = room + (i * 7 + 3) % MAX_M * APART + i % 2 * 4;
        fm_tile_scatter(to, t, c, MAX_M);
        fm_scatter_end();
        for (int i = 0; i < MAX_M; i++) {
            char         want[32 * sizeof(float)];
            const size_t bytes = 32 * fm_dtype_bytes(t);
            fm_row_store(want, t, c + i * 32, 32);
            assert_memory_equal(to[i], want, bytes);
            for (size_t b = bytes; b < bytes + 32; b++)
                assert_int_equal(((unsigned char *)to[i])[b], 0xa5);
        }
    }
}

static void scale_add_rounds_twice(void **state)
{
    (void)state;
    float y[MAX_M * 64], want[MAX_M * 64], a[MAX_M], c[MAX_M * 32];
    fill(y, MAX_M * 64, 2, 2.0f);
    fill(a, MAX_M, 3, 1.0f);
    fill(c, MAX_M * 32, 4, 5.0f);
    memcpy(want, y, sizeof want);
    for (int i = 0; i < MAX_M; i++)
        for (int j = 0; j < 32; j++) {
            volatile float product = want[i * 64 + j] * a[i]; /* never part of an fma */
            want[i * 64 + j]       = product + c[i * 32 + j];
        }
    fm_tile_scale_add(y, 64, a, c, MAX_M);
    assert_memory_equal(y, want, sizeof want);
}

static void rotation_turns_pairs(void **state)
{
    (void)state;
    float cos_of[32], sin_of[32], x[64], y[64];
    for (int i = 0; i < 32; i++) cos_of[i] = cosf((float)i), sin_of[i] = sinf((float)i);
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        fill(x, 64, 5, 1.0f);
        memcpy(y, x, sizeof y);
        fm_row_rotate(y, cos_of, sin_of, 64, interleaved);
        for (int i = 0; i < 32; i++) {
            const int    p = interleaved ? 2 * i : i, q = interleaved ? 2 * i + 1 : i + 32;
            const double a = x[p], b = x[q], c = cos_of[i], s = sin_of[i];
            assert_true(fabs(y[p] - (a * c - b * s)) < 1e-6);
            assert_true(fabs(y[q] - (a * s + b * c)) < 1e-6);
        }
    }
}

static void rotation_in_bf16_rounds_once(void **state)
{
    (void)state;
    enum { N = 64 };
    float   cos_of[N / 2], sin_of[N / 2], x[N], whole[N];
    fm_bf16 half[N], want[N];
    for (int i = 0; i < N / 2; i++) cos_of[i] = cosf((float)i), sin_of[i] = sinf((float)i);
    for (int n = 2; n <= N; n += 2)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            fill(x, N, (uint64_t)n, 3.0f);
            x[n / 2] = n % 4 ? NAN : INFINITY;
            fm_row_store(half, FM_BF16, x, N);
            fm_row_load(whole, FM_BF16, half, N);
            fm_row_rotate(whole, cos_of, sin_of, n, interleaved);
            fm_row_store(want, FM_BF16, whole, N);
            fm_row_rotate_bf16(half, cos_of, sin_of, n, interleaved);
            assert_memory_equal(half, want, sizeof want);
        }
}

static void swiglu_gates(void **state)
{
    (void)state;
    static float c[MAX_M * 32];
    fm_bf16      half[MAX_M * 20];
    float        full[MAX_M * 20];
    fill(c, MAX_M * 32, 7, 20.0f);
    c[0] = -300.0f, c[1] = 300.0f, c[2] = 0.0f, c[3] = -85.0f;
    memset(half, 0xa5, sizeof half);
    fm_tile_swiglu(half, FM_BF16, 20, c, MAX_M);
    fm_tile_swiglu(full, FM_F32, 20, c, MAX_M);
    for (int i = 0; i < MAX_M; i++) {
        for (int j = 0; j < 16; j++) {
            const double x = c[i * 32 + j], want = x / (1 + exp(-x)) * c[i * 32 + 16 + j];
            assert_true(fabs(full[i * 20 + j] - want) <= 0x1p-20 * fabs(want) + 1e-30);
            assert_true(fabs(fm_f32_of_bf16(half[i * 20 + j]) - want) <=
                        (0x1p-8 + 0x1p-19) * fabs(want) + 1e-30);
        }
        for (int j = 16; j < 20; j++) assert_int_equal(half[i * 20 + j], 0xa5a5);
    }
}

typedef struct {
    fm_dtype type; /* of p */
    float    p[MAX_M * MAX_TILE * 32], max[MAX_M], sum[MAX_M], alpha[MAX_M];
} softmax_state;

static float scores[2][MAX_TILE * MAX_M * 32];

/* Rows [row, row+m) of the two blocks, one after the other. */
static void run_softmax(softmax_state *s, int row, int m, const int visible[2][MAX_M])
{
    static float tiles[MAX_TILE * MAX_M * 32];
    for (int i = 0; i < m; i++) s->max[i] = -INFINITY, s->sum[i] = 0;
    for (int block = 0; block < 2; block++) {
        for (int t = 0; t < MAX_TILE; t++)
            memcpy(tiles + t * m * 32, scores[block] + (t * MAX_M + row) * 32,
                   (size_t)m * 32 * sizeof(float));
        fm_tile_softmax(&(fm_softmax_step){.m = m, .n_tile = MAX_TILE, .score = tiles,
                                           .scale = 0.125f, .n_visible = visible[block] + row,
                                           .type = s->type, .weight = s->p, .max = s->max,
                                           .sum = s->sum, .alpha = s->alpha});
    }
}

static const char *weights_of(const softmax_state *s, int i)
{
    return (const char *)s->p + (size_t)i * MAX_TILE * 32 * fm_dtype_bytes(s->type);
}

static double weight_of(int block, int row, int key, double max)
{
    return exp(0.125 * scores[block][(key / 32 * MAX_M + row) * 32 + key % 32] - max);
}

/* Of both blocks, in double precision, under the maximum that was found. */
static void check_row(const softmax_state *s, int i, const int visible[2][MAX_M])
{
    double sum = 0, top = -INFINITY;
    for (int block = 0; block < 2; block++)
        for (int k = 0; k < visible[block][i]; k++) {
            sum += weight_of(block, i, k, s->max[i]);
            top = fmax(top, log(weight_of(block, i, k, 0)));
        }
    assert_true(fabs(s->max[i] - top) < 1e-5);
    assert_true(fabs(s->sum[i] - sum) < 1e-5 * sum);
    for (int k = 0; k < MAX_TILE * 32; k++) {
        float p;
        fm_row_load(&p, s->type, weights_of(s, i) + (size_t)k * fm_dtype_bytes(s->type), 1);
        if (k >= visible[1][i])
            assert_true(p == 0.0f);
        else
            assert_true(fabs(p - weight_of(1, i, k, s->max[i])) <
                        (s->type == FM_F32 ? 1e-5 : 0x1p-9 + 1e-5));
    }
}

static void check_softmax(fm_dtype type)
{
    static softmax_state all, one;
    int                  visible[2][MAX_M];
    all.type = one.type = type;
    for (int block = 0; block < 2; block++)
        fill(scores[block], MAX_TILE * MAX_M * 32, 6 + (uint64_t)block, 60.0f);
    for (int i = 0; i < MAX_M; i++) {
        visible[0][i] = 1 + i * 127 / (MAX_M - 1);  /* 1 .. 128 */
        visible[1][i] = -3 + i * 131 / (MAX_M - 1); /* none for the first */
    }
    run_softmax(&all, 0, MAX_M, (const int(*)[MAX_M])visible);
    assert_true(all.alpha[0] == 1.0f);
    for (int i = 0; i < MAX_M; i++) {
        check_row(&all, i, (const int(*)[MAX_M])visible);
        run_softmax(&one, i, 1, (const int(*)[MAX_M])visible); /* alone, the same bits */
        assert_memory_equal(one.p, weights_of(&all, i), MAX_TILE * 32 * fm_dtype_bytes(type));
        assert_memory_equal(one.sum, all.sum + i, sizeof(float));
        assert_memory_equal(one.alpha, all.alpha + i, sizeof(float));
    }
}

static void softmax_over_blocks(void **state)
{
    (void)state;
    check_softmax(FM_F32);
    check_softmax(FM_BF16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_close_and_flushes),
        cmocka_unit_test(tiles_are_stored_where_they_belong),
        cmocka_unit_test(rows_are_scaled_as_they_are_stored),
        cmocka_unit_test(tiles_are_scattered),
        cmocka_unit_test(scale_add_rounds_twice),
        cmocka_unit_test(rotation_turns_pairs),
        cmocka_unit_test(rotation_in_bf16_rounds_once),
        cmocka_unit_test(swiglu_gates),
        cmocka_unit_test(softmax_over_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
