/* SPDX-License-Identifier: Apache-2.0 */
#include "copies_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "llm/op/cuda/cuda_internal.h"

enum { HEADER = 4096, MOST = 512 };

typedef struct {
    fm_run      run;
    fm_cuda_run gpu;
    char       *host, *pool; /* slots, pinned; the pool as it should be */
    size_t      page_bytes, stride;
} bench;

static fm_planes planes_of(const fm_copies_shape *s)
{
    const fm_dtype type = s->e4m3 ? FM_FP8 : FM_BF16;
    fm_planes      p    = {.plane = {{FM_PLANE_LATENT, s->width, type, s->n_layer}}, .n = 1};
    if (s->has_draft) p.plane[p.n++] = (fm_plane){FM_PLANE_DRAFT, s->width, type, 1};
    if (s->e4m3) p.plane[p.n++] = (fm_plane){FM_PLANE_SCALE, 1, FM_F32, s->n_layer};
    if (s->e4m3 && s->has_draft) p.plane[p.n++] = (fm_plane){FM_PLANE_DRAFT_SCALE, 1, FM_F32, 1};
    return p;
}

static fm_status open_bench(bench *b, const fm_copies_shape *s)
{
    b->run.limits = (fm_run_limits){.page_size = s->page_size, .n_page = s->n_page,
                                    .n_staged = s->n_staged, .planes = planes_of(s)};
    b->run.backend = &b->gpu;
    b->page_bytes  = fm_planes_page_bytes(&b->run.limits.planes, s->page_size);
    b->stride      = b->page_bytes + HEADER;
    const size_t pool = b->page_bytes * (size_t)s->n_page;
    FM_TRY(fm_cuda_open(&b->gpu.dev, 0));
    FM_TRY(fm_cuda_stream_create(&b->gpu.stream));
    FM_TRY(fm__cuda_copies_create(&b->gpu.copies));
    FM_TRY(fm_cuda_alloc((void **)&b->gpu.copies.stage, (size_t)s->n_staged * b->page_bytes, "stage"));
    FM_TRY(fm_cuda_alloc((void **)&b->gpu.kv, pool, "pool"));
    FM_TRY(fm_cuda_alloc_pinned((void **)&b->host, (size_t)s->n_slot * b->stride, "slots"));
    if (!(b->pool = malloc(2 * pool))) return fm_fail(FM_E_OOM, "pool");
    for (size_t i = 0; i < pool; i++) b->pool[i] = (char)fm_rng_u32(5, i);
    memset(b->host, 0, (size_t)s->n_slot * b->stride);
    FM_TRY(fm_cuda_upload(b->gpu.kv, b->pool, pool, b->gpu.stream));
    return fm_cuda_stream_wait(b->gpu.stream);
}

static void close_bench(bench *b)
{
    fm__cuda_copies_destroy(&b->gpu.copies);
    fm_cuda_free(b->gpu.copies.stage);
    fm_cuda_free(b->gpu.kv);
    fm_cuda_free_pinned(b->host);
    fm_cuda_stream_destroy(b->gpu.stream);
    free(b->pool);
}

static fm_status copy(bench *b, const int *page, const int *slot, int n, int is_out)
{
    fm_page_copy list[MOST];
    uint32_t     made = 0;
    for (int i = 0; i < n; i++)
        list[i] = (fm_page_copy){.page   = page[i],
                                 .image  = b->host + (size_t)slot[i] * b->stride + HEADER,
                                 .is_out = is_out};
    FM_TRY(fm__cuda_copy_pages(&b->run, list, n));
    FM_TRY(fm__cuda_copied(&b->run, 1, &made));
    return made == b->gpu.copies.n_asked ? FM_OK : fm_fail(FM_E_DEVICE, "copies were not counted");
}

static int count_wrong(const bench *b, const fm_copies_shape *s, const char *pool, const int *page,
                       const int *slot, int n)
{
    char *const  want   = malloc(2 * b->page_bytes), *const got = want + b->page_bytes;
    const size_t n_slot = (size_t)s->n_page * (size_t)s->page_size;
    int          wrong  = 0;
    for (int i = 0; i < n; i++) {
        fm_planes_page_out(&b->run.limits.planes, b->pool, n_slot, s->page_size, page[i], want);
        fm_planes_page_out(&b->run.limits.planes, pool, n_slot, s->page_size, page[i], got);
        wrong += memcmp(want, got, b->page_bytes) != 0 ||
                 memcmp(want, b->host + (size_t)slot[i] * b->stride + HEADER, b->page_bytes) != 0;
    }
    free(want);
    return wrong;
}

static fm_status there_and_back(bench *b, const fm_copies_shape *s, const int *page, const int *slot,
                                int n, fm_copies_result *out)
{
    const size_t bytes = b->page_bytes * (size_t)s->n_page;
    char *const  after = b->pool + bytes;
    FM_TRY(copy(b, page, slot, n, 1));
    out->n_out = b->gpu.copies.n_transfer;
    FM_TRY(fm_cuda_clear(b->gpu.kv, bytes, b->gpu.stream));
    FM_TRY(copy(b, page, slot, n, 0));
    out->n_in    = b->gpu.copies.n_transfer - out->n_out;
    out->n_group = b->gpu.copies.n_group;
    FM_TRY(fm_cuda_download(after, b->gpu.kv, bytes, b->gpu.stream));
    FM_TRY(fm_cuda_stream_wait(b->gpu.stream));
    out->n_wrong = count_wrong(b, s, after, page, slot, n);
    return FM_OK;
}

fm_copies_result fm_copy_there_and_back(const fm_copies_shape *s, const int *page, const int *slot,
                                        int n)
{
    fm_copies_result out = {0};
    bench           *b   = calloc(1, sizeof *b);
    fm_status        rc  = b ? open_bench(b, s) : FM_E_OOM;
    if (rc == FM_OK) rc = there_and_back(b, s, page, slot, n, &out);
    if (rc != FM_OK) out.why = fm_why();
    if (b) close_bench(b);
    free(b);
    return out;
}
