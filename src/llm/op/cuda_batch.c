/* SPDX-License-Identifier: Apache-2.0 */
/* From a batch to the lists the kernels read, and steps that are recorded. */
#include <string.h>

#include "llm/op/cuda_internal.h"

/* --- lists ---------------------------------------------------------------- */

/* Rows of spans of one form, from `row` on; returns the next free row. */
static int number_rows(const fm_batch *b, int32_t *row_of, fm_form form, int row)
{
    for (int k = 0; k < b->n_span; k++)
        for (int i = 0; b->span[k].form == form && i < b->span[k].n_row; i++)
            row_of[b->span[k].row0 + i] = row++;
    return row;
}

static void list_rows(const fm_batch *b, fm_cuda_run *g)
{
    const fm_cuda_lists *to = &g->here;
    for (int k = 0; k < b->n_span; k++)
        for (int i = 0; i < b->span[k].n_row; i++) {
            const int from = b->span[k].row0 + i, row = g->row_of[from];
            to->token[row] = b->token[from];
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

static void list_pages(const fm_batch *b, fm_cuda_run *g, int page_size)
{
    int32_t *to = g->here.page_begin;
    to[0]       = 0;
    for (int k = 0; k < b->n_span; k++) {
        const int n = (b->span[k].pos0 + b->span[k].n_row + page_size - 1) / page_size;
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

/* Rows that are nobody's: they see no key, are cached nowhere and go to no
 * expert. */
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

/* A step of generated rows alone gets one of the few sizes, the same in every
 * group; 0: it cannot. */
static int pad_decode(fm_run *r, fm_cuda_run *g)
{
    const fm_batch *b = r->batch;
    int             n = b->n_row;
    for (int i = 0; b->group_rows && i < r->weights->shard.group.n; i++)
        if (b->group_rows[i] > n) n = b->group_rows[i];
    const int rows = padded(n);
    if (!g->pads || g->pass.n_prompt_span || (b->group_rows && !b->is_decode) || n == 0) return 0;
    if (rows > r->limits.max_rows || rows > r->limits.max_out) return 0;
    pad(r, g, rows);
    return 1;
}

static void list_groups(fm_run *r, fm_cuda_run *g)
{
    g->here.group_row0[0] = 0;
    for (int i = 0; i < r->weights->shard.group.n; i++) {
        g->exchange.rows_of[i] = g->pass.is_padded ? r->n_row : fm__rows_of_group(r->batch, i);
        g->here.group_row0[i + 1] = g->here.group_row0[i] + g->exchange.rows_of[i];
    }
}

static fm_cuda_recorded *recorded_for(fm_cuda_run *g, int rows)
{
    for (int i = 0; i < g->n_recorded; i++)
        if (g->recorded[i].rows == rows) return &g->recorded[i];
    if (g->n_recorded == FM_CUDA_GRAPHS) return NULL;
    g->recorded[g->n_recorded] = (fm_cuda_recorded){.rows = rows};
    return &g->recorded[g->n_recorded++];
}

/* Starts the pass whole if it was recorded, or begins to record it. */
static void replay(fm_run *r, fm_cuda_run *g)
{
    fm_cuda_recorded *e = recorded_for(g, r->n_row);
    if (!e) return;
    if (e->graph) {
        r->fault       = fm_cuda_graph_start(e->graph, g->stream);
        r->is_replayed = 1;
    } else if (e->is_seen) {
        r->fault = fm_cuda_record_begin(g->stream);
        if (r->fault == FM_OK) g->recording = e;
    }
    e->is_seen = 1;
}

/* What is recorded is one wave of attention, however long the texts. */
static int fits_one_wave(const fm_cuda_run *g)
{
    int n_unit = 0;
    for (int i = 0; i < g->pass.n_gen; i++) n_unit += fm__cuda_parts(g->here.gen_keys[i]);
    return n_unit <= g->max_unit;
}

/* --- a pass --------------------------------------------------------------- */

/* Lists the device has read. */
static fm_mark take_lists(fm_run *r, fm_cuda_run *g)
{
    const unsigned turn = g->n_pass++ % FM_CUDA_AHEAD;
    g->here             = g->list[turn];
    r->fault            = fm__cuda_reach(r, g->read[turn]);
    return g->read[turn];
}

void fm__cuda_begin(fm_run *r)
{
    fm_cuda_run    *g    = fm__gpu(r);
    const fm_batch *b    = r->batch;
    const fm_mark   read = take_lists(r, g);
    if (r->fault != FM_OK) return;
    g->pass = (fm_cuda_pass){.n_gen = number_rows(b, g->row_of, FM_FORM_GENERATED, 0)};
    number_rows(b, g->row_of, FM_FORM_PROMPT, g->pass.n_gen);
    list_rows(b, g);
    list_spans(b, g);
    list_pages(b, g, r->limits.page_size);
    *g->here.n_live = b->n_row;
    *g->here.n_gen  = g->pass.n_gen;
    *g->here.n_span = g->pass.n_prompt_span;
    g->pass.is_padded = pad_decode(r, g);
    list_groups(r, g);
    fm__cuda_list_words(r);

    const size_t lists = (size_t)((char *)g->here.page_list - (char *)g->here.token);
    const size_t pages = (size_t)g->here.page_begin[b->n_span] * sizeof(int32_t);
    r->fault = fm_cuda_upload(g->there.token, g->here.token, lists + pages, g->stream);
    if (r->fault == FM_OK) r->fault = fm_cuda_mark_set(read, g->stream);
    if (r->fault == FM_OK && g->records && g->pass.is_padded && fits_one_wave(g)) replay(r, g);
}

void fm__cuda_end(fm_run *r)
{
    fm_cuda_run      *g = fm__gpu(r);
    fm_cuda_recorded *e = g->recording;
    g->recording        = NULL;
    if (e) fm__is_well(r, fm_cuda_record_end(g->stream, &e->graph));
    if (e && r->fault == FM_OK) r->fault = fm_cuda_graph_start(e->graph, g->stream);
    if (r->fault == FM_OK && r->weights->norm) fm__cuda_collect(r);
}
