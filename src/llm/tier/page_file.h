/* SPDX-License-Identifier: Apache-2.0 */
/* A page of the cache as a file: one header block, then the bytes of every
 * plane and layer, one after the other.
 *
 *     0       header: what the page is of, its key and tokens, two checksums
 *     4096    plane 0: layer 0, layer 1, ...   plane 1: ...
 *     ...     zeros up to a multiple of 4096, so that direct I/O is possible
 *
 * Nothing in a file is believed before it is checked: the header's checksum, then
 * that the file is of this model, format and prefix, then the bytes' checksum.
 * Numbers are in the host's order; a host of the other order sees no header. */
#ifndef FM_LLM_TIER_PAGE_FILE_H
#define FM_LLM_TIER_PAGE_FILE_H

#include "llm/kv/page_hash.h"
#include "llm/kv/planes.h"

enum { FM_PAGE_FILE_VERSION = 1, FM_PAGE_FILE_BLOCK = 4096 };

/* What all pages of a model in one process have in common. */
typedef struct {
    fm_hash128 model; /* weights, arithmetic and layers: whatever decides the bits */
    fm_planes  planes;
    int        page_size; /* tokens */
} fm_page_format;

typedef enum {
    FM_PAGE_GOOD,
    FM_PAGE_SHORT,   /* of another length than it should be */
    FM_PAGE_FOREIGN, /* of another model, format or version, or another page */
    FM_PAGE_ALTERED, /* a checksum does not fit */
} fm_page_verdict;

size_t fm_page_file_bytes(const fm_page_format *f); /* of the whole file */

static inline char *fm_page_file_image(char *file) /* where the planes begin */
{
    return file + FM_PAGE_FILE_BLOCK;
}

/* Writes the header of a file whose planes are in place, and zeros behind them.  Returns the
 * checksum of the planes. */
fm_hash128 fm_page_file_seal(char *file, const fm_page_format *f, fm_page_hash key, const int32_t *token);

/* Is the file this page of this model?  NULL format: is it any page, unaltered? */
fm_page_verdict fm_page_file_check(const char *file, size_t n, const fm_page_format *f,
                                   fm_page_hash key, const int32_t *token);

#endif
