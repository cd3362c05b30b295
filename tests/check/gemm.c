/* SPDX-License-Identifier: Apache-2.0 */
/* Every variant of the matrix kernel this CPU has, against its contract. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kernel/gemm/gemm.h"
#include "llm/kernel/gemm/gemm_few.h"

#ifndef FM_AMX_EMULATED
#define FM_AMX_EMULATED 0
#endif

enum { MAX_M = 256, MAX_K = 1024, VARIANTS = 5, GUARD = 0xa5 };

static const int shape_m[] = {1, 3, 6, 7, 8, 12, 13, 16, 17, 33, 64, 109, 137, 147};
static const int shape_k[] = {32, 96, 128, 160, 320, 672, 1024};

#define LENGTH(a) (sizeof(a) / sizeof *(a))

/* One problem: values as they are meant (wide), as they are stored, packed. */
static struct {
    fm_dtype    type;
    int         k;
    int         scaled; /* x is quantised, too, with factors: the W8A8 product */
    float       x[MAX_M][MAX_K], w[FM_PANEL][MAX_K];
    char        x_stored[MAX_M * (MAX_K * 4 + 2)]; /* rows at odd places */
    char        w_stored[FM_PANEL][MAX_K * 4];
    const void *row[MAX_M];
    float       scale[MAX_K / 128 * 2], x_scale[MAX_M][MAX_K / 128];
    fm_bf16     group_scale[FM_PANEL][MAX_K / 32];
    _Alignas(64) char panel[FM_PANEL * MAX_K * 4];
} p;

static float number(uint64_t key, uint64_t i) /* [-2, 2), many magnitudes */
{
    const uint32_t u = fm_rng_u32(key, i);
    return ldexpf((float)(int32_t)u, -30 - (int)(fm_mix32(u) % 6));
}

static size_t x_bytes(void)
{
    return p.type == FM_F32 ? 4 : 2;
}

static void store(void *to, float *value, fm_dtype type)
{
    if (type == FM_F32) {
        memcpy(to, value, 4);
    } else {
        const fm_bf16 b = fm_bf16_of_f32(*value);
        memcpy(to, &b, 2);
        *value = fm_f32_of_bf16(b);
    }
}

/* A gap of 2 bytes after every row but the first two makes distances uneven. */
static void place_rows(int gaps)
{
    char *to = p.x_stored;
    for (int i = 0; i < MAX_M; i++) {
        p.row[i] = to;
        for (int q = 0; q < p.k; q++, to += x_bytes()) store(to, &p.x[i][q], p.type);
        if (gaps && i > 1) to += x_bytes();
    }
}

static fm_fp8 random_fp8(uint64_t i)
{
    const fm_fp8 b = (fm_fp8)fm_rng_u32(3, i);
    return (b & 0x7f) == 0x7f ? 0 : b; /* no NaN */
}

/* Values -8 ... 7 in w, with a factor for each 32 of a row in group_scale. */
static void pack_int4(void)
{
    const uint8_t *row[FM_PANEL];
    const fm_bf16 *scale[FM_PANEL];
    for (int j = 0; j < FM_PANEL; j++) {
        uint8_t *to = (uint8_t *)p.w_stored[j];
        row[j]      = to;
        scale[j]    = p.group_scale[j];
        for (int q = 0; q < p.k; q += 2)
            to[q / 2] = (uint8_t)((int)p.w[j][q] + 8 + ((int)p.w[j][q + 1] + 8) * 16);
    }
    fm_pack_int4(p.panel, row, scale, p.k);
}

static void pack(void)
{
    const void *row[FM_PANEL];
    for (int j = 0; j < FM_PANEL; j++) row[j] = p.w_stored[j];
    if (p.type == FM_INT4) pack_int4();
    else fm_pack_panel(p.panel, row, p.type, p.k);
}

static void fill(fm_dtype type, int k)
{
    p.type = type;
    p.k    = k;
    for (int i = 0; i < MAX_M; i++)
        for (int q = 0; q < k; q++) p.x[i][q] = number(1, (uint64_t)(i * k + q));
    place_rows(1);
    for (int j = 0; j < FM_PANEL; j++)
        for (int q = 0; q < k; q++)
            if (type == FM_FP8) {
                const fm_fp8 b   = random_fp8((uint64_t)(j * k + q));
                p.w_stored[j][q] = (char)b;
                p.w[j][q]        = fm_f32_of_fp8(b);
            } else if (type == FM_INT4) {
                p.w[j][q] = (float)((int)(fm_rng_u32(5, (uint64_t)(j * k + q)) % 16) - 8);
            } else {
                p.w[j][q] = number(2, (uint64_t)(j * k + q));
                store(p.w_stored[j] + (size_t)q * fm_dtype_bytes(type), &p.w[j][q], type);
            }
    for (int j = 0; j < FM_PANEL; j++)
        for (int g = 0; g < k / 32; g++)
            p.group_scale[j][g] = fm_bf16_of_f32(number(6, (uint64_t)(j * k + g)));
    for (int s = 0; s < fm_panel_scales(k); s++) p.scale[s] = fabsf(number(4, (uint64_t)s)) + 0.01f;
    pack();
}

/* The factors of rows, wherever a test has put them. */
static const float *const *factors_of(const void *const *x, int m)
{
    static const float *of[MAX_M];
    for (int i = 0; i < m; i++)
        for (int r = 0; r < MAX_M; r++)
            if (p.row[r] == x[i]) of[i] = p.x_scale[r];
    return of;
}

static void run(const fm_gemm *v, float *c, const void *const *x, int m)
{
    if (p.scaled) v->fp8_scaled(c, x, factors_of(x, m), p.panel, p.scale, m, p.k);
    else fm_gemm_for(v, p.type)(c, x, p.panel, p.scale, m, p.k);
}

/* The sum in double precision, and the sum of magnitudes. */
static double exact(int i, int j, double *magnitude)
{
    double sum = 0;
    *magnitude = 0;
    for (int q = 0; q < p.k; q++) {
        const double s    = p.type == FM_FP8    ? p.scale[q / 128 * 2 + j / 16]
                            : p.type == FM_INT4 ? fm_f32_of_bf16(p.group_scale[j][q / 32])
                                                : 1;
        const double by   = p.scaled ? p.x_scale[i][q / 128] : 1;
        const double term = (double)p.x[i][q] * (double)p.w[j][q] * s * by;
        sum += term;
        *magnitude += fabs(term);
    }
    return sum;
}

static const fm_gemm *reference(void)
{
    size_t count;
    return fm_gemm_all(&count) + VARIANTS - 1;
}

static void check_bound(const fm_gemm *v, int m)
{
    static float got[MAX_M * FM_PANEL], want[MAX_M * FM_PANEL];
    run(v, got, p.row, m);
    run(reference(), want, p.row, m);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < FM_PANEL; j++) {
            double       magnitude;
            const double sum = exact(i, j, &magnitude), bound = p.k * 0x1p-23 * magnitude;
            const float  a = got[i * FM_PANEL + j], b = want[i * FM_PANEL + j];
            if (fabs((double)a - b) > bound || fabs(a - sum) > bound)
                fail_msg("%s type=%d m=%d k=%d at %d,%d: %g, ref %g, exact %g", fm_isa_name(v->isa),
                         p.type, m, p.k, i, j, a, b, sum);
        }
}

/* Rows alone, in reverse order and evenly spaced give the bits of `got`. */
static void check_company(const fm_gemm *v, int m, const float *got)
{
    static float other[MAX_M * FM_PANEL];
    const void  *reversed[MAX_M] = {0};
    const size_t bytes           = FM_PANEL * sizeof *got;
    for (int i = 0; i < m; i++) reversed[i] = p.row[m - 1 - i];
    for (int i = 0; i < m; i++) {
        run(v, other, p.row + i, 1);
        assert_memory_equal(other, got + i * FM_PANEL, bytes);
    }
    run(v, other, reversed, m);
    for (int i = 0; i < m; i++)
        assert_memory_equal(other + i * FM_PANEL, got + (m - 1 - i) * FM_PANEL, bytes);
    place_rows(0);
    run(v, other, p.row, m);
    assert_memory_equal(other, got, (size_t)m * bytes);
    place_rows(1);
}

typedef struct {
    const float *c, *want;
    int          next;
} hearing;

static void hear(void *ctx, int from, int n)
{
    hearing     *h  = ctx;
    const size_t at = (size_t)from * FM_PANEL;
    assert_int_equal(from, h->next);
    assert_memory_equal(h->c + at, h->want + at, (size_t)n * FM_PANEL * sizeof *h->c);
    h->next += n;
}

/* The callback gets every row once, in order, and each has its final bits by then. */
static void check_telling(const fm_gemm *v, int m, const float *want)
{
    static float c[MAX_M * FM_PANEL];
    hearing      h = {c, want, 0};
    memset(c, GUARD, sizeof c);
    const float *const *factors = p.scaled ? factors_of(p.row, m) : NULL;
    fm_gemm_telling(v, p.type)(c, p.row, factors, p.panel, p.scale, m, p.k, hear, &h);
    assert_int_equal(h.next, m);
    assert_memory_equal(c, want, (size_t)m * FM_PANEL * sizeof *c);
}

/* Variants of one level differ in speed alone. */
static void check_level(const fm_gemm *v, int m, const float *got)
{
    static float other[MAX_M * FM_PANEL];
    if (v == reference() || v[1].isa != v->isa) return;
    run(v + 1, other, p.row, m);
    assert_memory_equal(other, got, (size_t)m * FM_PANEL * sizeof *got);
}

enum { MOST_PANELS = 9 };

/* Panel i has the weights of p.panel i pairs of k further on. */
static const char *neighbouring_panels(void)
{
    static _Alignas(64) char all[MOST_PANELS * FM_PANEL * MAX_K * 2];
    const size_t bytes = fm_panel_bytes(p.type, p.k), pair = 2 * FM_PANEL * fm_dtype_bytes(p.type);
    for (size_t i = 0; i < MOST_PANELS; i++) {
        memcpy(all + i * bytes, p.panel + i * pair, bytes - i * pair);
        memcpy(all + (i + 1) * bytes - i * pair, p.panel, i * pair);
    }
    return all;
}

static void run_few(const fm_gemm *v, float *c, const void *w, int n_panel, int m)
{
    if (p.type == FM_FP8) fm_gemm_few_fp8(v)(c, p.row, w, p.scale, n_panel, m, p.k);
    else fm_gemm_few(v)(c, p.row, w, n_panel, m, p.k);
}

/* FP8 as if it had been widened. */
static void run_alone(const fm_gemm *v, float *c, const void *w, int m)
{
    static _Alignas(64) char wide[FM_PANEL * MAX_K * 2];
    if (p.type == FM_FP8) v->widen(wide, w, p.scale, p.k);
    v->bf16(c, p.row, p.type == FM_FP8 ? wide : w, NULL, m, p.k);
}

/* Few rows times several panels: each has the bits of a product with that panel alone. */
static void check_few(const fm_gemm *v, int m)
{
    static float   c[(MOST_PANELS * FM_GEMM_FEW_ROWS + 1) * FM_PANEL], want[MAX_M * FM_PANEL];
    const size_t   bytes = fm_panel_bytes(p.type, p.k), tile = (size_t)m * FM_PANEL;
    const char    *w     = neighbouring_panels();
    for (int n = 1; n <= MOST_PANELS; n++) {
        memset(c, GUARD, sizeof c);
        run_few(v, c, w, n, m);
        for (int i = 0; i < n; i++) {
            run_alone(v, want, w + (size_t)i * bytes, m);
            assert_memory_equal(c + (size_t)i * tile, want, tile * sizeof *c);
        }
        for (size_t i = (size_t)n * tile * sizeof *c; i < sizeof c; i++)
            assert_int_equal(((unsigned char *)c)[i], GUARD);
    }
}

static void check_shape(const fm_gemm *v, int m)
{
    static float got[(MAX_M + 1) * FM_PANEL];
    memset(got, GUARD, sizeof got);
    run(v, got, p.row, m);
    for (size_t i = (size_t)m * FM_PANEL * sizeof *got; i < sizeof got; i++)
        assert_int_equal(((unsigned char *)got)[i], GUARD);
    check_company(v, m, got);
    check_bound(v, m);
    check_level(v, m, got);
    if (fm_gemm_telling(v, p.type)) check_telling(v, m, got);
}

static const fm_gemm *variant(void **state)
{
    const fm_gemm *v       = *state;
    const int      emulate = FM_AMX_EMULATED && v->isa == FM_ISA_AMX;
    if (emulate ? fm_cpu_detects(FM_ISA_AVX512) && fm_cpu_has_vbmi() : fm_gemm_runs_here(v)) return v;
    print_message("this CPU has no %s%s\n", fm_isa_name(v->isa), v->vbmi ? " with vbmi" : "");
    skip();
    return NULL;
}

static void check_type(void **state, fm_dtype type)
{
    const fm_gemm *v = variant(state);
    for (size_t a = 0; a < LENGTH(shape_k); a++) {
        fill(type, shape_k[a]);
        for (size_t b = 0; b < LENGTH(shape_m); b++) check_shape(v, shape_m[b]);
    }
}

static void bf16_obeys_contract(void **state)
{
    check_type(state, FM_BF16);
}

static void few_rows_times_panels_have_the_bits_of_one(void **state)
{
    const fm_gemm *v = variant(state);
    if (!fm_gemm_few(v)) return;
    for (size_t a = 0; a < LENGTH(shape_k); a++) {
        fill(FM_BF16, shape_k[a]);
        for (int m = 1; m <= FM_GEMM_FEW_ROWS; m++) check_few(v, m);
    }
}

static void few_rows_times_fp8_have_the_bits_of_bf16(void **state)
{
    const fm_gemm *v = variant(state);
    if (!fm_gemm_few_fp8(v)) return;
    for (size_t a = 0; a < LENGTH(shape_k); a++) {
        fill(FM_FP8, shape_k[a]);
        for (int s = 0; s < fm_panel_scales(p.k); s++) p.scale[s] = p.scale[s / 2 * 2];
        for (int m = 1; m <= FM_GEMM_FEW_ROWS; m++) check_few(v, m);
    }
}

static void fp8_obeys_contract(void **state)
{
    check_type(state, FM_FP8);
}

static void fill_scaled(int k)
{
    fill(FM_FP8, k);
    for (int i = 0; i < MAX_M; i++) {
        for (int q = 0; q < k; q++) p.x[i][q] = fm_f32_of_fp8(random_fp8((uint64_t)(7000 + i * k + q)));
        for (int s = 0; s * 128 < k; s++)
            p.x_scale[i][s] = fabsf(number(8, (uint64_t)(i * k + s))) + 0.001f;
    }
    place_rows(1);
}

static void w8a8_obeys_contract(void **state)
{
    const fm_gemm *v = variant(state);
    p.scaled         = 1;
    for (size_t a = 0; a < LENGTH(shape_k); a++) {
        fill_scaled(shape_k[a]);
        for (size_t b = 0; b < LENGTH(shape_m); b++) check_shape(v, shape_m[b]);
    }
    p.scaled = 0;
}

static void int4_obeys_contract(void **state)
{
    check_type(state, FM_INT4);
}

/* Rows that pick one k each read every value back, with the factor of its output and group. */
static void int4_reads_every_value(void **state)
{
    enum { K = 96 };
    const fm_gemm *v = variant(state);
    static float   c[MAX_M * FM_PANEL];
    fill(FM_INT4, K);
    for (int j = 0; j < FM_PANEL; j++)
        for (int q = 0; q < K; q++) p.w[j][q] = (float)((q + j) % 16 - 8);
    pack();
    for (int i = 0; i < K; i++)
        for (int q = 0; q < K; q++) p.x[i][q] = q == i;
    place_rows(1);
    for (int m = 1; m <= K; m += 19) {
        run(v, c, p.row + K - m, m);
        for (int i = 0; i < m; i++)
            for (int j = 0; j < FM_PANEL; j++) {
                const int   q    = K - m + i;
                const float want = fm_f32_of_bf16(p.group_scale[j][q / 32]) * p.w[j][q];
                assert_true(c[i * FM_PANEL + j] == want);
            }
    }
}

static void f32_obeys_contract(void **state)
{
    check_type(state, FM_F32);
}

/* Rows that pick one k each read every byte value back, subnormals included. */
static void fp8_reads_every_byte(void **state)
{
    const fm_gemm *v = variant(state);
    static float   c[MAX_M * FM_PANEL];
    fill(FM_FP8, 256);
    for (int j = 0; j < FM_PANEL; j++)
        for (int q = 0; q < 256; q++) {
            const fm_fp8 b   = (fm_fp8)(q + 5 * j);
            p.w_stored[j][q] = (char)((b & 0x7f) == 0x7f ? 0 : b);
        }
    pack();
    for (int s = 0; s < 4; s++) p.scale[s] = 0.25f * (float)(1 << s);
    for (int from = 0; from < 256; from += MAX_M) {
        for (int i = 0; i < MAX_M; i++)
            for (int q = 0; q < 256; q++) p.x[i][q] = q == from + i;
        place_rows(1);
        for (int i = 0; i < MAX_M; i += 8) { /* both expansions, in registers and shared */
            const int m = i ? 8 : MAX_M;
            run(v, c, p.row + i, m);
            for (int r = i; r < i + m; r++)
                for (int j = 0; j < FM_PANEL; j++) {
                    const int    q = from + r;
                    const fm_fp8 b = (fm_fp8)p.w_stored[j][q];
                    const float  s = p.scale[q / 128 * 2 + j / 16];
                    assert_true(c[(r - i) * FM_PANEL + j] == s * fm_f32_of_fp8(b));
                }
        }
    }
}

static void fp8_survives_nan_bytes(void **state)
{
    const fm_gemm *v = variant(state);
    static float   c[MAX_M * FM_PANEL];
    fill(FM_FP8, 128);
    memset(p.w_stored, 0xff, sizeof p.w_stored);
    pack();
    for (int m = 1; m <= MAX_M; m += 21) run(v, c, p.row, m);
}

/* The panel that a loader would have packed of the scaled values. */
static void pack_scaled(void *panel, int k)
{
    static fm_bf16 value[FM_PANEL][MAX_K];
    const void    *row[FM_PANEL];
    for (int j = 0; j < FM_PANEL; j++) {
        row[j] = value[j];
        for (int q = 0; q < k; q++)
            value[j][q] =
                fm_bf16_of_f32(fm_f32_of_fp8((fm_fp8)p.w_stored[j][q]) * p.scale[q / 128 * 2]);
    }
    fm_pack_panel(panel, row, FM_BF16, k);
}

static void fp8_widens_as_a_loader_rounds(void **state)
{
    const fm_gemm           *v = variant(state);
    static _Alignas(64) char want[FM_PANEL * MAX_K * 2], have[FM_PANEL * MAX_K * 2];
    if (!v->widen) skip();
    for (size_t i = 0; i < LENGTH(shape_k); i++) {
        const int k = shape_k[i];
        fill(FM_FP8, k);
        for (int s = 0; s < (k + 127) / 128; s++)
            p.scale[2 * s] = p.scale[2 * s + 1] = ldexpf(1 + fabsf(number(9, (uint64_t)s)), -3 * s);
        pack();
        pack_scaled(want, k);
        memset(have, GUARD, sizeof have);
        v->widen(have, p.panel, p.scale, k);
        assert_memory_equal(want, have, (size_t)(FM_PANEL * k * 2));
    }
}

static void table_is_best_first_and_ends_with_ref(void **state)
{
    (void)state;
    size_t         count;
    const fm_gemm *all = fm_gemm_all(&count);
    assert_int_equal(count, VARIANTS);
    assert_int_equal(all[count - 1].isa, FM_ISA_REF);
    for (size_t i = 1; i < count; i++)
        assert_true(all[i].isa < all[i - 1].isa ||
                    (all[i].isa == all[i - 1].isa && all[i].vbmi < all[i - 1].vbmi));
    assert_int_equal(fm_gemm_pick()->isa, fm_cpu_isa());
}

int main(void)
{
    static const struct CMUnitTest each[] = {
        cmocka_unit_test(bf16_obeys_contract),
        cmocka_unit_test(few_rows_times_panels_have_the_bits_of_one),
        cmocka_unit_test(few_rows_times_fp8_have_the_bits_of_bf16),
        cmocka_unit_test(fp8_obeys_contract),
        cmocka_unit_test(f32_obeys_contract),
        cmocka_unit_test(fp8_reads_every_byte),
        cmocka_unit_test(fp8_survives_nan_bytes),
        cmocka_unit_test(int4_obeys_contract),
        cmocka_unit_test(int4_reads_every_value),
        cmocka_unit_test(w8a8_obeys_contract),
        cmocka_unit_test(fp8_widens_as_a_loader_rounds),
    };
    static char       name[VARIANTS * LENGTH(each)][64];
    struct CMUnitTest tests[VARIANTS * LENGTH(each) + 1];
    size_t            n   = 0, count;
    const fm_gemm    *all = fm_gemm_all(&count);

    for (size_t i = 0; i < VARIANTS; i++)
        for (size_t t = 0; t < LENGTH(each); t++, n++) {
            tests[n]               = each[t];
            tests[n].initial_state = (void *)(all + i);
            snprintf(name[n], sizeof name[n], "%s%s: %s", fm_isa_name(all[i].isa),
                     all[i].vbmi ? "+vbmi" : "", each[t].name);
            tests[n].name = name[n];
        }
    tests[n] = (struct CMUnitTest)cmocka_unit_test(table_is_best_first_and_ends_with_ref);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
