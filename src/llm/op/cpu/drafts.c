/* SPDX-License-Identifier: Apache-2.0 */
/* What drafts need beside a decoder layer: hidden states that outlive a pass, the rows of a pass that
 * fill the cache for drafts, and the largest logit of a row. */
#include <math.h>
#include <omp.h>

#include "base/argmax.h"
#include "llm/op/cpu/cpu_internal.h"

void fm__carve_drafts(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                      const fm_run_limits *lim, fm_slab *s)
{
    const size_t rows = (size_t)lim->n_kept, out = (size_t)lim->max_out;
    if (!rows) return;
    b->kept       = fm_slab_take(s, rows * (size_t)c->hidden * b->act_bytes);
    b->word       = fm_slab_take(s, (size_t)lim->max_rows * sizeof *b->word);
    b->drafted    = fm_slab_take(s, (size_t)lim->max_draft * out * sizeof *b->drafted);
    b->best       = fm_slab_take(s, (size_t)shard->attn.n * out * sizeof *b->best);
    b->best_bytes = fm_slab_take(s, (size_t)shard->attn.n * sizeof *b->best_bytes);
    b->filling_span = fm_slab_take(s, 2 * out * sizeof *b->filling_span);
    fm__carve_embedded(b, c, shard, s);
    fm__carve_draft_head(b, c, shard, lim, s);
}

static char *kept_at(const fm_run *r, int32_t place)
{
    const fm_cpu *b = r->backend;
    FM_BUG_UNLESS(place >= 0 && place < r->limits.n_kept);
    return b->kept + (size_t)place * (size_t)r->config->hidden * b->act_bytes;
}

/* --- states ---------------------------------------------------------------- */

typedef struct {
    fm_run      *r;
    fm_cpu      *b;
    fm_act       h;
    fm_f32s      x;
    const float *norm, *w;
} states;

static const float *row_of(fm_f32s x, int i) { return x.data + (size_t)i * (size_t)x.width; }

/* The state after row `row` of the pass, in the type it is kept in. */
static void make_state(const states *a, void *to, int row)
{
    fm_row_rmsnorm(to, a->b->act, row_of(a->x, row), a->norm, a->r->config->eps, a->x.width);
}

/* The state before row i: of this pass, kept, or NULL.  `made` has room for one. */
static const void *state_before(const states *a, int i, void *made)
{
    const fm_span *s = &a->r->batch->span[a->b->row_span[i]];
    const int row    = i > s->row0 ? i - 1 : FM_STATE_OF_ROW(s->before); /* < 0: not of this pass */
    if (row < 0) return s->before > 0 ? kept_at(a->r, s->before - 1) : NULL;
    make_state(a, made, row);
    return made;
}

static void norm_state(const states *a, int i, float *wide)
{
    const fm_cpu *b = a->b;
    const int     D = a->r->config->hidden;
    char         *h = fm__act_at(b, a->h, i);
    const void   *v = state_before(a, i, h);
    if (v)
        fm_row_load(wide, b->act, v, D);
    else
        memset(wide, 0, (size_t)D * sizeof *wide);
    fm_row_rmsnorm(h, b->act, wide, a->w, a->r->config->eps, D);
}

/* A pass never reads the states it keeps: a sequence has two sets of places.  By all threads of a
 * team. */
static void keep_states(const states *a)
{
    const fm_batch *batch = a->r->batch;
#pragma omp for schedule(static)
    for (int k = 0; k < batch->n_span; k++) {
        const fm_span *s = &batch->span[k];
        for (int i = 0; i < s->n_keep; i++)
            make_state(a, kept_at(a->r, s->keep0 + i), s->row0 + s->n_row - s->n_keep + i);
    }
}

void fm__cpu_hidden(fm_run *r, fm_act h, fm_f32s x, const float *norm, const float *w)
{
    fm_cpu   *b = fm__cpu(r);
    const int n = r->batch->n_row;
    if (x.data) x.data += (size_t)b->filling_row * (size_t)x.width;
    else fm__note_spans(r); /* the first thing in a link */
    const states a = {r, b, h, x, norm, w};
#pragma omp parallel num_threads(b->n_thread) if (!fm__are_few_numbers(n, r->config->hidden))
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < n; i++) norm_state(&a, i, b->scratch[omp_get_thread_num()].row);
        if (x.data) keep_states(&a);
    }
}

/* --- rows ------------------------------------------------------------------ */

static fm_span moved(fm_span s, int rows)
{
    s.row0 -= rows;
    if (s.before < 0) s.before = FM_STATE_OF_ROW(FM_STATE_OF_ROW(s.before) - rows);
    return s;
}

/* Decodes come first in a batch. */
static int first_filling(const fm_batch *b)
{
    int k = 0;
    while (k < b->n_span && !b->span[k].n_keep && b->span[k].form == FM_FORM_GENERATED) k++;
    return k;
}

/* Buffers of rows begin with the first that is left; batch->out still counts those of the whole pass. */
int fm__cpu_draft_rows(fm_run *r)
{
    fm_cpu         *b     = fm__cpu(r);
    const fm_batch *whole = r->batch;
    const int       k0    = first_filling(whole);
    const int       row   = k0 < whole->n_span ? whole->span[k0].row0 : whole->n_row;
    b->filling_row        = row;
    if (!row) return 1;
    b->filling       = *whole;
    b->filling.span  = b->filling_span;
    b->filling.n_span -= k0;
    b->filling.n_row -= row;
    b->filling.token += row;
    b->filling.pos += row;
    for (int k = k0; k < whole->n_span; k++) b->filling_span[k - k0] = moved(whole->span[k], row);
    r->batch = &b->filling;
    r->n_row = b->filling.n_row;
    fm__note_spans(r);
    return r->n_row > 0;
}

/* --- the largest ----------------------------------------------------------- */

static fm_best_word best_of_row(const fm_run *r, fm_f32s logits, int i)
{
    const fm_range words = fm_shard_outputs(r->weights->shard.attn, r->config->vocab);
    const float   *row   = row_of(logits, i);
    if (!logits.width) return (fm_best_word){-INFINITY, 0};
    const int at = fm_argmax(row, logits.width);
    return (fm_best_word){row[at], words.begin + at};
}

/* Every rank of the group learns all of its words' best. */
static int gather_best(fm_run *r, int n_out)
{
    fm_cpu        *b    = fm__cpu(r);
    const fm_comm *attn = r->ranks.attn;
    for (int k = 0; k < attn->n_rank; k++) b->best_bytes[k] = (size_t)n_out * sizeof *b->best;
    return attn->n_rank == 1 || !n_out ||
           fm__is_well(r, fm_all_gather(r->ranks.attn, b->best, b->best + attn->rank * n_out,
                                        b->best_bytes));
}

static int32_t best_of_ranks(const fm_run *r, const fm_best_word *best, int n_out, int i)
{
    fm_best_word most = best[i];
    for (int k = 1; k < r->ranks.attn->n_rank; k++)
        if (best[k * n_out + i].logit > most.logit) most = best[k * n_out + i];
    return most.id;
}

void fm__cpu_best(fm_run *r, fm_f32s logits, fm_act state)
{
    fm_cpu         *b     = fm__cpu(r);
    const fm_batch *batch = r->batch;
    const int       n     = batch->n_out;
    const size_t    row   = (size_t)r->config->hidden * b->act_bytes;
    int32_t        *id    = b->drafted + (size_t)(batch->link - 1) * (size_t)r->limits.max_out;
    fm_best_word   *own   = b->best + r->ranks.attn->rank * n;
#pragma omp parallel for schedule(static)                                                          \
    num_threads(b->n_thread) if (!fm__are_few_numbers(n, logits.width))
    for (int i = 0; i < n; i++) own[i] = best_of_row(r, logits, i);
    if (!gather_best(r, n)) return;
    for (int i = 0; i < n; i++) {
        id[i] = best_of_ranks(r, b->best, n, i);
        if (batch->span[i].n_keep)
            memcpy(kept_at(r, batch->span[i].keep0), fm__act_at(b, state, i), row);
    }
}

const int32_t *fm__words(fm_run *r)
{
    fm_cpu         *b     = fm__cpu(r);
    const fm_batch *batch = r->batch;
    if (batch->link < 2) return batch->token;
    const int32_t *id = b->drafted + (size_t)(batch->link - 2) * (size_t)r->limits.max_out;
    for (int i = 0; i < batch->n_row; i++)
        b->word[i] = batch->token[i] < 0 ? id[-1 - batch->token[i]] : batch->token[i];
    return b->word;
}

fm_status fm__cpu_drafted(fm_run *r, const fm_batch *batch, int n_link, int32_t *id)
{
    return fm__take_drafts(r, batch, n_link, fm__cpu(r)->drafted, r->limits.max_out, id);
}
