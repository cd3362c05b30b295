/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of the pool, copied to host memory and back on a stream of their own, beside computing.
 *
 *     compute   ... pass k-1 | here ─ pass k ──────── | waits for done ─ pass k+1
 *     copies                    └ waits ─ copies ─ done
 *
 * Copies see what passes before them wrote, in the order they were asked for.  The pass right
 * behind them does not wait, unless it reads what comes in or may overwrite what is copied out;
 * every later one does.
 *
 * A page is one stretch per plane and layer of the pool.  Pages that are copied together are
 * gathered on the device into images one behind the other, and images whose slots in host memory
 * are neighbours cross the link in one copy:
 *
 *     pool ──gather──> stage ──one copy per run of slots──> host          and back, scattered
 *
 * Pages that come in arrive some layers at a time, if there are enough of them: a pass that waits
 * for them starts when the first layers are there (fm__cuda_copies_layer). */

#include "llm/kernel/cuda/rows/stage.h"
#include "llm/op/cuda/cuda_internal.h"

enum { NONE, BEFORE_PASS, DURING_PASS }; /* where computing is, seen from the last copies */

enum { LEAST_TRANSFER = 1 << 19 }; /* bytes; layers are not divided into smaller copies */

fm_status fm__cuda_copies_create(fm_cuda_copies *c)
{
    FM_TRY(fm_cuda_stream_create(&c->stream));
    FM_TRY(fm_cuda_mark_create(&c->here));
    FM_TRY(fm_cuda_mark_create(&c->done));
    for (int i = 0; i < FM_CUDA_LAYER_GROUPS; i++) FM_TRY(fm_cuda_mark_create(&c->arrived[i]));
    for (int i = 0; i < FM_CUDA_COPIES; i++) FM_TRY(fm_cuda_mark_create(&c->made[i]));
    return FM_OK;
}

void fm__cuda_copies_destroy(fm_cuda_copies *c)
{
    if (c->stream) (void)fm_cuda_stream_wait(c->stream);
    fm_cuda_mark_destroy(c->here);
    fm_cuda_mark_destroy(c->done);
    for (int i = 0; i < FM_CUDA_LAYER_GROUPS; i++) fm_cuda_mark_destroy(c->arrived[i]);
    for (int i = 0; i < FM_CUDA_COPIES; i++) fm_cuda_mark_destroy(c->made[i]);
    fm_cuda_stream_destroy(c->stream);
}

/* --- what is copied --------------------------------------------------------- */

/* Some layers of every plane; of planes with one layer, the MTP layer's, the last group has it. */
static fm_range layers_of(const fm_plane *q, int group, int n_group)
{
    return (fm_range){q->n_layer * group / n_group, q->n_layer * (group + 1) / n_group};
}

/* A part of an image that is contiguous there and in the stage. */
typedef struct {
    size_t at, staged_at, bytes;
} piece;

/* What the kernel and the link copy of a group of layers: images of these layers alone lie in the
 * stage.  Returns the number of pieces; planes that are neighbours in an image are one. */
static int divide(fm_run *r, int group, int n_group, fm_cuda_stage_args *a,
                  piece out[FM_N_PLANE_KIND])
{
    const fm_planes *p      = &r->limits.planes;
    const size_t     ps     = (size_t)r->limits.page_size, n_slot = (size_t)r->limits.n_page * ps;
    size_t           before = 0; /* in the image */
    int              n      = 0;
    for (int i = 0; i < p->n; i++) {
        const fm_plane *q     = &p->plane[i];
        const fm_range  some  = layers_of(q, group, n_group);
        const size_t    width = fm_plane_token_bytes(q) * ps, layer = fm_plane_token_bytes(q) * n_slot;
        const piece     own   = {before + (size_t)some.begin * width, a->image_bytes,
                                 (size_t)fm_range_len(some) * width};
        before += (size_t)q->n_layer * width;
        if (!own.bytes) continue;
        a->plane[a->n_plane++] = (fm_cuda_stage_plane){
            .pool    = fm__gpu(r)->kv + fm_planes_offset(p, q, n_slot) + (size_t)some.begin * layer,
            .layer   = layer,
            .width   = width,
            .at      = own.staged_at,
            .n_layer = fm_range_len(some)};
        a->image_bytes += own.bytes;
        if (n && out[n - 1].at + out[n - 1].bytes == own.at)
            out[n - 1].bytes += own.bytes;
        else
            out[n++] = own;
    }
    return n;
}

/* How many of the pages lie one behind the other in host memory, and how far apart. */
static int run_of(const fm_page_copy *c, int n, ptrdiff_t *stride)
{
    int k   = 1;
    *stride = n > 1 ? c[1].image - c[0].image : 0;
    if (*stride <= 0) return 1;
    while (k < n && c[k].image - c[k - 1].image == *stride) k++;
    return k;
}

static int n_runs(const fm_page_copy *c, int n)
{
    int       runs = 0;
    ptrdiff_t stride;
    for (int i = 0; i < n; i += run_of(c + i, n - i, &stride)) runs++;
    return runs;
}

/* Between the stage and host memory, run by run. */
static fm_status cross(fm_cuda_run *g, const fm_page_copy *c, int n, const fm_cuda_stage_args *a,
                       piece what)
{
    ptrdiff_t stride;
    for (int i = 0, k; i < n; i += k) {
        k                = run_of(c + i, n - i, &stride);
        const fm_rows_copy rows = {.device        = a->image + (size_t)i * a->image_bytes + what.staged_at,
                                   .device_stride = a->image_bytes,
                                   .host          = c[i].image + what.at,
                                   .host_stride   = k > 1 ? (size_t)stride : what.bytes,
                                   .width         = what.bytes,
                                   .n             = k};
        FM_TRY(a->is_out ? fm_cuda_download_rows(&rows, g->copies.stream)
                         : fm_cuda_upload_rows(&rows, g->copies.stream));
        g->copies.n_transfer++;
    }
    return FM_OK;
}

/* As many pages as the stage holds. */
static fm_status copy_some(fm_run *r, const fm_page_copy *c, int n, fm_cuda_stage_args *a,
                           const piece *what, int n_piece)
{
    fm_cuda_run *g = fm__gpu(r);
    a->n_page      = n;
    for (int i = 0; i < n; i++) a->page[i] = c[i].page;
    if (a->is_out) FM_TRY(fm_cuda_stage(a, g->copies.stream));
    for (int i = 0; i < n_piece; i++) FM_TRY(cross(g, c, n, a, what[i]));
    return a->is_out ? FM_OK : fm_cuda_stage(a, g->copies.stream);
}

static fm_status copy_group(fm_run *r, const fm_page_copy *c, int n, int group, int n_group)
{
    fm_cuda_stage_args a    = {.image = fm__gpu(r)->copies.stage, .is_out = c->is_out};
    const int          most = r->limits.n_staged;
    piece              what[FM_N_PLANE_KIND];
    const int          n_piece = divide(r, group, n_group, &a, what);
    for (int i = 0; i < n; i += most)
        FM_TRY(copy_some(r, c + i, fm__cuda_least(n - i, most), &a, what, n_piece));
    return FM_OK;
}

/* Of one direction; layer group by layer group where that leaves large transfers. */
static int groups_for(const fm_run *r, const fm_page_copy *c, int n)
{
    const size_t all = (size_t)n * fm_planes_page_bytes(&r->limits.planes, r->limits.page_size);
    const size_t fit = all / (size_t)n_runs(c, n) / LEAST_TRANSFER;
    const int    most = fm__cuda_least(r->limits.planes.plane[0].n_layer, FM_CUDA_LAYER_GROUPS);
    if (c->is_out || fit < 2 || most < 2) return 1;
    return fit < (size_t)most ? (int)fit : most;
}

/* --- when ------------------------------------------------------------------- */

/* The compute stream waits for the last copies: for all of them, or layer by layer. */
static fm_status join(fm_cuda_run *g, int by_layer)
{
    fm_cuda_copies *c = &g->copies;
    if (c->at == NONE) return FM_OK;
    c->at      = NONE;
    c->awaited = 0;
    c->n_due   = by_layer ? c->n_group : 0;
    return c->n_due ? FM_OK : fm_cuda_mark_wait(c->done, g->stream);
}

/* Neighbours in the list that go the same way are copied together.  Pages arrive by layers where all
 * come in: copies out must have ended before a pass overwrites any layer. */
static fm_status copy_all(fm_run *r, const fm_page_copy *copy, int n)
{
    fm_cuda_copies *c = &fm__gpu(r)->copies;
    c->n_group        = 0;
    for (int i = 0, k; i < n; i += k) {
        for (k = 1; i + k < n && copy[i + k].is_out == copy[i].is_out; k++) continue;
        const int n_group = k == n ? groups_for(r, copy, n) : 1;
        for (int g = 0; g < n_group; g++) {
            FM_TRY(copy_group(r, copy + i, k, g, n_group));
            if (n_group > 1) FM_TRY(fm_cuda_mark_set(c->arrived[g], c->stream));
        }
        if (n_group > 1) c->n_group = n_group;
    }
    return FM_OK;
}

fm_status fm__cuda_copy_pages(fm_run *r, const fm_page_copy *copy, int n)
{
    fm_cuda_run    *g      = fm__gpu(r);
    fm_cuda_copies *c      = &g->copies;
    int             is_now = 0;
    FM_TRY(join(g, 0));
    FM_TRY(fm_cuda_mark_set(c->here, g->stream));
    FM_TRY(fm_cuda_mark_wait(c->here, c->stream));
    FM_TRY(copy_all(r, copy, n));
    FM_TRY(fm_cuda_mark_set(c->done, c->stream));
    FM_TRY(fm_cuda_mark_set(c->made[++c->n_asked % FM_CUDA_COPIES], c->stream));
    for (int i = 0; i < n; i++) is_now |= copy[i].is_now;
    c->at = is_now ? DURING_PASS : BEFORE_PASS;
    return FM_OK;
}

fm_status fm__cuda_copies_pass(fm_cuda_run *g, int is_whole)
{
    if (g->copies.at == DURING_PASS) return join(g, !is_whole);
    if (g->copies.at == BEFORE_PASS) g->copies.at = DURING_PASS;
    return FM_OK;
}

fm_status fm__cuda_copies_layer(fm_run *r, int layer)
{
    fm_cuda_run    *g = fm__gpu(r);
    fm_cuda_copies *c = &g->copies;
    while (c->awaited < c->n_due &&
           layer >= layers_of(&r->limits.planes.plane[0], c->awaited, c->n_due).begin)
        FM_TRY(fm_cuda_mark_wait(c->arrived[c->awaited++], g->stream));
    return FM_OK;
}

fm_status fm__cuda_copies_end(fm_cuda_run *g)
{
    fm_cuda_copies *c     = &g->copies;
    const int       waits = c->awaited < c->n_due;
    c->n_due              = 0;
    return waits ? fm_cuda_mark_wait(c->done, g->stream) : FM_OK;
}

/* A mark that a later call has set again is reached later: what was made is never counted early. */
fm_status fm__cuda_copied(fm_run *r, int waits, uint32_t *n_made)
{
    fm_cuda_copies *c       = &fm__gpu(r)->copies;
    int             reached = 1;
    if (waits) {
        FM_TRY(fm_cuda_stream_wait(c->stream));
        c->n_made = c->n_asked;
    }
    while (reached && c->n_made != c->n_asked) {
        FM_TRY(fm_cuda_mark_is_reached(c->made[(c->n_made + 1) % FM_CUDA_COPIES], &reached));
        c->n_made += (uint32_t)reached;
    }
    *n_made = c->n_made;
    return FM_OK;
}
