/* SPDX-License-Identifier: Apache-2.0 */
/* From a batch to the lists the kernels read. */
#include <string.h>

#include "llm/op/cuda_internal.h"

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

static int pages_of(const fm_span *s, int page_size)
{
    return (s->pos0 + s->n_row + page_size - 1) / page_size;
}

static void list_pages(const fm_batch *b, fm_cuda_run *g, int page_size)
{
    int pitch = 1;
    for (int k = 0; k < b->n_span; k++) {
        const int n = pages_of(&b->span[k], page_size);
        if (n > pitch) pitch = n;
    }
    for (int k = 0; k < b->n_span; k++)
        memcpy(g->here.page + (size_t)k * (size_t)pitch, b->span[k].page,
               (size_t)pages_of(&b->span[k], page_size) * sizeof(int32_t));
    g->pass.max_page = pitch;
}

void fm__cuda_take_batch(fm_run *r)
{
    fm_cuda_run    *g = fm__gpu(r);
    const fm_batch *b = r->batch;
    g->pass           = (fm_cuda_pass){.n_gen = number_rows(b, g->row_of, FM_FORM_GENERATED, 0)};
    number_rows(b, g->row_of, FM_FORM_PROMPT, g->pass.n_gen);
    list_rows(b, g);
    list_spans(b, g);
    list_pages(b, g, r->limits.page_size);
    for (int i = 0; i < g->pass.n_gen; i++)
        g->pass.n_unit += (g->here.gen_keys[i] + FM_CUDA_PART - 1) / FM_CUDA_PART;
    *g->here.n_gen  = g->pass.n_gen;
    *g->here.n_span = g->pass.n_prompt_span;

    const size_t lists = (size_t)((char *)g->here.page - g->pinned);
    const size_t pages = (size_t)b->n_span * (size_t)g->pass.max_page * sizeof(int32_t);
    r->fault           = fm_cuda_upload(g->there.token, g->pinned, lists + pages, g->stream);
}
