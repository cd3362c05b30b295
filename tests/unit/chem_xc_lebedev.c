/* SPDX-License-Identifier: Apache-2.0 */
/* Lebedev sets integrate what they promise and have octahedral symmetry. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "chem/xc/lebedev.h"

static fm_sphere_point point[FM_LEBEDEV_MAX_POINTS];

/* Integrals of the real harmonics of order m and degree l = m .. l_max, scaled such that none
 * exceeds 1 (mean square 1 / (2l+1)), by the recursion of the associated Legendre functions
 * normalised to mean square 1. */
static void integrate(int set, int m, int l_max, double *sum_cos, double *sum_sin)
{
    for (int i = 0; i < fm_lebedev_points(set); i++) {
        const double *u = point[i].xyz;
        double        c = 1, s = 0, pmm = 1, before = 0;
        for (int k = 1; k <= m; k++) {
            const double t = c * u[0] - s * u[1];
            s              = c * u[1] + s * u[0];
            c              = t;
            pmm *= sqrt((2 * k + 1.0) / (2 * k) * (k == 1 ? 2 : 1));
        }
        double p = pmm;
        for (int l = m; l <= l_max; l++) {
            const double y = point[i].weight * p / sqrt(2 * l + 1.0);
            sum_cos[l] += y * c;
            sum_sin[l] += y * s;
            const double up = sqrt((2 * l + 1.0) * (2 * l + 3.0) / ((l + 1.0 - m) * (l + 1.0 + m)));
            const double down = l == m ? 0
                                       : sqrt((2 * l + 3.0) * (l + m) * (l - m) /
                                              ((2 * l - 1.0) * (l + 1.0 - m) * (l + 1.0 + m)));
            const double next = up * u[2] * p - down * before;
            before = p, p = next;
        }
    }
}

static void test_harmonics(void **state)
{
    (void)state;
    for (int set = 1; set <= FM_LEBEDEV_SETS; set++) {
        fm_lebedev_fill(point, set);
        for (int m = 0; m <= fm_lebedev_degree(set); m++) {
            double sum_cos[80] = {0}, sum_sin[80] = {0};
            integrate(set, m, fm_lebedev_degree(set), sum_cos, sum_sin);
            for (int l = m; l <= fm_lebedev_degree(set); l++)
                if (fabs(sum_cos[l] - (l == 0)) > 1e-14 || fabs(sum_sin[l]) > 1e-14)
                    fail_msg("set %d l %d m %d: %.3e %.3e", set, l, m, sum_cos[l] - (l == 0),
                             sum_sin[l]);
        }
    }
}

/* One degree more is not integrated: the test above can fail. */
static void test_degree_is_the_limit(void **state)
{
    (void)state;
    for (int set = 1; set <= FM_LEBEDEV_SETS; set++) {
        const int l    = fm_lebedev_degree(set) + 1;
        double    most = 0;
        fm_lebedev_fill(point, set);
        for (int m = 0; m <= l; m += 4) {
            double sum_cos[80] = {0}, sum_sin[80] = {0};
            integrate(set, m, l, sum_cos, sum_sin);
            most = fmax(most, fabs(sum_cos[l]));
        }
        assert_true(most > 1e-4);
    }
}

static void test_points_are_on_the_sphere(void **state)
{
    (void)state;
    static const int count[FM_LEBEDEV_SETS] = {38,  50,  74,  86,  110, 146, 170, 194,  230,
                                               266, 302, 350, 434, 590, 770, 974, 1202, 1454};
    for (int set = 1; set <= FM_LEBEDEV_SETS; set++) {
        assert_int_equal(fm_lebedev_points(set), count[set - 1]);
        fm_lebedev_fill(point, set);
        for (int i = 0; i < count[set - 1]; i++) {
            const double *u = point[i].xyz;
            assert_true(fabs(u[0] * u[0] + u[1] * u[1] + u[2] * u[2] - 1) < 1e-15);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_harmonics),
        cmocka_unit_test(test_degree_is_the_limit),
        cmocka_unit_test(test_points_are_on_the_sphere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
