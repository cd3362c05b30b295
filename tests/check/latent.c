/* SPDX-License-Identifier: Apache-2.0 */
/* Every variant of attention in the latent space against its contract. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kernel/latent/latent.h"

#ifndef FM_AMX_EMULATED
#define FM_AMX_EMULATED 0
#endif

enum { LANES = FM_LATENT_LANES, KEYS = FM_LATENT_KEYS };
enum { MAX_WIDTH = 576, VARIANTS = 4, GUARD = 0xa5 };

#define LENGTH(a) (sizeof(a) / sizeof *(a))

static const int some_n[]     = {1, 2, 7, 31, 32, 33, 100, 255, 256};
static const int some_heads[] = {1, 7, 8, 9, 16};
static const int some_width[] = {32, 96, 160, 576};

/* One problem: values as they are meant and as they are stored. */
static struct {
    fm_dtype    type;
    int         width;
    float       q[LANES][MAX_WIDTH], token[KEYS][MAX_WIDTH], p[KEYS][LANES];
    char        q_stored[LANES][MAX_WIDTH * 4];
    char        token_stored[KEYS * (MAX_WIDTH * 4 + 4)];
    const void *q_row[LANES], *row[KEYS];
    _Alignas(64) char lanes[LANES * MAX_WIDTH * 4];
    _Alignas(64) char weight[KEYS * LANES * 4];
} t;

/* With guard bytes behind them that must not change. */
static _Alignas(64) float score[KEYS * LANES + 16], other_score[KEYS * LANES + 16];
static _Alignas(64) float z[LANES * MAX_WIDTH + 16], other_z[LANES * MAX_WIDTH + 16];

static float number(uint64_t key, uint64_t i) /* [-2, 2), many magnitudes */
{
    const uint32_t u = fm_rng_u32(key, i);
    return ldexpf((float)(int32_t)u, -30 - (int)(fm_mix32(u) % 6));
}

static size_t put(void *to, float *value)
{
    const fm_bf16 b = fm_bf16_of_f32(*value);
    if (t.type == FM_F32) {
        memcpy(to, value, 4);
        return 4;
    }
    memcpy(to, &b, 2);
    *value = fm_f32_of_bf16(b);
    return 2;
}

/* Pages of 16 tokens, or places at uneven distances. */
static void place_tokens(int uneven)
{
    char *to = t.token_stored;
    for (int i = 0; i < KEYS; i++) {
        t.row[i] = to;
        for (int d = 0; d < t.width; d++) to += put(to, &t.token[i][d]);
        if (uneven && i % 5 == 3) to += fm_dtype_bytes(t.type);
    }
}

/* Weights as `weigh` lays them out. */
static void place_weights(void)
{
    for (int i = 0; i < KEYS; i++)
        for (int h = 0; h < LANES; h++) {
            const int at = t.type == FM_F32 ? i * LANES + h : (i / 2 * LANES + h) * 2 + i % 2;
            put(t.weight + (size_t)at * fm_dtype_bytes(t.type), &t.p[i][h]);
        }
}

static void fill(fm_dtype type, int width)
{
    t.type  = type;
    t.width = width;
    for (int h = 0; h < LANES; h++) {
        t.q_row[h] = t.q_stored[h];
        for (int d = 0; d < width; d++) {
            t.q[h][d] = number(1, (uint64_t)(h * width + d));
            put(t.q_stored[h] + (size_t)d * fm_dtype_bytes(type), &t.q[h][d]);
        }
    }
    for (int i = 0; i < KEYS; i++)
        for (int d = 0; d < width; d++) t.token[i][d] = number(2, (uint64_t)(i * width + d));
    place_tokens(0);
}

/* Weights of n tokens and zeros behind them. */
static void weights_of(int n)
{
    for (int i = 0; i < KEYS; i++)
        for (int h = 0; h < LANES; h++)
            t.p[i][h] = i < n ? fabsf(number(3, (uint64_t)(i * LANES + h))) : 0;
    place_weights();
}

static int whole(int n)
{
    return (int)fm_round_up((size_t)n, FM_LATENT_STEP);
}

static void untouched(const float *from)
{
    for (size_t i = 0; i < 16 * sizeof *from; i++)
        assert_int_equal(((const unsigned char *)from)[i], GUARD);
}

static const fm_latent *variant(void **state)
{
    const fm_latent *v       = *state;
    const int        emulate = FM_AMX_EMULATED && v->isa == FM_ISA_AMX;
    if (fm_cpu_detects(emulate ? FM_ISA_AVX512 : v->isa)) return v;
    print_message("this CPU has no %s\n", fm_isa_name(v->isa));
    skip();
    return NULL;
}

static void run_score(const fm_latent_fns *f, float *to, int heads, int n)
{
    memset(t.lanes, GUARD, sizeof t.lanes);
    memset(to, GUARD, sizeof score);
    f->pack(t.lanes, t.q_row, heads, t.width);
    f->score(to, t.lanes, t.row, n, t.width);
    untouched(to + whole(n) * LANES);
}

static void run_value(const fm_latent_fns *f, float *to, int heads, int n)
{
    memset(to, GUARD, sizeof z);
    f->value(to, t.weight, t.row, n, heads, t.width);
    untouched(to + LANES * t.width);
}

static void bounded(float got, double sum, double magnitude, int k)
{
    if (!(fabs(got - sum) <= k * 0x1p-23 * magnitude))
        fail_msg("type=%d width=%d: %g, exact %g", t.type, t.width, got, sum);
}

static void check_score(int heads, int n)
{
    for (int i = 0; i < n; i++)
        for (int h = 0; h < LANES; h++) {
            double sum = 0, magnitude = 0;
            for (int d = 0; h < heads && d < t.width; d++) {
                const double term = (double)t.q[h][d] * (double)t.token[i][d];
                sum += term;
                magnitude += fabs(term);
            }
            bounded(score[i * LANES + h], sum, magnitude, t.width);
        }
}

static void check_value(int heads, int n)
{
    for (int h = 0; h < heads; h++)
        for (int d = 0; d < t.width; d++) {
            double sum = 0, magnitude = 0;
            for (int i = 0; i < n; i++) {
                const double term = (double)t.p[i][h] * (double)t.token[i][d];
                sum += term;
                magnitude += fabs(term);
            }
            bounded(z[h * t.width + d], sum, magnitude, n > 1 ? n : 2);
        }
}

static void check_shape(const fm_latent_fns *f, int heads, int n)
{
    weights_of(n);
    run_score(f, score, heads, n);
    check_score(heads, n);
    run_value(f, z, heads, n);
    check_value(heads, n);
}

static void check_type(void **state, fm_dtype type)
{
    const fm_latent_fns *f = fm_latent_for(variant(state), type);
    for (size_t a = 0; a < LENGTH(some_width); a++) {
        fill(type, some_width[a]);
        for (size_t b = 0; b < LENGTH(some_n); b++)
            check_shape(f, some_heads[b % LENGTH(some_heads)], some_n[b]);
        for (size_t b = 0; b < LENGTH(some_heads); b++) check_shape(f, some_heads[b], 40);
    }
}

static void bf16_obeys_contract(void **state)
{
    check_type(state, FM_BF16);
}

static void f32_obeys_contract(void **state)
{
    check_type(state, FM_F32);
}

/* Fewer tokens, tokens elsewhere in memory and fewer heads: the same bits. */
static void check_company(const fm_latent_fns *f)
{
    const size_t line = (size_t)t.width * sizeof(float);
    weights_of(100);
    run_score(f, score, LANES, 100);
    run_value(f, z, LANES, 100);
    place_tokens(1);
    run_score(f, other_score, LANES, 100);
    run_value(f, other_z, LANES, 100);
    assert_memory_equal(score, other_score, 100 * LANES * sizeof *score);
    assert_memory_equal(z, other_z, LANES * line);
    run_score(f, other_score, LANES, 33);
    assert_memory_equal(score, other_score, 33 * LANES * sizeof *score);
    run_score(f, other_score, 3, 100);
    run_value(f, other_z, 3, 100);
    for (int i = 0; i < 100; i++)
        assert_memory_equal(score + i * LANES, other_score + i * LANES, 3 * sizeof *score);
    assert_memory_equal(z, other_z, 3 * line);
}

/* Heads in other lanes, tokens in other places, others behind the end. */
static void check_order(const fm_latent_fns *f)
{
    const void *q[LANES], *row[KEYS];
    const int   n = 100;
    memcpy(q, t.q_row, sizeof q);
    memcpy(row, t.row, sizeof row);
    for (int h = 0; h < LANES; h++) t.q_row[h] = q[LANES - 1 - h];
    for (int i = 0; i < n; i++) t.row[i] = row[n - 1 - i];
    run_score(f, other_score, LANES, n);
    for (int i = 0; i < n; i++)
        for (int h = 0; h < LANES; h++)
            assert_memory_equal(&score[i * LANES + h],
                                &other_score[(n - 1 - i) * LANES + LANES - 1 - h], sizeof *score);
    memcpy(t.row, row, sizeof row);
    for (int i = n; i < whole(n); i++) t.row[i] = row[0];
    for (int i = 0; i < n; i++)
        for (int h = 0; h < LANES / 2; h++) {
            const float swap        = t.p[i][h];
            t.p[i][h]               = t.p[i][LANES - 1 - h];
            t.p[i][LANES - 1 - h] = swap;
        }
    place_weights();
    run_value(f, other_z, LANES, n);
    for (int h = 0; h < LANES; h++)
        assert_memory_equal(z + h * t.width, other_z + (LANES - 1 - h) * t.width,
                            (size_t)t.width * sizeof *z);
}

static void bits_do_not_depend_on_company(void **state)
{
    static const fm_dtype type[] = {FM_BF16, FM_F32};
    const fm_latent      *v      = variant(state);
    for (size_t a = 0; a < LENGTH(type); a++)
        for (size_t b = 0; b < LENGTH(some_width); b++) {
            fill(type[a], some_width[b]);
            check_company(fm_latent_for(v, type[a]));
            check_order(fm_latent_for(v, type[a]));
        }
}

static float weight_at(int i, int h)
{
    fm_bf16 b;
    float   x;
    memcpy(&x, t.weight + (size_t)(i * LANES + h) * 4, 4);
    memcpy(&b, t.weight + (size_t)((i / 2 * LANES + h) * 2 + i % 2) * 2, 2);
    return t.type == FM_F32 ? x : fm_f32_of_bf16(b);
}

static void check_weights(const fm_latent_fns *f, int n, float size)
{
    static _Alignas(64) float at[KEYS * LANES];
    const float               scale = 0.13f, half = t.type == FM_F32 ? 0 : 0x1p-8f;
    float                     max[LANES], sum[LANES];
    for (int i = 0; i < whole(n) * LANES; i++) at[i] = number(4, (uint64_t)(i + n)) * size;
    memcpy(score, at, sizeof at);
    memset(t.weight, GUARD, sizeof t.weight);
    f->weigh(t.weight, score, n, scale, max, sum);
    for (int h = 0; h < LANES; h++) {
        float  top = at[h] * scale;
        double all = 0;
        for (int i = 1; i < n; i++) top = fmaxf(top, at[i * LANES + h] * scale);
        assert_true(max[h] == top);
        for (int i = 0; i < n; i++) {
            const double x = (double)at[i * LANES + h] * scale - top, want = exp(x);
            all += want;
            /* x itself is known to the last bit of the scaled score */
            const double slack = 0x1p-20 + half + fabs(x + top) * 0x1p-23;
            assert_true(fabs(weight_at(i, h) - want) <= slack * want + 0x1p-120);
        }
        assert_true(fabs(sum[h] - all) <= (0x1p-20 + size * 0x1p-23 + n * 0x1p-24) * all);
        for (int i = n; i < whole(n); i++) assert_true(weight_at(i, h) == 0);
    }
}

static void weights_are_softmax(void **state)
{
    static const fm_dtype type[] = {FM_BF16, FM_F32};
    const fm_latent      *v      = variant(state);
    for (size_t a = 0; a < LENGTH(type); a++)
        for (size_t b = 0; b < LENGTH(some_n); b++) {
            t.type = type[a];
            check_weights(fm_latent_for(v, type[a]), some_n[b], 1.0f);
            check_weights(fm_latent_for(v, type[a]), some_n[b], 40.0f);
            check_weights(fm_latent_for(v, type[a]), some_n[b], 3000.0f);
        }
}

/* Minus infinity weighs nothing, a NaN shows, in its own lane alone. */
static void weights_of_odd_scores(void **state)
{
    const fm_latent *v = variant(state);
    for (int a = 0; a < 2; a++) {
        float max[LANES], sum[LANES];
        t.type = a ? FM_F32 : FM_BF16;
        for (int i = 0; i < 32 * LANES; i++) score[i] = number(5, (uint64_t)i);
        score[5 * LANES + 3] = -INFINITY;
        score[6 * LANES + 4] = NAN;
        fm_latent_for(v, t.type)->weigh(t.weight, score, 32, 1.0f, max, sum);
        assert_true(weight_at(5, 3) == 0);
        assert_true(isnan(weight_at(6, 4)) && isnan(sum[4]));
        for (int h = 0; h < LANES; h++) assert_true(h == 4 || (sum[h] >= 1 && sum[h] <= 32));
    }
}

static void pack_has_the_drawn_layout(void **state)
{
    const fm_latent *v = variant(state);
    for (int a = 0; a < 2; a++) {
        const fm_dtype type = a ? FM_F32 : FM_BF16;
        const size_t   size = fm_dtype_bytes(type);
        const char     zero[4] = {0};
        fill(type, 96);
        memset(t.lanes, GUARD, sizeof t.lanes);
        fm_latent_for(v, type)->pack(t.lanes, t.q_row, 5, 96);
        for (int h = 0; h < LANES; h++)
            for (int d = 0; d < 96; d++) {
                const int at = a ? d * LANES + h : (d / 2 * LANES + h) * 2 + d % 2;
                assert_memory_equal(t.lanes + (size_t)at * size,
                                    h < 5 ? t.q_stored[h] + (size_t)d * size : zero, size);
            }
        assert_int_equal((unsigned char)t.lanes[96 * LANES * size], GUARD);
    }
}

static void table_is_best_first_and_ends_with_ref(void **state)
{
    (void)state;
    size_t           count;
    const fm_latent *all = fm_latent_all(&count);
    assert_int_equal(count, VARIANTS);
    assert_int_equal(all[count - 1].isa, FM_ISA_REF);
    for (size_t i = 1; i < count; i++) assert_true(all[i].isa < all[i - 1].isa);
    assert_true(fm_latent_pick()->isa <= fm_cpu_isa());
}

int main(void)
{
    static const struct CMUnitTest each[] = {
        cmocka_unit_test(pack_has_the_drawn_layout),
        cmocka_unit_test(bf16_obeys_contract),
        cmocka_unit_test(f32_obeys_contract),
        cmocka_unit_test(bits_do_not_depend_on_company),
        cmocka_unit_test(weights_are_softmax),
        cmocka_unit_test(weights_of_odd_scores),
    };
    static char       name[VARIANTS * LENGTH(each)][64];
    struct CMUnitTest tests[VARIANTS * LENGTH(each) + 1];
    size_t            n   = 0, count;
    const fm_latent  *all = fm_latent_all(&count);

    for (size_t i = 0; i < VARIANTS; i++)
        for (size_t k = 0; k < LENGTH(each); k++, n++) {
            tests[n]               = each[k];
            tests[n].initial_state = (void *)(all + i);
            snprintf(name[n], sizeof name[n], "%s: %s", fm_isa_name(all[i].isa), each[k].name);
            tests[n].name = name[n];
        }
    tests[n] = (struct CMUnitTest)cmocka_unit_test(table_is_best_first_and_ends_with_ref);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
