/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/cuda/weights.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/device.h"
#include "llm/kernel/cuda/weights/dummy.h"

/* A thread fills one half of its buffer while the other travels. */
enum { HALF_BYTES = 8 << 20 };

typedef struct {
    fm_stream stream;
    char     *buffer; /* pinned, two halves */
    int       half;
    size_t    used;
} lane;

typedef struct {
    const fm_source *source;
    lane            *lane; /* [n_thread] */
    int              n_lane;
    pthread_mutex_t  lock; /* of the two below */
    fm_status        fault;
    char             why[240];
} upload;

static void note(upload *u, fm_status rc)
{
    if (rc == FM_OK) return;
    pthread_mutex_lock(&u->lock);
    if (u->fault == FM_OK) snprintf(u->why, sizeof u->why, "%s", fm_why());
    u->fault = rc;
    pthread_mutex_unlock(&u->lock);
}

static void put(void *ctx, int thread, void *dst, const void *src, size_t bytes)
{
    upload *u = ctx;
    lane   *l = &u->lane[thread];
    for (size_t at = 0; at < bytes;) {
        if (l->used == HALF_BYTES) { /* the other half's copies are older: wait for all */
            note(u, fm_cuda_stream_wait(l->stream));
            l->half ^= 1;
            l->used = 0;
        }
        const size_t room = HALF_BYTES - l->used, n = bytes - at < room ? bytes - at : room;
        char        *from = l->buffer + (size_t)l->half * HALF_BYTES + l->used;
        memcpy(from, (const char *)src + at, n);
        note(u, fm_cuda_upload((char *)dst + at, from, n, l->stream));
        l->used += n;
        at += n;
    }
}

/* --- dummy values --------------------------------------------------------- */

typedef struct {
    int group, spread, first;
} spacing;

static int make_rows(upload *u, const char *tensor, const fm_piece *p, void *dst, fm_dtype kept,
                     spacing s)
{
    fm_tensor     t;
    fm_dummy_rule rule;
    if (fm_source_find(u->source, tensor, &t) != FM_OK || t.dtype != kept) return 0;
    if (!fm_source_dummy_rule(u->source, &t, &rule)) return 0;
    const fm_cuda_dummy_args a = {.dst    = dst,
                                  .type   = kept,
                                  .key    = rule.key,
                                  .centre = rule.centre,
                                  .step   = rule.step,
                                  .cols   = p->cols,
                                  .row0   = p->row0,
                                  .n      = p->n,
                                  .col0   = p->col0,
                                  .k      = p->k,
                                  .ld     = p->k,
                                  .group  = s.group,
                                  .spread = s.spread,
                                  .first  = s.first};
    note(u, fm_cuda_dummy(&a, u->lane[0].stream));
    return 1;
}

static size_t n_scale(const fm_piece *p)
{
    const int64_t rows = p->n ? p->row0 % FM_FP8_BLOCK + p->n : 0;
    return (size_t)((rows + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK) *
           (size_t)((p->k + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK);
}

/* One number for all blocks of a dummy tensor. */
static int make_scales(upload *u, const char *tensor, const fm_piece *p, float *to)
{
    const size_t  n = n_scale(p);
    char          name[140];
    fm_tensor     t;
    fm_dummy_rule rule;
    float        *all = malloc((n ? n : 1) * sizeof *all);
    snprintf(name, sizeof name, "%s_scale_inv", tensor);
    const int ok = all && fm_source_find(u->source, name, &t) == FM_OK &&
                   fm_source_dummy_rule(u->source, &t, &rule) && rule.step == 0;
    for (size_t i = 0; ok && i < n; i++) all[i] = rule.centre;
    if (ok) put(u, 0, to, all, n * sizeof *all);
    free(all);
    return ok;
}

static int make_pair(upload *u, const fm_piece *p)
{
    const fm_matrix *m = p->matrix;
    return make_rows(u, p->tensor, p, m->panels, m->dtype, (spacing){16, 32, 0}) &&
           make_rows(u, p->tensor2, p, m->panels, m->dtype, (spacing){16, 32, 16}) &&
           (!m->scale || (make_scales(u, p->tensor, p, m->scale) &&
                          make_scales(u, p->tensor2, p, m->scale + n_scale(p))));
}

/* Vectors are small, and a tensor whose type changes on loading is not generated in its final type:
 * both are made on the host and copied. */
static int make(void *ctx, const fm_piece *p)
{
    const spacing plain = {1, 1, 0};
    upload       *u     = ctx;
    switch (p->kind) {
    case FM_PIECE_TABLE: return make_rows(u, p->tensor, p, p->table, FM_BF16, plain);
    case FM_PIECE_MATRIX:
        return make_rows(u, p->tensor, p, p->matrix->panels, p->matrix->dtype, plain) &&
               (!p->matrix->scale || make_scales(u, p->tensor, p, p->matrix->scale));
    case FM_PIECE_GATE_UP: return make_pair(u, p);
    case FM_PIECE_KV_B: return make_rows(u, p->tensor, p, p->attn->k_up[0].panels, FM_BF16, plain);
    case FM_PIECE_VECTOR: break;
    }
    return 0;
}

/* --- all of it ------------------------------------------------------------ */

static fm_status open_lanes(upload *u, int n_thread)
{
    u->lane = calloc((size_t)n_thread, sizeof *u->lane);
    if (!u->lane) return fm_fail(FM_E_OOM, "loading weights");
    for (u->n_lane = 0; u->n_lane < n_thread; u->n_lane++) {
        lane *l = &u->lane[u->n_lane];
        FM_TRY(fm_cuda_stream_create(&l->stream));
        FM_TRY(fm_cuda_alloc_pinned((void **)&l->buffer, 2 * (size_t)HALF_BYTES, "loading weights"));
    }
    return FM_OK;
}

static void close_lanes(upload *u, int n_thread)
{
    for (int i = 0; u->lane && i < n_thread; i++) {
        fm_cuda_stream_destroy(u->lane[i].stream);
        fm_cuda_free_pinned(u->lane[i].buffer);
    }
    free(u->lane);
}

static void wait_for_all(void *ctx)
{
    upload *u = ctx;
    for (int i = 0; i < u->n_lane; i++) note(u, fm_cuda_stream_wait(u->lane[i].stream));
}

fm_status fm_cuda_weights_fill(fm_weights *w, const fm_source *source, int n_thread,
                               int show_progress)
{
    upload                u    = {.source = source, .lock = PTHREAD_MUTEX_INITIALIZER};
    const fm_weights_sink sink = {put, make, wait_for_all, &u};
    fm_status             rc   = open_lanes(&u, n_thread);
    if (rc == FM_OK) rc = fm_weights_fill_to(w, source, n_thread, show_progress, &sink);
    wait_for_all(&u); /* also when filling stopped early */
    close_lanes(&u, n_thread);
    if (rc == FM_OK && u.fault != FM_OK) rc = fm_fail(u.fault, "%s", u.why);
    return rc;
}
