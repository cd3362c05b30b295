/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the pool, copied to host memory and back on a stream of their own, beside computing.
 *
 *     compute   ... pass k-1 | here ─ pass k ──────── | waits for done ─ pass k+1
 *     copies                    └ waits ─ copies ─ done
 *
 * Copies see what passes before them wrote, in the order they were asked for.  The pass right
 * behind them does not wait, unless it may overwrite what is copied out; every later one
 * does.  A page is one stretch per plane and layer: one copy with a row per layer. */

#include "llm/op/cuda/cuda_internal.h"

enum { NONE, BEFORE_PASS, DURING_PASS }; /* where computing is, seen from the last copies */

fm_status fm__cuda_copies_create(fm_cuda_copies *c)
{
    FM_TRY(fm_cuda_stream_create(&c->stream));
    FM_TRY(fm_cuda_mark_create(&c->here));
    return fm_cuda_mark_create(&c->done);
}

void fm__cuda_copies_destroy(fm_cuda_copies *c)
{
    if (c->stream) (void)fm_cuda_stream_wait(c->stream);
    fm_cuda_mark_destroy(c->here);
    fm_cuda_mark_destroy(c->done);
    fm_cuda_stream_destroy(c->stream);
}

static fm_status copy_rows(char *device, size_t stride, char *host, size_t width, int n, int is_out,
                           fm_stream s)
{
    return is_out ? fm_cuda_download_rows(host, device, stride, width, n, s)
                  : fm_cuda_upload_rows(device, stride, host, width, n, s);
}

static fm_status copy_page(const fm_run *r, const fm_cuda_run *g, const fm_page_copy *c)
{
    const fm_planes *p      = &r->limits.planes;
    const size_t     ps     = (size_t)r->limits.page_size;
    const size_t     n_slot = (size_t)r->limits.n_page * ps;
    char            *image  = c->image;
    for (int i = 0; i < p->n; i++) {
        const fm_plane *q      = &p->plane[i];
        const size_t    width  = fm_plane_token_bytes(q) * ps;
        char *const     device = g->kv + fm_planes_offset(p, q, n_slot) + (size_t)c->page * width;
        FM_TRY(copy_rows(device, fm_plane_token_bytes(q) * n_slot, image, width, q->n_layer,
                         c->is_out, g->copies.stream));
        image += width * (size_t)q->n_layer;
    }
    return FM_OK;
}

/* The compute stream waits for the last copies. */
static fm_status join(fm_cuda_run *g)
{
    if (g->copies.at == NONE) return FM_OK;
    g->copies.at = NONE;
    return fm_cuda_mark_wait(g->copies.done, g->stream);
}

fm_status fm__cuda_copy_pages(fm_run *r, const fm_page_copy *copy, int n)
{
    fm_cuda_run    *g      = fm__gpu(r);
    fm_cuda_copies *c      = &g->copies;
    int             is_now = 0;
    FM_TRY(join(g));
    FM_TRY(fm_cuda_mark_set(c->here, g->stream));
    FM_TRY(fm_cuda_mark_wait(c->here, c->stream));
    for (int i = 0; i < n; i++) {
        FM_TRY(copy_page(r, g, &copy[i]));
        is_now |= copy[i].is_now;
    }
    FM_TRY(fm_cuda_mark_set(c->done, c->stream));
    c->at = BEFORE_PASS;
    return is_now ? join(g) : FM_OK;
}

fm_status fm__cuda_copies_pass(fm_cuda_run *g)
{
    if (g->copies.at == DURING_PASS) return join(g);
    if (g->copies.at == BEFORE_PASS) g->copies.at = DURING_PASS;
    return FM_OK;
}

fm_status fm__cuda_copied(fm_run *r, int waits, int *all)
{
    const fm_cuda_copies *c = &fm__gpu(r)->copies;
    *all                    = 1;
    if (waits) return fm_cuda_stream_wait(c->stream);
    return fm_cuda_stream_is_done(c->stream, all);
}
