/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kv/planes.h"

#include <string.h>

const fm_plane *fm_planes_find(const fm_planes *p, fm_plane_kind kind)
{
    for (int i = 0; i < p->n; i++)
        if (p->plane[i].kind == kind) return &p->plane[i];
    return NULL;
}

static size_t slot_bytes(const fm_plane *p)
{
    return (size_t)p->n_layer * fm_plane_token_bytes(p);
}

size_t fm_planes_page_bytes(const fm_planes *p, int page_size)
{
    size_t sum = 0;
    for (int i = 0; i < p->n; i++) sum += slot_bytes(&p->plane[i]);
    return sum * (size_t)page_size;
}

size_t fm_planes_offset(const fm_planes *p, const fm_plane *which, size_t n_slot)
{
    size_t at = 0;
    for (const fm_plane *q = p->plane; q != which; q++) at += slot_bytes(q) * n_slot;
    return at;
}

/* The contiguous pieces of a page, one after the other. */
typedef struct {
    int    plane, layer;
    size_t at, image_at, bytes; /* in the pool, in the image */
} stretch;

static int next_stretch(stretch *s, const fm_planes *p, size_t n_slot, int page_size, int page)
{
    s->image_at += s->bytes;
    if (s->bytes && ++s->layer == p->plane[s->plane].n_layer) {
        s->layer = 0;
        s->plane++;
    }
    while (s->plane < p->n && !p->plane[s->plane].n_layer) s->plane++;
    if (s->plane == p->n) return 0;
    const fm_plane *q     = &p->plane[s->plane];
    const size_t    token = fm_plane_token_bytes(q);
    s->bytes              = token * (size_t)page_size;
    s->at = fm_planes_offset(p, q, n_slot) + ((size_t)s->layer * n_slot) * token + (size_t)page * s->bytes;
    return 1;
}

void fm_planes_page_out(const fm_planes *p, const char *pool, size_t n_slot, int page_size,
                        int page, char *image)
{
    for (stretch s = {0}; next_stretch(&s, p, n_slot, page_size, page);)
        memcpy(image + s.image_at, pool + s.at, s.bytes);
}

void fm_planes_page_in(const fm_planes *p, char *pool, size_t n_slot, int page_size, int page,
                       const char *image)
{
    for (stretch s = {0}; next_stretch(&s, p, n_slot, page_size, page);)
        memcpy(pool + s.at, image + s.image_at, s.bytes);
}

const char *fm_planes_type(const fm_planes *p)
{
    static const char *const name[] = {[FM_F32] = "float32", [FM_BF16] = "bfloat16",
                                       [FM_FP8] = "fp8_e4m3"};
    const fm_plane *widest = &p->plane[0];
    for (int i = 1; i < p->n; i++)
        if (p->plane[i].width > widest->width) widest = &p->plane[i];
    return name[widest->dtype];
}
