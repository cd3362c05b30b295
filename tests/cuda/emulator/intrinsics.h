/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels call without including anything: bit casts, single roundings,
 * atomics (one thread runs at a time, so plain memory will do), warp votes. */
#ifndef FM_TESTS_CUDA_EMULATOR_INTRINSICS_H
#define FM_TESTS_CUDA_EMULATOR_INTRINSICS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "grid.h"

#define FM_EMU static inline __attribute__((unused))

template <class To, class From> FM_EMU To fm_emu_cast(From x)
{
    static_assert(sizeof(To) == sizeof(From), "same size");
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

FM_EMU unsigned __float_as_uint(float x) { return fm_emu_cast<unsigned>(x); }
FM_EMU int      __float_as_int(float x) { return fm_emu_cast<int>(x); }
FM_EMU float    __uint_as_float(unsigned x) { return fm_emu_cast<float>(x); }
FM_EMU float    __int_as_float(int x) { return fm_emu_cast<float>(x); }
FM_EMU double   __longlong_as_double(long long x) { return fm_emu_cast<double>(x); }
FM_EMU long long __double_as_longlong(double x) { return fm_emu_cast<long long>(x); }

FM_EMU float  __fadd_rn(float a, float b) { return a + b; }
FM_EMU float  __fsub_rn(float a, float b) { return a - b; }
FM_EMU float  __fmul_rn(float a, float b) { return a * b; }
FM_EMU float  __fdiv_rn(float a, float b) { return a / b; }
FM_EMU float  __fsqrt_rn(float a) { return sqrtf(a); }
FM_EMU float  __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
FM_EMU float  __frcp_rn(float a) { return 1.0f / a; }
FM_EMU float  __fdividef(float a, float b) { return a / b; }
#define __expf expf /* macros: the C library has functions of these names */
#define __logf logf
FM_EMU float  rsqrtf(float x) { return 1.0f / sqrtf(x); }
FM_EMU double __dadd_rn(double a, double b) { return a + b; }
FM_EMU double __dmul_rn(double a, double b) { return a * b; }

FM_EMU int      __popc(unsigned x) { return __builtin_popcount(x); }
FM_EMU int      __ffs(int x) { return __builtin_ffs(x); }
FM_EMU int      __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
FM_EMU unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
FM_EMU unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const uint64_t both = (uint64_t)y << 32 | x;
    unsigned       out  = 0;
    for (int i = 0; i < 4; i++)
        out |= (unsigned)(both >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return out;
}
FM_EMU unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((uint64_t)hi << 32 | lo) >> (shift & 31));
}
FM_EMU unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift)
{
    return (unsigned)(((uint64_t)hi << 32 | lo) << (shift & 31) >> 32);
}

#define FM_EMU_MIN_MAX(T)                                                                          \
    FM_EMU T min(T a, T b) { return b < a ? b : a; }                                               \
    FM_EMU T max(T a, T b) { return a < b ? b : a; }
FM_EMU_MIN_MAX(int)
FM_EMU_MIN_MAX(unsigned)
FM_EMU_MIN_MAX(long)
FM_EMU_MIN_MAX(unsigned long)
FM_EMU_MIN_MAX(long long)
FM_EMU_MIN_MAX(unsigned long long)
#undef FM_EMU_MIN_MAX
FM_EMU float  min(float a, float b) { return fminf(a, b); }
FM_EMU float  max(float a, float b) { return fmaxf(a, b); }
FM_EMU double min(double a, double b) { return fmin(a, b); }
FM_EMU double max(double a, double b) { return fmax(a, b); }

template <class T> FM_EMU T __ldg(const T *p) { return *p; }
template <class T> FM_EMU T __ldcs(const T *p) { return *p; }
template <class T> FM_EMU void __stcs(T *p, T x) { *p = x; }

/* --- atomics ---------------------------------------------------------------- */

template <class T> FM_EMU T fm_emu_swap(T *p, T x)
{
    const T old = *p;
    *p          = x;
    return old;
}
template <class T, class U> FM_EMU T atomicAdd(T *p, U x) { return fm_emu_swap(p, (T)(*p + (T)x)); }
template <class T, class U> FM_EMU T atomicSub(T *p, U x) { return fm_emu_swap(p, (T)(*p - (T)x)); }
template <class T, class U> FM_EMU T atomicMax(T *p, U x)
{
    return fm_emu_swap(p, *p < (T)x ? (T)x : *p);
}
template <class T, class U> FM_EMU T atomicMin(T *p, U x)
{
    return fm_emu_swap(p, (T)x < *p ? (T)x : *p);
}
template <class T, class U> FM_EMU T atomicOr(T *p, U x) { return fm_emu_swap(p, (T)(*p | (T)x)); }
template <class T, class U> FM_EMU T atomicAnd(T *p, U x) { return fm_emu_swap(p, (T)(*p & (T)x)); }
template <class T, class U> FM_EMU T atomicExch(T *p, U x) { return fm_emu_swap(p, (T)x); }
template <class T, class U, class V> FM_EMU T atomicCAS(T *p, U expected, V x)
{
    return fm_emu_swap(p, *p == (T)expected ? (T)x : *p);
}
FM_EMU void __threadfence() {}
FM_EMU void __threadfence_block() {}
FM_EMU void __threadfence_system() {}

/* --- barriers, shuffles, votes ---------------------------------------------- */

FM_EMU void __syncthreads() { fm_emu_barrier(0, 0); }
FM_EMU void __syncwarp(unsigned mask = 0xffffffffu)
{
    fm_emu_meet("__syncwarp", mask, NULL, [](void *const *, unsigned) {});
}

/* Every lane brings a value and says whose it wants; a lane that is not there
 * gives poison. */
template <class T> struct fm_emu_wish {
    T   value;
    int from;
    T   got;
};

template <class T> void fm_emu_exchange(void *const *all, unsigned mask)
{
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1)) continue;
        fm_emu_wish<T>       *w    = (fm_emu_wish<T> *)all[l];
        const fm_emu_wish<T> *from = (const fm_emu_wish<T> *)all[w->from & 31];
        if (from) w->got = from->value;
        else memset((void *)&w->got, 0xff, sizeof w->got);
    }
}

template <class T> FM_EMU T fm_emu_shuffle(const char *op, unsigned mask, T x, int from)
{
    fm_emu_wish<T> w = {x, from, x};
    fm_emu_meet(op, mask, &w, fm_emu_exchange<T>);
    return w.got;
}

/* Within segments of `width` lanes; a lane outside the segment gives one's own. */
template <class T> FM_EMU T __shfl_sync(unsigned mask, T x, int lane, int width = 32)
{
    const int first = fm_emu_here.lane & ~(width - 1);
    return fm_emu_shuffle("__shfl_sync", mask, x, first + (lane & (width - 1)));
}
template <class T> FM_EMU T __shfl_xor_sync(unsigned mask, T x, int lanes, int width = 32)
{
    const int me = fm_emu_here.lane, other = me ^ lanes, end = (me & ~(width - 1)) + width;
    return fm_emu_shuffle("__shfl_xor_sync", mask, x, other < end ? other : me);
}
template <class T> FM_EMU T __shfl_down_sync(unsigned mask, T x, unsigned lanes, int width = 32)
{
    const int me = fm_emu_here.lane, other = me + (int)lanes, end = (me & ~(width - 1)) + width;
    return fm_emu_shuffle("__shfl_down_sync", mask, x, other < end ? other : me);
}
template <class T> FM_EMU T __shfl_up_sync(unsigned mask, T x, unsigned lanes, int width = 32)
{
    const int me = fm_emu_here.lane, other = me - (int)lanes;
    return fm_emu_shuffle("__shfl_up_sync", mask, x, other >= (me & ~(width - 1)) ? other : me);
}

struct fm_emu_vote {
    unsigned value, got;
};

FM_EMU void fm_emu_count_votes(void *const *all, unsigned mask)
{
    unsigned yes = 0;
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1 && ((fm_emu_vote *)all[l])->value) yes |= 1u << l;
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1) ((fm_emu_vote *)all[l])->got = yes;
}

FM_EMU unsigned __ballot_sync(unsigned mask, int yes)
{
    fm_emu_vote v = {yes != 0, 0};
    fm_emu_meet("__ballot_sync", mask, &v, fm_emu_count_votes);
    return v.got;
}
FM_EMU int __any_sync(unsigned mask, int yes) { return __ballot_sync(mask, yes) != 0; }
FM_EMU int __all_sync(unsigned mask, int yes) { return __ballot_sync(mask, yes) == mask; }

FM_EMU void fm_emu_match(void *const *all, unsigned mask)
{
    for (int l = 0; l < 32; l++) {
        if (!(mask >> l & 1)) continue;
        fm_emu_vote *v = (fm_emu_vote *)all[l];
        v->got         = 0;
        for (int o = 0; o < 32; o++)
            if (mask >> o & 1 && ((fm_emu_vote *)all[o])->value == v->value) v->got |= 1u << o;
    }
}

FM_EMU unsigned __match_any_sync(unsigned mask, unsigned x)
{
    fm_emu_vote v = {x, 0};
    fm_emu_meet("__match_any_sync", mask, &v, fm_emu_match);
    return v.got;
}

template <bool MAX> void fm_emu_reduce(void *const *all, unsigned mask)
{
    unsigned best = MAX ? 0 : 0xffffffffu;
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1) {
            const unsigned x = ((fm_emu_vote *)all[l])->value;
            best             = (x > best) == MAX ? x : best;
        }
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1) ((fm_emu_vote *)all[l])->got = best;
}

FM_EMU unsigned __reduce_max_sync(unsigned mask, unsigned x)
{
    fm_emu_vote v = {x, 0};
    fm_emu_meet("__reduce_max_sync", mask, &v, fm_emu_reduce<true>);
    return v.got;
}
FM_EMU unsigned __reduce_min_sync(unsigned mask, unsigned x)
{
    fm_emu_vote v = {x, 0};
    fm_emu_meet("__reduce_min_sync", mask, &v, fm_emu_reduce<false>);
    return v.got;
}

/* A block-wide count, with the barrier it implies. */
FM_EMU int __syncthreads_count(int yes)
{
    static int count;
    __syncthreads();
    count = 0;
    __syncthreads();
    count += yes != 0;
    __syncthreads();
    const int n = count;
    __syncthreads();
    return n;
}
FM_EMU int __syncthreads_or(int yes) { return __syncthreads_count(yes) != 0; }

#endif
