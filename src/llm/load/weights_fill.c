/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces are cut into units of about 2 MB, so that an embedding does not keep
 * one thread busy while the others wait, and units are dealt out in order. */
#include "llm/load/weights_fill.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/progress.h"
#include "llm/load/fill_internal.h"

enum { UNIT_BYTES = 2 << 20 };

typedef struct {
    int32_t piece;
    int32_t begin, end; /* panels, rows or heads, by the piece's kind */
} unit;

typedef struct {
    unit    *unit;
    size_t   n, cap;
    uint64_t bytes; /* of all */
    uint64_t made;  /* bytes that the sink fills by other means */
} unit_list;

/* Parts a piece can be cut into, and how much each stores. */
static int32_t parts(const fm_weights *w, const fm_piece *p, size_t *part_bytes)
{
    const fm_model_config *c = w->config;
    switch (p->kind) {
    case FM_PIECE_VECTOR: *part_bytes = (size_t)p->n * sizeof(float); return 1;
    case FM_PIECE_TABLE: *part_bytes = (size_t)p->k * fm_dtype_bytes(w->act); return (int32_t)p->n;
    case FM_PIECE_MATRIX:
    case FM_PIECE_GATE_UP:
        *part_bytes = fm_panel_bytes(p->matrix->dtype, p->matrix->k);
        return (p->matrix->n + FM_PANEL - 1) / FM_PANEL;
    case FM_PIECE_KV_B:
        *part_bytes = (size_t)((w->packing == FM_PACK_ROWS ? 1 : 2) * c->nope + c->v_dim) *
                      (size_t)c->kv_lora * fm_dtype_bytes(w->act);
        return (int32_t)(p->n / (c->nope + c->v_dim));
    }
    return 0;
}

static fm_status add_units(unit_list *l, const fm_weights *w, int32_t piece)
{
    size_t        part_bytes = 0;
    const int32_t n          = parts(w, &w->piece[piece], &part_bytes);
    const int32_t each       = part_bytes < UNIT_BYTES ? (int32_t)(UNIT_BYTES / part_bytes) : 1;

    for (int32_t i = 0; i < n; i += each) {
        if (l->n == l->cap) {
            const size_t cap  = l->cap ? l->cap * 2 : 1024;
            unit        *more = realloc(l->unit, cap * sizeof *more);
            if (!more) return fm_fail(FM_E_OOM, "no memory for the list of work");
            l->unit = more;
            l->cap  = cap;
        }
        l->unit[l->n++] = (unit){piece, i, n - i < each ? n : i + each};
    }
    l->bytes += (uint64_t)n * part_bytes;
    return FM_OK;
}

static uint64_t unit_bytes(const fm_weights *w, const unit *u)
{
    size_t part_bytes = 0;
    parts(w, &w->piece[u->piece], &part_bytes);
    return (uint64_t)(u->end - u->begin) * part_bytes;
}

static fm_status list_units(unit_list *l, const fm_weights *w, const fm_weights_sink *sink)
{
    for (int32_t i = 0; i < w->n_piece; i++) {
        size_t part_bytes = 0;
        if (sink && sink->make && sink->make(sink->ctx, &w->piece[i]))
            l->made += (uint64_t)parts(w, &w->piece[i], &part_bytes) * part_bytes;
        else
            FM_TRY(add_units(l, w, i));
    }
    return FM_OK;
}

static void fill_unit(fm__fill *f, const unit *u)
{
    const fm_piece *p = &f->w->piece[u->piece];
    switch (p->kind) {
    case FM_PIECE_VECTOR: fm__fill_vector(f, p); break;
    case FM_PIECE_TABLE: fm__fill_table(f, p, u->begin, u->end); break;
    case FM_PIECE_MATRIX: fm__fill_matrix(f, p, u->begin, u->end); break;
    case FM_PIECE_GATE_UP: fm__fill_gate_up(f, p, u->begin, u->end); break;
    case FM_PIECE_KV_B: fm__fill_kv_b(f, p, u->begin, u->end); break;
    }
}

/* The file pages of a unit some way ahead, while this one is being packed. */
static void prefetch(const fm__fill *f, const unit *u)
{
    const fm_piece        *p     = &f->w->piece[u->piece];
    const fm_model_config *c     = f->w->config;
    const int              step  = p->kind == FM_PIECE_MATRIX    ? FM_PANEL
                                   : p->kind == FM_PIECE_GATE_UP ? FM_PANEL / 2
                                   : p->kind == FM_PIECE_KV_B    ? c->nope + c->v_dim
                                                                 : 1;
    const int64_t          begin = p->row0 + (int64_t)u->begin * step,
                  end            = p->row0 + (int64_t)u->end * step;
    fm__prefetch(f, p->tensor, begin, end);
    if (p->kind == FM_PIECE_GATE_UP) fm__prefetch(f, p->tensor2, begin, end);
}

typedef struct {
    const unit_list *list;
    atomic_size_t    next;
    atomic_ullong    done_bytes;
    fm_progress     *bar; /* NULL: none; drawn by thread 0 alone */
} shared_work;

static void work(fm__fill *f, shared_work *s, int thread, int n_thread)
{
    const unit_list *l = s->list;
    for (size_t i; (i = atomic_fetch_add(&s->next, 1)) < l->n;) {
        const size_t ahead = i + 2 * (size_t)n_thread;
        if (ahead < l->n) prefetch(f, &l->unit[ahead]);
        fill_unit(f, &l->unit[i]);
        const uint64_t done = atomic_fetch_add(&s->done_bytes, unit_bytes(f->w, &l->unit[i]));
        if (s->bar && thread == 0) fm_progress_show(s->bar, (double)done, NULL);
    }
}

/* Scratch for every thread comes before the first unit: afterwards nothing
 * can fail. */
static fm_status run(fm_weights *w, const fm_source *src, int n_thread, shared_work *s,
                     const fm_weights_sink *sink)
{
    fm__fill *f  = calloc((size_t)n_thread, sizeof *f);
    fm_status rc = f ? FM_OK : fm_fail(FM_E_OOM, "no memory to load weights");
    for (int t = 0; rc == FM_OK && t < n_thread; t++) {
        rc          = fm__fill_init(&f[t], w, src);
        f[t].sink   = sink;
        f[t].thread = t;
    }
    if (rc == FM_OK) {
#pragma omp parallel num_threads(n_thread)
        work(&f[omp_get_thread_num()], s, omp_get_thread_num(), n_thread);
    }
    for (int t = 0; f && t < n_thread; t++) fm__fill_fini(&f[t]);
    free(f);
    return rc;
}

fm_status fm_weights_fill(fm_weights *w, const fm_source *s, int n_thread, int show_progress)
{
    return fm_weights_fill_to(w, s, n_thread, show_progress, NULL);
}

fm_status fm_weights_fill_to(fm_weights *w, const fm_source *s, int n_thread, int show_progress,
                             const fm_weights_sink *sink)
{
    FM_BUG_UNLESS(!sink || w->packing == FM_PACK_ROWS);
    unit_list l = {0};
    show_progress |= fm_progress_is_watched();
    FM_TRY(fm_weights_check(w, s));
    fm_progress bar = fm_progress_begin("weights", 0);
    fm_status   rc  = list_units(&l, w, sink);
    if (rc == FM_OK) {
        shared_work what = {.list = &l, .bar = show_progress ? &bar : NULL};
        char        note[32];
        bar.total = (double)l.bytes;
        snprintf(note, sizeof note, "%.2f GB", (double)(l.bytes + l.made) * 1e-9);
        rc = run(w, s, n_thread > 0 ? n_thread : 1, &what, sink);
        if (sink && sink->wait) sink->wait(sink->ctx);
        if (show_progress) fm_progress_end(&bar, note);
    }
    free(l.unit);
    return rc;
}
