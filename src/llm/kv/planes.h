/* SPDX-License-Identifier: Apache-2.0 */
/* What a model caches per token: planes, each a number of elements of one type in each of some
 * layers. A model declares its planes; the memory plan, the pools of the back ends and the code
 * that moves pages handle planes and need not know what they mean.
 *
 *     pool of n_slot token slots (pages * page size), plane after plane:
 *         plane 0   layer 0: slot 0, slot 1, ...   layer 1: ...
 *         plane 1   ...
 *
 * A token's bytes of one plane and layer are contiguous; a page is one stretch
 * per plane and layer. */
#ifndef FM_LLM_KV_PLANES_H
#define FM_LLM_KV_PLANES_H

#include <stddef.h>

#include "base/number.h"

typedef enum {
    FM_PLANE_LATENT,      /* compressed keys and values with the rotary key */
    FM_PLANE_DRAFT,       /* the MTP layer's; behind the others', as one more layer of them */
    FM_PLANE_SCALE,       /* of an 8-bit latent, one per token */
    FM_PLANE_DRAFT_SCALE, /* the MTP layer's, behind the others' */
    FM_N_PLANE_KIND
} fm_plane_kind;

typedef struct {
    fm_plane_kind kind;
    int           width; /* numbers of one token in one layer */
    fm_dtype      dtype;
    int           n_layer; /* on this rank */
} fm_plane;

typedef struct {
    fm_plane plane[FM_N_PLANE_KIND];
    int      n;
} fm_planes;

static inline size_t fm_plane_token_bytes(const fm_plane *p)
{
    return (size_t)p->width * fm_dtype_bytes(p->dtype);
}

const fm_plane *fm_planes_find(const fm_planes *p, fm_plane_kind kind); /* NULL: it has none */
size_t          fm_planes_page_bytes(const fm_planes *p, int page_size);

/* Where a plane begins in a pool of n_slot slots. */
size_t fm_planes_offset(const fm_planes *p, const fm_plane *which, size_t n_slot);

/* Copies one page between a pool in this process's memory and an image of it, where its
 * stretches lie one after the other: plane after plane, layer after layer. */
void fm_planes_page_out(const fm_planes *p, const char *pool, size_t n_slot, int page_size,
                        int page, char *image);
void fm_planes_page_in(const fm_planes *p, char *pool, size_t n_slot, int page_size, int page,
                       const char *image);

const char *fm_planes_type(const fm_planes *p); /* of the widest: "bfloat16" */

#endif
