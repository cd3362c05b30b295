/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/integral/harmonic.h"

#include <math.h>
#include <string.h>

fm_monomial fm_cartesian(int l, int component)
{
    int i = l;
    while (component > l - i) component -= l - i-- + 1;
    return (fm_monomial){i, l - i - component, component};
}

/* A polynomial of degree l in the cartesian order. */
typedef double polynomial[FM_CARTESIAN_MAX];

static int index_of(fm_monomial m)
{
    const int r = m.j + m.k;
    return r * (r + 1) / 2 + m.k;
}

/* out += f * (x^i y^j z^k of `by`) * in, where `in` has degree l */
static void add_product(double *out, double f, fm_monomial by, const double *in, int l)
{
    for (int c = 0; c < fm_components(l, 0); c++) {
        const fm_monomial m = fm_cartesian(l, c);
        out[index_of((fm_monomial){m.i + by.i, m.j + by.j, m.k + by.k})] += f * in[c];
    }
}

static double odd_factorial(int n) /* (n-1)!! for even n: the moment of x^n, else 0 */
{
    if (n % 2) return 0;
    double f = 1;
    for (int k = n - 1; k > 1; k -= 2) f *= k;
    return f;
}

double fm_monomial_overlap(fm_monomial a, fm_monomial b)
{
    return odd_factorial(a.i + b.i) * odd_factorial(a.j + b.j) * odd_factorial(a.k + b.k);
}

static void normalise(double *p, int l)
{
    double norm = 0;
    for (int a = 0; a < fm_components(l, 0); a++)
        for (int b = 0; b < fm_components(l, 0); b++)
            norm += p[a] * p[b] * fm_monomial_overlap(fm_cartesian(l, a), fm_cartesian(l, b));
    const double f = sqrt(odd_factorial(2 * l) / norm);
    for (int a = 0; a < fm_components(l, 0); a++) p[a] *= f;
}

/* up[l] = (2l-1) z up[l-1] - (l-1+m) r^2 up[l-2], the recursion of the associated
 * Legendre polynomials with r kept. */
static void raise(polynomial *up, int l, int m)
{
    add_product(up[l], 2 * l - 1, (fm_monomial){0, 0, 1}, up[l - 1], l - 1);
    if (l - 2 < m) return;
    add_product(up[l], -(l - 1 + m), (fm_monomial){2, 0, 0}, up[l - 2], l - 2);
    add_product(up[l], -(l - 1 + m), (fm_monomial){0, 2, 0}, up[l - 2], l - 2);
    add_product(up[l], -(l - 1 + m), (fm_monomial){0, 0, 2}, up[l - 2], l - 2);
    for (int c = 0; c < fm_components(l, 0); c++) up[l][c] /= l - m;
}

/* Re and Im of (x + iy)^m. */
static void sector(double *re, double *im, int m)
{
    polynomial a = {1}, b = {0};
    for (int d = 0; d < m; d++) {
        polynomial x = {0}, y = {0};
        add_product(x, 1, (fm_monomial){1, 0, 0}, a, d);
        add_product(x, -1, (fm_monomial){0, 1, 0}, b, d);
        add_product(y, 1, (fm_monomial){1, 0, 0}, b, d);
        add_product(y, 1, (fm_monomial){0, 1, 0}, a, d);
        memcpy(a, x, sizeof a);
        memcpy(b, y, sizeof b);
    }
    memcpy(re, a, sizeof a);
    memcpy(im, b, sizeof b);
}

static void pure(double *c, int l)
{
    const int n = fm_components(l, 0);
    for (int m = 0; m <= l; m++) {
        polynomial re[FM_L_MAX + 1] = {{0}}, im[FM_L_MAX + 1] = {{0}};
        sector(re[m], im[m], m);
        for (int d = m + 1; d <= l; d++) {
            raise(re, d, m);
            raise(im, d, m);
        }
        normalise(re[l], l);
        memcpy(c + (l + m) * n, re[l], (size_t)n * sizeof *c);
        if (m == 0) continue;
        normalise(im[l], l);
        memcpy(c + (l - m) * n, im[l], (size_t)n * sizeof *c);
    }
}

void fm_shell_transform(double *c, int l, int is_pure)
{
    if (is_pure && l > 1) {
        pure(c, l);
        return;
    }
    const int n = fm_components(l, 0);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) c[a * n + b] = a == b;
}
