/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers as pure functions of (key, counter): any thread, rank or
 * device that asks for number i of key k gets the same 32 bits.  Integer
 * arithmetic only, so a GPU kernel can repeat it bit for bit. */
#ifndef FM_BASE_RNG_H
#define FM_BASE_RNG_H

#include <stdint.h>

#include "base/host_device.h"

/* Bijective mixing of 32 bits (every input bit reaches every output bit). */
FM_HD static inline uint32_t fm_mix32(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

/* Number i of the stream `key`. */
FM_HD static inline uint32_t fm_rng_u32(uint64_t key, uint64_t i)
{
    const uint32_t hi = fm_mix32((uint32_t)(i >> 32) ^ (uint32_t)(key >> 32));
    return fm_mix32((uint32_t)i * 0x9e3779b9u + (fm_mix32((uint32_t)key ^ hi)));
}

/* A key from a name, e.g. a tensor's (FNV-1a, 64 bits, then spread). */
FM_HD static inline uint64_t fm_rng_key(const char *name, uint64_t seed)
{
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

#endif
