/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a page of a prefix: a hash of its tokens chained to the
 * identity of the page before it, so that equal identities mean equal prefixes
 * from position 0 to the page's end.
 *
 *     root(salt) ──tokens of page 0──> id 0 ──tokens of page 1──> id 1 ...
 *
 * It is the same in every process and on every host, so files, servers and
 * routers can name a page by it.  The salt stands for whatever else decides what
 * a page holds; where that is known from elsewhere it is 0. */
#ifndef FM_LLM_KV_PAGE_HASH_H
#define FM_LLM_KV_PAGE_HASH_H

#include "base/hash128.h"

typedef fm_hash128 fm_page_hash;

enum { FM_PAGE_HASH_TOKENS = 64 }; /* the most of one page */

fm_page_hash fm_page_hash_root(uint64_t salt);
fm_page_hash fm_page_hash_next(fm_page_hash parent, const int32_t *token, int n_token);

#endif
