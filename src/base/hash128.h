/* SPDX-License-Identifier: Apache-2.0 */
/* A 128-bit hash of bytes (XXH3): the same on every machine and for every version of the library.
 * Not cryptographic: use it for identities and checksums, never as a signature. */
#ifndef FM_BASE_HASH128_H
#define FM_BASE_HASH128_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t lo, hi;
} fm_hash128;

fm_hash128 fm_hash_bytes(const void *bytes, size_t n, uint64_t seed);

static inline int fm_hash_equal(fm_hash128 a, fm_hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

#endif
