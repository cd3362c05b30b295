/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of doubles as wide as the instructions this file is compiled for: 8 lanes
 * with AVX-512, 4 with AVX2, 2 otherwise.  A lane is one shell quartet.  Included only
 * by files whose suffix names an instruction set; arithmetic is written with the
 * operators of gcc's and clang's vector types. */
#ifndef FM_CHEM_INTEGRAL_VEC_H
#define FM_CHEM_INTEGRAL_VEC_H

#include <immintrin.h>
#include <stdint.h>

#if defined(__AVX512F__)
enum { VEC = 8 };
#elif defined(__AVX2__)
enum { VEC = 4 };
#else
enum { VEC = 2 };
#endif

typedef double  vd __attribute__((vector_size(8 * VEC), may_alias));
typedef int64_t vl __attribute__((vector_size(8 * VEC), may_alias));

static inline vd vd_set(double x) { return x - (vd){0}; }

/* The lanes base[index[0]], base[index[1]], ... */
static inline vd vd_gather(const double *base, const int32_t *index)
{
#if defined(__AVX512F__)
    return (vd)_mm512_i32gather_pd(_mm256_loadu_si256((const __m256i *)index), base, 8);
#elif defined(__AVX2__)
    return (vd)_mm256_i32gather_pd(base, _mm_loadu_si128((const __m128i *)index), 8);
#else
    return (vd){base[index[0]], base[index[1]]};
#endif
}

static inline vd vd_fma(vd a, vd b, vd c)
{
#if defined(__AVX512F__)
    return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
    return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
    return a * b + c;
#endif
}

/* 1/sqrt(x), x > 0, to 2 ulp */
static inline vd vd_rsqrt(vd x)
{
#if defined(__AVX512F__)
    vd y = (vd)_mm512_rsqrt14_pd((__m512d)x);
    for (int k = 0; k < 2; k++) y = y * vd_fma(-0.5 * x * y, y, vd_set(1.5));
    return y;
#elif defined(__AVX2__)
    return 1.0 / (vd)_mm256_sqrt_pd((__m256d)x);
#else
    return 1.0 / (vd)_mm_sqrt_pd((__m128d)x);
#endif
}

static inline vd vd_min(vd a, vd b)
{
#if defined(__AVX512F__)
    return (vd)_mm512_min_pd((__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
    return (vd)_mm256_min_pd((__m256d)a, (__m256d)b);
#else
    return (vd)_mm_min_pd((__m128d)a, (__m128d)b);
#endif
}

static inline vd vd_select(vl mask, vd yes, vd no)
{
    return (vd)((mask & (vl)yes) | (~mask & (vl)no));
}

static inline double vd_sum(vd x) /* in a fixed order */
{
    double s = x[0];
    for (int k = 1; k < VEC; k++) s += x[k];
    return s;
}

/* Below this x, two nearest integers of VEC lanes as 32-bit numbers; 0 <= x < 2^31 */
static inline void vd_floor_index(int32_t *index, vd x)
{
#if defined(__AVX512F__)
    _mm256_storeu_si256((__m256i *)index, _mm512_cvttpd_epi32((__m512d)x));
#elif defined(__AVX2__)
    _mm_storeu_si128((__m128i *)index, _mm256_cvttpd_epi32((__m256d)x));
#else
    for (int k = 0; k < VEC; k++) index[k] = (int32_t)x[k];
#endif
}

/* exp(-x) for 0 <= x <= 700, to 2 ulp */
static inline vd vd_exp_minus(vd x)
{
    static const double c[]   = {2.5052108385441718775e-8,
                                 2.7557319223985890653e-7,
                                 2.7557319223985890653e-6,
                                 2.4801587301587301566e-5,
                                 1.9841269841269841253e-4,
                                 1.3888888888888889419e-3,
                                 8.3333333333333332177e-3,
                                 4.1666666666666664354e-2,
                                 1.6666666666666665741e-1,
                                 0.5,
                                 1.0,
                                 1.0};
    const double        magic = 6755399441055744.0; /* 1.5 * 2^52: its last bits are an integer's */
    const vd            t = vd_fma(x, vd_set(-1.4426950408889634074), vd_set(magic)), n = t - magic;
    vd                  r = vd_fma(n, vd_set(-0.693147180369123816490), -x);
    r                     = vd_fma(n, vd_set(-1.90821492927058770002e-10), r);
    vd y                  = vd_set(c[0]);
    for (int k = 1; k < 12; k++) y = vd_fma(y, r, vd_set(c[k]));
    return (vd)((vl)y + ((vl)t << 52));
}

#endif
