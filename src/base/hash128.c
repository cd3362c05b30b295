/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash128.h"

#define XXH_INLINE_ALL /* a header, so that no library is needed at run time */
#include <xxhash.h>

fm_hash128 fm_hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
    const XXH128_hash_t h = XXH3_128bits_withSeed(bytes, n, seed);
    return (fm_hash128){h.low64, h.high64};
}
