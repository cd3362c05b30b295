/* SPDX-License-Identifier: Apache-2.0 */
/* A second stream: with few rows a product is bound by latency, and two that do not depend on
 * each other can overlap.
 *
 *     main   h ─┬─ router ─ route ─ pairs ─ experts ─┬─ sum      h ─┬─ queries ─ rotation ─┬─ attention
 *     side      └─ shared expert ────────────────────┘              └─ latents ─ cache ────┘
 *
 * The side begins behind the last norm that was noted and ends where the main
 * stream joins it; a recorded step has the same fork and join.  Exchanges with other ranks stay
 * in the main stream. */
#include "llm/kernel/cuda/variants.h"
#include "llm/op/cuda/cuda_internal.h"

fm_status fm__cuda_side_create(fm_cuda_side *s)
{
    FM_TRY(fm_cuda_stream_create(&s->stream));
    FM_TRY(fm_cuda_mark_create(&s->begin));
    FM_TRY(fm_cuda_mark_create(&s->end));
    return fm_cuda_lt_create(&s->lt, NULL, 0);
}

void fm__cuda_side_destroy(fm_cuda_side *s)
{
    fm_cuda_lt_destroy(s->lt);
    fm_cuda_mark_destroy(s->begin);
    fm_cuda_mark_destroy(s->end);
    fm_cuda_stream_destroy(s->stream);
}

static int has_few_rows(const fm_run *r)
{
    const fm_cuda_run *g = r->backend;
    return r->n_row <= FM_CUDA_SIDE_ROWS && !g->immediate && !g->exchange.attn &&
           !fm_cuda_leaves_out(FM_VARIANT_SIDE);
}

void fm__cuda_side_note(fm_run *r)
{
    fm_cuda_run *g = fm__gpu(r);
    g->side.is_noted = r->fault == FM_OK && has_few_rows(r);
    if (g->side.is_noted) r->fault = fm_cuda_mark_set(g->side.begin, g->stream);
}

/* Stream and plans change places: what follows goes to the side. */
static void change_places(fm_cuda_run *g)
{
    const fm_stream   stream = g->stream;
    fm_cuda_lt *const lt     = g->lt;
    g->stream                = g->side.stream;
    g->lt                    = g->side.lt;
    g->side.stream           = stream;
    g->side.lt               = lt;
}

int fm__cuda_side_open(fm_run *r)
{
    fm_cuda_run *g = fm__gpu(r);
    if (!g->side.is_noted || r->fault != FM_OK) return 0;
    r->fault        = fm_cuda_mark_wait(g->side.begin, g->side.stream);
    g->side.is_open = 1;
    change_places(g);
    fm__cuda_stamps_side(r, 0);
    return 1;
}

/* What comes next goes there, too. */
void fm__cuda_side_again(fm_run *r)
{
    change_places(fm__gpu(r));
    fm__cuda_stamps_side(r, 0);
}

void fm__cuda_side_close(fm_run *r)
{
    fm_cuda_run *g = fm__gpu(r);
    fm__cuda_stamps_side(r, 1);
    fm__is_well(r, fm_cuda_mark_set(g->side.end, g->stream));
    change_places(g);
}

void fm__cuda_side_join(fm_run *r)
{
    fm_cuda_run *g = fm__gpu(r);
    if (!g->side.is_open) return;
    g->side.is_open = 0;
    fm__is_well(r, fm_cuda_mark_wait(g->side.end, g->stream));
}
