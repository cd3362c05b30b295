/* SPDX-License-Identifier: Apache-2.0 */
/* From a batch to the lists the kernels read, and steps that are recorded. */
#include <string.h>

#include "llm/kernel/cuda/variants.h"
#include "llm/op/cuda/cuda_internal.h"

/* --- lists ---------------------------------------------------------------- */

/* Rows of spans of one form, from `row` on; returns the next free row. */
static int number_rows(const fm_batch *b, int32_t *row_of, fm_form form, int row)
{
    for (int k = 0; k < b->n_span; k++)
        for (int i = 0; b->span[k].form == form && i < b->span[k].n_row; i++)
            row_of[b->span[k].row0 + i] = row++;
    return row;
}

/* Choices are counted within the group; on the device those of all groups lie
 * one behind the other. */
static int32_t token_of(const fm_cuda_run *g, const fm_batch *b, int32_t token)
{
    return token < 0 && !b->link ? token - g->out0_before : token;
}

static void list_rows(const fm_batch *b, fm_cuda_run *g)
{
    const fm_cuda_lists *to = &g->here;
    for (int k = 0; k < b->n_span; k++)
        for (int i = 0; i < b->span[k].n_row; i++) {
            const int from = b->span[k].row0 + i, row = g->row_of[from];
            to->token[row] = token_of(g, b, b->token[from]);
            to->pos[row]   = b->pos[from];
            to->table[row] = k;
            if (b->span[k].form != FM_FORM_GENERATED) continue;
            to->gen_keys[row]  = b->pos[from] + 1;
            to->gen_table[row] = k;
        }
    for (int i = 0; i < b->n_out; i++) to->out[i] = g->row_of[b->out[i]];
}

static void list_spans(const fm_batch *b, fm_cuda_run *g)
{
    fm_cuda_pass *p = &g->pass;
    for (int k = 0; k < b->n_span; k++) {
        const fm_span *s = &b->span[k];
        if (s->form != FM_FORM_PROMPT) continue;
        g->here.span[p->n_prompt_span++] =
            (fm_mla_span){g->row_of[s->row0], s->n_row, s->pos0, k};
        p->n_tile += (s->n_row + FM_MLA_TILE_ROWS - 1) / FM_MLA_TILE_ROWS;
    }
}

static int pages_of(const fm_span *s, int page_size)
{
    return (s->pos0 + s->n_row + page_size - 1) / page_size;
}

static void list_pages(const fm_batch *b, fm_cuda_run *g, int page_size)
{
    int32_t *to = g->here.page_begin;
    to[0]       = 0;
    for (int k = 0; k < b->n_span; k++) {
        const int n = pages_of(&b->span[k], page_size);
        memcpy(g->here.page_list + to[k], b->span[k].page, (size_t)n * sizeof *to);
        to[k + 1] = to[k] + n;
    }
    g->pass.n_table = b->n_span;
}

/* --- steps of a few sizes ------------------------------------------------- */

/* 1, 2, 4, 8, then four sizes to each power of two. */
static int padded(int n)
{
    int step = 8;
    if (n <= 8) return n <= 2 ? n : n <= 4 ? 4 : 8;
    while (8 * step < n) step *= 2;
    return (n + step - 1) / step * step;
}

static int has_prompt(const fm_batch *b)
{
    for (int k = 0; k < b->n_span; k++)
        if (b->span[k].form == FM_FORM_PROMPT) return 1;
    return 0;
}

/* A step of generated rows alone gets one of the few sizes, the same in every
 * group; 0: it cannot. */
static int padded_rows(const fm_run *r, const fm_cuda_run *g)
{
    const fm_batch *b = r->batch;
    int             n = b->n_row;
    for (int i = 0; b->group_rows && i < r->weights->shard.group.n; i++)
        if (b->group_rows[i] > n) n = b->group_rows[i];
    if (!g->pads || n == 0 || (b->group_rows ? !b->is_decode : has_prompt(b))) return 0;
    const int rows = padded(n);
    return rows <= r->limits.max_rows && rows <= r->limits.max_out ? rows : 0;
}

/* Padding rows: they see no key, are not cached and go to no expert. */
static void pad(fm_run *r, fm_cuda_run *g, int rows)
{
    const fm_cuda_lists *l = &g->here;
    for (int i = r->n_row; i < rows; i++) {
        l->token[i] = l->pos[i] = l->gen_keys[i] = 0;
        l->table[i] = l->gen_table[i] = rows - 1;
    }
    for (int k = g->pass.n_table; k < rows; k++) l->page_begin[k + 1] = l->page_begin[k];
    for (int i = r->n_out; i < rows; i++) l->out[i] = 0;
    g->pass.n_table = rows;
    r->n_row = r->n_out = rows;
}

static void list_groups(fm_run *r, fm_cuda_run *g)
{
    g->here.group_row0[0] = 0;
    for (int i = 0; i < r->weights->shard.group.n; i++) {
        g->exchange.rows_of[i] = g->pass.is_padded ? r->n_row : fm__rows_of_group(r->batch, i);
        g->here.group_row0[i + 1] = g->here.group_row0[i] + g->exchange.rows_of[i];
    }
}

static fm_cuda_recorded *recorded_for(fm_cuda_run *g, int rows, int is_link)
{
    for (int i = 0; i < g->n_recorded; i++)
        if (g->recorded[i].rows == rows && g->recorded[i].is_few == g->pass.is_few &&
            g->recorded[i].is_link == is_link)
            return &g->recorded[i];
    if (g->n_recorded == FM_CUDA_GRAPHS) return NULL;
    g->recorded[g->n_recorded] = (fm_cuda_recorded){.rows = rows, .is_few = g->pass.is_few,
                                                     .is_link = is_link};
    return &g->recorded[g->n_recorded++];
}

/* With timestamps if this pass is to have them. */
static fm_graph *recording_of(const fm_cuda_run *g, fm_cuda_recorded *e)
{
    return g->stamps.at ? &e->stamped : &e->graph;
}

/* Starts the pass whole if it was recorded, or begins to record it. */
static void replay(fm_run *r, fm_cuda_run *g)
{
    fm_cuda_recorded *e = recorded_for(g, r->n_row, r->batch->link > 0);
    if (!e) return;
    const fm_graph as_recorded = *recording_of(g, e);
    fm__cuda_stamps_recorded(r, e, as_recorded != NULL);
    if (as_recorded) {
        r->fault       = fm_cuda_graph_start(as_recorded, g->stream);
        r->is_replayed = 1;
    } else if (e->is_seen) {
        r->fault = fm_cuda_record_begin(g->stream);
        if (r->fault == FM_OK) g->recording = e;
    }
    e->is_seen = 1;
}

/* The parts of all generated rows. Few parts take a kernel of their own; a recorded step has one
 * wave of parts. */
static int count_units(const fm_run *r, const fm_cuda_run *g)
{
    int n_unit = 0;
    for (int i = 0; i < g->pass.n_gen; i++)
        n_unit += fm__cuda_parts(r->config, g->here.gen_keys[i]);
    return n_unit;
}

/* --- a pass --------------------------------------------------------------- */

/* Where a pass has its lists; a recorded one finds them there again. */
static void place_lists(fm_run *r, fm_cuda_run *g, char *here, int padded_to)
{
    const fm_batch    *b     = r->batch;
    const fm_shard    *shard = &r->weights->shard;
    fm_slab            to    = {.base = here, .size = g->list_bytes};
    fm_slab            there = {.base = g->list_there, .size = g->list_bytes};
    const int          has   = r->limits.n_kept > 0;
    fm_cuda_list_sizes n     = {b->n_row, b->n_out, b->n_span, b->n_span, 0, has};
    if (padded_to) n = (fm_cuda_list_sizes){padded_to, padded_to, 0, padded_to, 0, has};
    for (int k = 0; k < b->n_span; k++)
        n.page += (size_t)pages_of(&b->span[k], r->limits.page_size);
    fm__cuda_carve_lists(&g->here, &n, shard, &to);
    fm__cuda_carve_lists(&g->there, &n, shard, &there);
}

static void list(fm_run *r, fm_cuda_run *g, int padded_to)
{
    const fm_batch *b = r->batch;
    g->pass = (fm_cuda_pass){.n_gen     = number_rows(b, g->row_of, FM_FORM_GENERATED, 0),
                             .is_padded = padded_to > 0};
    number_rows(b, g->row_of, FM_FORM_PROMPT, g->pass.n_gen);
    list_rows(b, g);
    list_spans(b, g);
    list_pages(b, g, r->limits.page_size);
    *g->here.n_live = b->n_row;
    *g->here.n_gen  = g->pass.n_gen;
    *g->here.n_span = g->pass.n_prompt_span;
    if (padded_to) pad(r, g, padded_to);
    list_groups(r, g);
    fm__cuda_list_states(r);
    fm__cuda_list_words(r);
}

static int has_choices(const fm_batch *b)
{
    if (b->group_rows) return b->has_choices;
    for (int i = 0; i < b->n_row; i++)
        if (b->token[i] < 0) return 1;
    return 0;
}

/* Broadcast of the tokens rank 0 sampled in the pass before, to the ranks whose rows start from
 * them. The tokens of a link are on every rank already. */
static fm_status share_choices(fm_run *r, fm_cuda_run *g)
{
    if (!g->exchange.stage || r->batch->link || !has_choices(r->batch)) return FM_OK;
    const size_t bytes = (size_t)g->n_out_before * sizeof *g->choose_there.id;
    return fm_device_broadcast(g->exchange.stage, g->choose_there.id, bytes, 0, g->stream);
}

static void note_outs(fm_run *r, fm_cuda_run *g)
{
    g->n_out_before = fm__cuda_outs(r, r->batch);
    g->out0_before  = 0;
    for (int i = 0; i < r->weights->shard.group.index; i++)
        g->out0_before += fm__outs_of_group(r->batch, i);
}

void fm__cuda_begin(fm_run *r)
{
    fm_cuda_run   *g    = fm__gpu(r);
    const unsigned turn = g->n_pass++ % FM_CUDA_AHEAD;
    const int      rows = padded_rows(r, g);
    fm__cuda_ranges_pass(r);
    r->fault            = fm__cuda_reach(r, g->read[turn]); /* its lists may be written anew */
    if (r->fault == FM_OK) r->fault = fm__cuda_copies_pass(g, rows > 0);
    if (r->fault != FM_OK) return;
    fm__cuda_stamps_pass(r, rows > 0);
    if (r->fault != FM_OK) return;
    place_lists(r, g, g->list[turn], rows);
    list(r, g, rows);
    const int n_unit = count_units(r, g), few = fm__cuda_few_units(r->config, r->weights->n_head);
    g->pass.is_few   = few > 0 && n_unit <= few &&
                       !fm_cuda_leaves_out(FM_VARIANT_ATTEND_FEW);

    const size_t lists = (size_t)((char *)g->here.page_list - (char *)g->here.token);
    const size_t pages = (size_t)g->here.page_begin[r->batch->n_span] * sizeof(int32_t);
    r->fault = fm_cuda_upload(g->there.token, g->here.token, lists + pages, g->stream);
    if (r->fault == FM_OK) r->fault = fm_cuda_mark_set(g->read[turn], g->stream);
    if (r->fault == FM_OK) r->fault = share_choices(r, g);
    if (!r->batch->link) note_outs(r, g);
    if (r->fault == FM_OK && g->records && g->pass.is_padded && n_unit <= g->max_unit) replay(r, g);
}

void fm__cuda_end(fm_run *r)
{
    fm_cuda_run      *g = fm__gpu(r);
    fm_cuda_recorded *e = g->recording;
    g->recording        = NULL;
    fm__cuda_side_join(r);
    fm__cuda_stamps_end(r);
    fm__is_well(r, fm__cuda_copies_end(g));
    if (e) fm__is_well(r, fm_cuda_record_end(g->stream, recording_of(g, e)));
    if (e && r->fault == FM_OK) r->fault = fm_cuda_graph_start(*recording_of(g, e), g->stream);
    if (r->fault == FM_OK && r->batch->link) fm__cuda_end_link(r);
    else if (r->fault == FM_OK && r->weights->norm) fm__cuda_collect(r);
    fm__cuda_ranges_end(r);
}
