/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of exchange-correlation: every variant this CPU has against plain C, and plain C
 * against the definitions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "chem/integral/harmonic.h"
#include "chem/xc/ao.h"
#include "chem/xc/erf1.h"
#include "chem/xc/product.h"

static double draw(uint64_t key, uint64_t i) /* uniform in [-1, 1) */
{
    return (double)fm_rng_u32(key, i) * 0x1p-31 - 1;
}

static double *aligned(size_t n)
{
    double *p = aligned_alloc(64, (n * sizeof(double) + 63) / 64 * 64);
    memset(p, 0xa5, n * sizeof(double));
    return p;
}

/* Products of all shapes of tiles, with guard numbers behind each row's columns. */
static void check_product(const fm_product_kernels *v, int n_row, int n_column, int n_k,
                          int by_column)
{
    const size_t stride = fm_product_stride(n_column) + 8;
    double      *A = aligned((size_t)(n_row * n_k)), *B = aligned((size_t)n_k * stride),
           *out = aligned((size_t)n_row * stride);
    for (int i = 0; i < n_row * n_k; i++) A[i] = draw(1, (uint64_t)i);
    for (size_t i = 0; i < (size_t)n_k * stride; i++) B[i] = draw(2, i);
    const size_t row = by_column ? 1 : (size_t)n_k, column = by_column ? (size_t)n_row : 1;
    v->multiply(&(fm_product){n_row, n_column, n_k, A, row, column, B, stride, out, stride});
    for (int r = 0; r < n_row; r++)
        for (int c = 0; c < (int)stride; c++) {
            double want = 0, size = 0;
            for (int k = 0; k < n_k; k++) {
                const double t =
                    A[(size_t)r * row + (size_t)k * column] * B[(size_t)k * stride + (size_t)c];
                want += t, size += fabs(t);
            }
            const double *got = &out[(size_t)r * stride + (size_t)c];
            if (c < n_column && !(fabs(*got - want) <= n_k * 0x1p-52 * size))
                fail_msg("%d x %d x %d at %d %d: %g, not %g", n_row, n_column, n_k, r, c, *got,
                         want);
            uint64_t bits;
            memcpy(&bits, got, sizeof bits);
            if (c >= n_column) assert_true(bits == 0xa5a5a5a5a5a5a5a5u);
        }
    free(A), free(B), free(out);
}

static void test_products(void **state)
{
    (void)state;
    const fm_product_kernels *v;
    for (int i = 0; (v = fm_product_kernels_at(i)); i++) {
        if (!fm_cpu_detects(v->isa)) continue;
        for (int n_row = 1; n_row <= 13; n_row++)
            for (int n_column = 8; n_column <= 72; n_column += 8)
                check_product(v, n_row, n_column, 1 + n_row * 3 % 17, n_row % 2);
    }
}

static void test_transposes(void **state)
{
    (void)state;
    enum { N = 24, M = 16, IN = 32, OUT = 24 };
    double                   *in = aligned(N * IN), *out = aligned(M * OUT);
    const fm_product_kernels *v;
    for (int i = 0; i < N * IN; i++) in[i] = draw(3, (uint64_t)i);
    for (int i = 0; (v = fm_product_kernels_at(i)); i++) {
        if (!fm_cpu_detects(v->isa)) continue;
        memset(out, 0, M * OUT * sizeof *out);
        v->transpose(out, OUT, in, IN, N, M);
        for (int r = 0; r < N; r++)
            for (int c = 0; c < M; c++) assert_true(out[c * OUT + r] == in[r * IN + c]);
    }
    free(in), free(out);
}

/* NWChem's step function, by the letter, with the library's exponential. */
static double step_by_definition(double mu)
{
    if (mu > 0.725) return 0;
    if (mu < -0.725) return 1;
    if (fabs(mu) < 1e-6) return 0.5 - 1.88063178008 * mu;
    const double x = fabs(mu) / (1 - mu * mu) / 0.30, t = 1 / (1 + 0.5 * x);
    const double p =
        -1.26551223 +
        t * (1.00002368 +
             t * (0.37409196 +
                  t * (0.09678418 +
                       t * (-0.18628806 +
                            t * (0.27886807 +
                                 t * (-1.13520398 +
                                      t * (1.48851587 + t * (-0.82215223 + t * 0.17087277))))))));
    const double half = 0.5 * t * exp(p - x * x);
    assert_true(fabs(2 * half - erfc(x)) < 1.3e-7 * erfc(x));
    return mu > 0 ? half : 1 - half;
}

static void test_steps(void **state)
{
    (void)state;
    enum { N = 64 };
    double                 r[N], inverse[N], s[N];
    const fm_erf1_kernels *v;
    for (int i = 0; (v = fm_erf1_kernels_at(i)); i++) {
        if (!fm_cpu_detects(v->isa)) continue;
        for (int k = 0; k < 100; k++) {
            double all = 1;
            for (int j = 0; j < N; j++) {
                r[j]       = 2 + 2 * draw(4, (uint64_t)(k * N + j));
                inverse[j] = j % 9 ? 0.5 : 1e-8;
            }
            v->steps(s, 2, r, inverse, N);
            for (int j = 0; j < N; j++) {
                const double want = step_by_definition((2 - r[j]) * inverse[j]);
                if (fabs(s[j] - want) > 1e-14) fail_msg("%g: %.16g, not %.16g", r[j], s[j], want);
                all *= s[j];
            }
            assert_true(fabs(v->product(s, N) - all) <= 1e-13 * all);
        }
    }
}

/* A shell of every l and form, three contractions over the same primitives. */
typedef struct {
    fm_shell   shell[2 * (FM_L_MAX + 1)];
    fm_basis   basis;
    fm_angular angular[2 * (FM_L_MAX + 1)];
    double     x[FM_BOX], y[FM_BOX], z[FM_BOX];
    int        list[2 * (FM_L_MAX + 1)];
} ao_case;

static const double exponent[2] = {0.3, 4.0}, coef[6] = {1, 0, 0.4, 0.6, 0, -1.3};

static void fill_case(ao_case *c)
{
    memset(c, 0, sizeof *c);
    for (int i = 0; i < 2 * (FM_L_MAX + 1); i++) {
        const int l = i % (FM_L_MAX + 1), is_pure = i > FM_L_MAX;
        c->shell[i] = (fm_shell){.atom     = i / 2,
                                 .l        = l,
                                 .is_pure  = is_pure,
                                 .n_prim   = 2,
                                 .n_contr  = 3,
                                 .exponent = exponent,
                                 .coef     = coef,
                                 .first    = c->basis.n_function,
                                 .xyz      = {0.1 * (i / 2), -0.2, 0.3}};
        c->basis.n_function += fm_shell_functions(&c->shell[i]);
        c->list[i] = i;
        fm_angular_init(&c->angular[i], l, is_pure);
    }
    c->basis.shell = c->shell, c->basis.n_shell = 2 * (FM_L_MAX + 1);
    for (int p = 0; p < FM_BOX; p++) {
        const double size = p < 100 ? 2 : 40; /* far away exponentials vanish */
        c->x[p] = size * draw(5, (uint64_t)p), c->y[p] = size * draw(6, (uint64_t)p);
        c->z[p] = size * draw(7, (uint64_t)p);
    }
}

/* Value of component m of contraction k at a point, from the definition. */
static double function_at(const fm_shell *s, int k, int m, double x, double y, double z)
{
    double       c[FM_CARTESIAN_MAX * FM_CARTESIAN_MAX], R = 0, Y = 0;
    const double u[3] = {x - s->xyz[0], y - s->xyz[1], z - s->xyz[2]};
    const double r2   = u[0] * u[0] + u[1] * u[1] + u[2] * u[2];
    fm_shell_transform(c, s->l, s->is_pure);
    for (int i = 0; i < s->n_prim; i++) R += s->coef[k * s->n_prim + i] * exp(-s->exponent[i] * r2);
    for (int i = 0; i < fm_components(s->l, 0); i++) {
        const fm_monomial q = fm_cartesian(s->l, i);
        Y += c[m * fm_components(s->l, 0) + i] * pow(u[0], q.i) * pow(u[1], q.j) * pow(u[2], q.k);
    }
    return Y * R;
}

static void check_function(const ao_case *c, const fm_ao_values *v, const fm_shell *s, int k, int m)
{
    const size_t f = (size_t)(s->first + k * fm_components(s->l, s->is_pure) + m);
    for (int p = 0; p < FM_BOX; p++) {
        const double x = c->x[p], y = c->y[p], z = c->z[p], h = 1e-4;
        const double want[4] = {
            function_at(s, k, m, x, y, z),
            (function_at(s, k, m, x + h, y, z) - function_at(s, k, m, x - h, y, z)) / (2 * h),
            (function_at(s, k, m, x, y + h, z) - function_at(s, k, m, x, y - h, z)) / (2 * h),
            (function_at(s, k, m, x, y, z + h) - function_at(s, k, m, x, y, z - h)) / (2 * h)};
        for (int d = 0; d < 4; d++) {
            const double got = v->value[d][f * FM_BOX_STRIDE + (size_t)p];
            if (!(fabs(got - want[d]) < (d ? 1e-5 : 2e-14 * (1 + fabs(want[0])))))
                fail_msg("l %d pure %d component %d derivative %d: %.15g, not %.15g", s->l,
                         s->is_pure, m, d, got, want[d]);
        }
    }
}

static void test_functions(void **state)
{
    (void)state;
    static ao_case c;
    fill_case(&c);
    const size_t         n = (size_t)c.basis.n_function * FM_BOX_STRIDE;
    fm_ao_values         out;
    const fm_ao_kernels *v;
    for (int d = 0; d < 4; d++) out.value[d] = aligned(n);
    for (int i = 0; (v = fm_ao_kernels_at(i)); i++) {
        if (!fm_cpu_detects(v->isa)) continue;
        v->eval(&out, &(fm_ao_box){&c.basis, c.angular, c.list, c.basis.n_shell, c.x, c.y, c.z, 1});
        for (int s = 0; s < c.basis.n_shell; s++)
            for (int k = 0; k < 3; k++)
                for (int m = 0; m < fm_components(c.shell[s].l, c.shell[s].is_pure); m++)
                    check_function(&c, &out, &c.shell[s], k, m);
    }
    for (int d = 0; d < 4; d++) free(out.value[d]);
}

static void test_sums_over_functions(void **state)
{
    (void)state;
    enum { N = 5 };
    static double        factor[4][FM_BOX] __attribute__((aligned(64)));
    static double        sum[4][FM_BOX] __attribute__((aligned(64)));
    double              *X = aligned(N * FM_BOX_STRIDE), *Y = aligned(N * FM_BOX_STRIDE);
    fm_ao_values         values;
    const fm_ao_kernels *v;
    for (int d = 0; d < 4; d++) {
        values.value[d] = aligned(N * FM_BOX_STRIDE);
        for (int i = 0; i < N * FM_BOX_STRIDE; i++)
            values.value[d][i] = draw(8, (uint64_t)(i + d * 10000)), X[i] = draw(9, (uint64_t)i);
        for (int p = 0; p < FM_BOX; p++) factor[d][p] = draw(10, (uint64_t)(p + d * 1000));
    }
    for (int i = 0; (v = fm_ao_kernels_at(i)); i++) {
        if (!fm_cpu_detects(v->isa)) continue;
        for (int n_value = 1; n_value <= 4; n_value += 3) {
            v->contract(sum, n_value, &values, X, N);
            v->combine(Y, factor, n_value, &values, N);
            for (int p = 0; p < FM_BOX; p++) {
                for (int d = 0; d < n_value; d++) {
                    double want = 0;
                    for (int f = 0; f < N; f++)
                        want += values.value[d][f * FM_BOX_STRIDE + p] * X[f * FM_BOX_STRIDE + p];
                    assert_true(fabs(sum[d][p] - want) < 1e-14);
                }
                double want = 0;
                for (int d = 0; d < n_value; d++)
                    want += factor[d][p] * values.value[d][3 * FM_BOX_STRIDE + p];
                assert_true(fabs(Y[3 * FM_BOX_STRIDE + p] - want) < 1e-14);
            }
        }
    }
    for (int d = 0; d < 4; d++) free(values.value[d]);
    free(X), free(Y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_transposes),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_sums_over_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
