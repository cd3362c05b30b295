/* SPDX-License-Identifier: Apache-2.0 */
#include "product.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define FOR_EVERY_CPU __attribute__((target_clones("avx512f", "avx2", "default")))

enum { K = 16, ROWS = 4, COLUMNS = 8 }; /* whose sums are in registers at once */

typedef double   doubles __attribute__((vector_size(COLUMNS * sizeof(double))));
typedef float    floats __attribute__((vector_size(COLUMNS * sizeof(float))));
typedef uint32_t words __attribute__((vector_size(COLUMNS * sizeof(uint32_t))));

/* Exponents, as they stand in a float, of the smallest and the largest number that is not 0. */
struct exponents {
    uint32_t least, most;
};

static inline __attribute__((always_inline)) exponents exponents_of(const float *x, int stride)
{
    const words infinite = (words){} + 0x7f800000u;
    words       least = infinite, most = {};
    for (int k = 0; k < K; k++) {
        words bits;
        memcpy(&bits, x + k * stride, sizeof bits);
        const words e = bits & infinite, of_some = bits << 1 != 0 ? e : infinite;
        least = of_some < least ? of_some : least;
        most  = e > most ? e : most;
    }
    exponents out = {0xff, 0};
    for (int c = 0; c < COLUMNS; c++) {
        out.least = least[c] >> 23 < out.least ? least[c] >> 23 : out.least;
        out.most  = most[c] >> 23 > out.most ? most[c] >> 23 : out.most;
    }
    return out;
}

/* Whether every sum of 16 products is a whole number of units below 2^53: the product of two bf16 is
 * one of 2^-14 with the least exponents, and 16 of them are less than 2^6 with the largest. */
static inline bool fit_a_double(exponents a, exponents b)
{
    if (a.most == 0xff || b.most == 0xff) return false;
    return a.most + b.most + 6 <= a.least + b.least - 14 + 53;
}

/* d[ROWS][COLUMNS] += a[ROWS][16] b[16][COLUMNS], where the order of a sum does not matter. */
static inline __attribute__((always_inline)) void add_plainly(float *d, const double (*a)[K], const floats *b, int n)
{
    doubles sum[ROWS] = {};
    for (int k = 0; k < K; k++) {
        const doubles y = __builtin_convertvector(b[k], doubles);
        for (int r = 0; r < ROWS; r++) sum[r] += a[r][k] * y;
    }
    for (int r = 0; r < ROWS; r++) {
        floats old;
        memcpy(&old, d + r * n, sizeof old);
        old = __builtin_convertvector(__builtin_convertvector(old, doubles) + sum[r], floats);
        memcpy(d + r * n, &old, sizeof old);
    }
}

/* The same where it does: what a sum loses is summed beside it. */
static inline __attribute__((always_inline)) void add_carefully(float *d, const double (*a)[K], const floats *b, int n)
{
    doubles high[ROWS] = {}, low[ROWS] = {};
    for (int k = 0; k < K; k++) {
        const doubles y = __builtin_convertvector(b[k], doubles);
        for (int r = 0; r < ROWS; r++) {
            const doubles x    = a[r][k] * y;
            const doubles sum  = high[r] + x;
            const doubles of_x = sum - high[r];
            low[r] += (high[r] - (sum - of_x)) + (x - of_x);
            high[r] = sum;
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            float       *at = d + r * n + c;
            const double s  = high[r][c];
            *at             = (float)(*at + (isfinite(s) ? s + low[r][c] : s));
        }
}

/* A product of two bf16 is exact in a double, so all clones have the same bits. */
FOR_EVERY_CPU void fm_emu_add_product(float *d, const float (*a)[K], const float *b, int n)
{
    double wide[16][K];
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < K; k++) wide[i][k] = a[i][k];
    const exponents left = exponents_of(a[0], K), right = exponents_of(a[0] + COLUMNS, K);
    const exponents of_a = {left.least < right.least ? left.least : right.least,
                            left.most > right.most ? left.most : right.most};
    for (int j = 0; j < n; j += COLUMNS) {
        floats column[K];
        for (int k = 0; k < K; k++) memcpy(&column[k], b + k * n + j, sizeof column[k]);
        const bool plain = fit_a_double(of_a, exponents_of(b + j, n));
        for (int i = 0; i < 16; i += ROWS)
            if (plain)
                add_plainly(d + i * n + j, wide + i, column, n);
            else
                add_carefully(d + i * n + j, wide + i, column, n);
    }
}

void fm_emu_multiply(void *const *all, unsigned)
{
    float a[16][16], b[16][8], d[16][8];
    for (int l = 0; l < 32; l++) {
        const fm_emu_product *p = (const fm_emu_product *)all[l];
        const int             g = l / 4, t = l % 4 * 2;
        for (int h = 0; h < 2; h++) {
            for (int i = 0; i < 4; i++)
                a[g + i % 2 * 8][t + i / 2 * 8 + h] = fm_emu_half_of(p->a[i], h);
            for (int i = 0; i < 2; i++) b[t + i * 8 + h][g] = fm_emu_half_of(p->b[i], h);
            for (int i = 0; i < 2; i++) d[g + i * 8][t + h] = p->d[2 * i + h];
        }
    }
    fm_emu_add_product(d[0], a, b[0], 8);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++)
            ((fm_emu_product *)all[l])->d[i] = d[l / 4 + i / 2 * 8][l % 4 * 2 + i % 2];
}

/* --- E4M3 ------------------------------------------------------------------- */

enum { BYTE_K = 32 };

static const uint32_t BITS = 13;

static const struct e4m3_numbers {
    float x[256];
    e4m3_numbers()
    {
        for (int i = 0; i < 256; i++) x[i] = fm_f32_of_fp8((fm_fp8)i);
    }
} numbers;
const float *const fm_emu_f32_of_fp8 = numbers.x;

typedef int32_t ints __attribute__((vector_size(COLUMNS * sizeof(int32_t))));

/* d and 32 products, cut and added; what is not finite stays so. */
static float cut_and_add(float d, const float *a, const float *b, int n)
{
    double most = fabs(d), sum = d;
    for (int k = 0; k < BYTE_K; k++) {
        const double x = (double)a[k] * b[k * n];
        most = fmax(most, fabs(x));
        sum += x;
    }
    if (most == 0 || !isfinite(sum)) return (float)sum;
    const double unit = ldexp(1, ilogb(most) - (int)BITS), per = 1 / unit;
    int64_t      cut = (int64_t)(d * per);
    for (int k = 0; k < BYTE_K; k++) cut += (int64_t)((double)a[k] * b[k * n] * per);
    return (float)((double)cut * unit);
}

/* The same for eight columns, where all is finite and 2^(BITS - 126) or more is among the terms: then
 * floats hold every number on the way.  A zero keeps its sign if there are only zeros. */
static inline __attribute__((always_inline)) void cut_and_add_columns(float *d, const float *a, const float *b, int n)
{
    const words no_sign = (words){} + 0x7fffffffu;
    floats      old, x[BYTE_K];
    memcpy(&old, d, sizeof old);
    floats sum  = old;
    words  most = (words)old & no_sign;
    for (int k = 0; k < BYTE_K; k++) {
        memcpy(&x[k], b + k * n, sizeof x[k]);
        x[k] *= a[k];
        sum += x[k];
        const words size = (words)x[k] & no_sign;
        most             = size > most ? size : most;
    }
    const words  e    = most >> 23;
    const floats unit = (floats)((e - BITS) << 23), per = (floats)((254 + BITS - e) << 23);
    ints         cut  = __builtin_convertvector(old * per, ints);
    for (int k = 0; k < BYTE_K; k++) cut += __builtin_convertvector(x[k] * per, ints);
    const floats got = __builtin_convertvector(cut, floats) * unit;
    for (int c = 0; c < COLUMNS; c++)
        d[c] = most[c] == 0                       ? sum[c]
               : e[c] <= BITS || e[c] == 0xff     ? cut_and_add(d[c], a, b + c, n)
                                                  : got[c];
}

FOR_EVERY_CPU void fm_emu_add_byte_product(float *d, const float (*a)[BYTE_K], const float *b, int n)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < n; j += COLUMNS) cut_and_add_columns(d + i * n + j, a[i], b + j, n);
}
