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
typedef double  vd_loose __attribute__((vector_size(8 * VEC), may_alias, aligned(8)));
typedef int64_t vl __attribute__((vector_size(8 * VEC), may_alias));
typedef int64_t vl_loose __attribute__((vector_size(8 * VEC), may_alias, aligned(8)));
typedef int32_t vi __attribute__((vector_size(4 * VEC), may_alias));
typedef int32_t vi_loose __attribute__((vector_size(4 * VEC), may_alias, aligned(4)));

static inline vd vd_set(double x) { return x - (vd){0}; }

/* The lanes base[index[0]], base[index[1]], ... */
static inline vd vd_gather(const double *base, vi index)
{
#if defined(__AVX512F__)
    return (vd)_mm512_i32gather_pd((__m256i)index, base, 8);
#elif defined(__AVX2__)
    return (vd)_mm256_i32gather_pd(base, (__m128i)index, 8);
#else
    return (vd){base[index[0]], base[index[1]]};
#endif
}

static inline vi vi_gather(const int32_t *base, vi index)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
    return (vi)_mm_i32gather_epi32(base, (__m128i)index, 4);
#elif defined(__AVX512F__)
    return (vi)_mm256_i32gather_epi32(base, (__m256i)index, 4);
#else
    return (vi){base[index[0]], base[index[1]]};
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

/* Lane by lane: yes where x > limit, else no. */
static inline vd vd_if_above(vd x, double limit, vd yes, vd no)
{
#if defined(__AVX512F__)
    const __mmask8 m = _mm512_cmp_pd_mask((__m512d)x, _mm512_set1_pd(limit), _CMP_GT_OQ);
    return (vd)_mm512_mask_blend_pd(m, (__m512d)no, (__m512d)yes);
#elif defined(__AVX2__)
    const __m256d m = _mm256_cmp_pd((__m256d)x, _mm256_set1_pd(limit), _CMP_GT_OQ);
    return (vd)_mm256_blendv_pd((__m256d)no, (__m256d)yes, m);
#else
    return (vd){x[0] > limit ? yes[0] : no[0], x[1] > limit ? yes[1] : no[1]};
#endif
}

static inline int vd_any_above(vd x, double limit)
{
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask((__m512d)x, _mm512_set1_pd(limit), _CMP_GT_OQ) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_pd(_mm256_cmp_pd((__m256d)x, _mm256_set1_pd(limit), _CMP_GT_OQ)) != 0;
#else
    return x[0] > limit || x[1] > limit;
#endif
}

static inline double vd_sum(vd x) /* in a fixed order */
{
    double s = x[0];
    for (int k = 1; k < VEC; k++) s += x[k];
    return s;
}

/* Integer part of 0 <= x < 2^31. */
static inline vi vi_of(vd x)
{
#if defined(__AVX512F__)
    return (vi)_mm512_cvttpd_epi32((__m512d)x);
#elif defined(__AVX2__)
    return (vi)_mm256_cvttpd_epi32((__m256d)x);
#else
    return (vi){(int32_t)x[0], (int32_t)x[1]};
#endif
}

static inline vd vd_of(vi x)
{
#if defined(__AVX512F__)
    return (vd)_mm512_cvtepi32_pd((__m256i)x);
#elif defined(__AVX2__)
    return (vd)_mm256_cvtepi32_pd((__m128i)x);
#else
    return (vd){x[0], x[1]};
#endif
}

/* x[row][column] of VEC vectors becomes x[column][row]. */
static inline __attribute__((always_inline)) void vd_transpose(vd x[VEC])
{
#if defined(__AVX512F__)
    __m512d *r = (__m512d *)x, a[8], b[8];
    for (int k = 0; k < 8; k += 2) {
        a[k]     = _mm512_unpacklo_pd(r[k], r[k + 1]);
        a[k + 1] = _mm512_unpackhi_pd(r[k], r[k + 1]);
    }
    for (int k = 0; k < 8; k += 4)
        for (int h = 0; h < 2; h++) {
            b[k + h]     = _mm512_shuffle_f64x2(a[k + h], a[k + 2 + h], 0x88);
            b[k + 2 + h] = _mm512_shuffle_f64x2(a[k + h], a[k + 2 + h], 0xdd);
        }
    for (int k = 0; k < 4; k++) {
        r[k]     = _mm512_shuffle_f64x2(b[k], b[k + 4], 0x88);
        r[k + 4] = _mm512_shuffle_f64x2(b[k], b[k + 4], 0xdd);
    }
#elif defined(__AVX2__)
    __m256d      *r = (__m256d *)x;
    const __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    const __m256d c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
#else
    const vd a = {x[0][0], x[1][0]}, b = {x[0][1], x[1][1]};
    x[0] = a;
    x[1] = b;
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
