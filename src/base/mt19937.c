/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mt19937.h"

#include <string.h>

#include "base/status.h"

enum { N = 624, M = 397 };

static void init_genrand(fm_mt *g, uint32_t seed)
{
    g->state[0] = seed;
    for (uint32_t i = 1; i < N; i++)
        g->state[i] = 1812433253u * (g->state[i - 1] ^ g->state[i - 1] >> 30) + i;
    g->next = N;
}

static void init_by_array(fm_mt *g, const uint32_t *key, int len)
{
    init_genrand(g, 19650218u);
    uint32_t *s = g->state;
    int       i = 1, j = 0;
    for (int k = N > len ? N : len; k; k--) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1664525u) + key[j] + (uint32_t)j;
        if (++i == N) s[0] = s[N - 1], i = 1;
        if (++j == len) j = 0;
    }
    for (int k = N - 1; k; k--) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1566083941u) - (uint32_t)i;
        if (++i == N) s[0] = s[N - 1], i = 1;
    }
    s[0] = 0x80000000u;
}

void fm_mt_seed_python(fm_mt *g, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    init_by_array(g, key, key[1] ? 2 : 1);
}

void fm_mt_seed_numpy(fm_mt *g, uint32_t seed)
{
    init_genrand(g, seed);
}

static void refill(fm_mt *g)
{
    uint32_t *s = g->state;
    for (int i = 0; i < N; i++) {
        const uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % N] & 0x7fffffffu);
        s[i]             = s[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    g->next = 0;
}

uint32_t fm_mt_u32(fm_mt *g)
{
    if (g->next == N) refill(g);
    uint32_t y = g->state[g->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

static int bit_length(uint32_t m)
{
    return m ? 32 - __builtin_clz(m) : 0;
}

uint32_t fm_mt_python_below(fm_mt *g, uint32_t m)
{
    FM_BUG_UNLESS(m > 0);
    const int b = bit_length(m);
    uint32_t  r;
    do r = fm_mt_u32(g) >> (32 - b);
    while (r >= m);
    return r;
}

void fm_mt_python_shuffle(fm_mt *g, void *base, size_t n, size_t size)
{
    char *a = base, tmp[64];
    FM_BUG_UNLESS(size <= sizeof tmp);
    for (size_t i = n; i-- > 1;) {
        const size_t j = fm_mt_python_below(g, (uint32_t)(i + 1));
        memcpy(tmp, a + i * size, size);
        memcpy(a + i * size, a + j * size, size);
        memcpy(a + j * size, tmp, size);
    }
}

int64_t fm_mt_numpy_randint(fm_mt *g, int64_t lo, int64_t hi)
{
    FM_BUG_UNLESS(hi > lo && hi - lo <= UINT32_MAX);
    const uint32_t range = (uint32_t)(hi - 1 - lo);
    if (range == 0) return lo;
    const uint32_t mask = (uint32_t)((1ull << bit_length(range)) - 1);
    uint32_t       r;
    do r = fm_mt_u32(g) & mask;
    while (r > range);
    return lo + r;
}

double fm_mt_double(fm_mt *g)
{
    const uint32_t a = fm_mt_u32(g) >> 5, b = fm_mt_u32(g) >> 6;
    return ((double)a * 67108864.0 + (double)b) * (1.0 / 9007199254740992.0);
}
