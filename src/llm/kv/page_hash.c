/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kv/page_hash.h"

#include "base/status.h"

/* Bytes are laid out little-endian whatever the host is. */
static unsigned char *put(unsigned char *at, uint64_t x, int n_byte)
{
    for (int i = 0; i < n_byte; i++) *at++ = (unsigned char)(x >> 8 * i);
    return at;
}

fm_page_hash fm_page_hash_root(uint64_t salt)
{
    unsigned char bytes[8];
    put(bytes, salt, 8);
    return fm_hash_bytes(bytes, sizeof bytes, 0);
}

fm_page_hash fm_page_hash_next(fm_page_hash parent, const int32_t *token, int n_token)
{
    unsigned char bytes[16 + 4 * FM_PAGE_HASH_TOKENS];
    FM_BUG_UNLESS(n_token > 0 && n_token <= FM_PAGE_HASH_TOKENS);
    unsigned char *at = put(put(bytes, parent.lo, 8), parent.hi, 8);
    for (int i = 0; i < n_token; i++) at = put(at, (uint32_t)token[i], 4);
    return fm_hash_bytes(bytes, (size_t)(at - bytes), 0);
}
