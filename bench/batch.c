/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"

static void shuffle(int32_t *page, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        const size_t  j    = fm_rng_u32(5, i) % (i + 1);
        const int32_t that = page[i];
        page[i]            = page[j];
        page[j]            = that;
    }
}

fm_status fm_bench_batch_make(fm_bench_batch *b, const fm_run_limits *lim, int vocab, int shuffled)
{
    const size_t rows = (size_t)lim->max_rows, pages = (size_t)lim->n_page;
    b->batch.token = calloc(rows, sizeof(int32_t));
    b->batch.pos   = calloc(rows, sizeof(int32_t));
    b->batch.out   = calloc(rows, sizeof(int32_t));
    b->batch.span  = calloc(rows, sizeof(fm_span));
    b->page        = calloc(pages, sizeof *b->page);
    if (!b->batch.token || !b->batch.pos || !b->batch.out || !b->batch.span || !b->page)
        return fm_fail(FM_E_OOM, "batch");
    for (size_t i = 0; i < rows; i++)
        b->batch.token[i] = (int32_t)(fm_rng_u32(3, i) % (uint32_t)vocab);
    for (size_t i = 0; i < pages; i++) b->page[i] = (int32_t)i;
    if (shuffled) shuffle(b->page, pages);
    return FM_OK;
}

void fm_bench_batch_free(fm_bench_batch *b)
{
    free(b->batch.token);
    free(b->batch.pos);
    free(b->batch.out);
    free(b->batch.span);
    free(b->page);
    *b = (fm_bench_batch){0};
}

void fm_bench_batch_shape(fm_bench_batch *b, const fm_run_limits *lim, const fm_shape *shape,
                          int first)
{
    fm_batch *to  = &b->batch;
    const int per = (shape->pos0 + shape->n_row + lim->page_size - 1) / lim->page_size;
    const int T   = shape->n_seq * shape->n_row;
    FM_BUG_UNLESS(T <= lim->max_rows && per * (first + shape->n_seq) <= lim->n_page);
    for (int i = 0; i < T; i++) to->pos[i] = shape->pos0 + i % shape->n_row;
    for (int i = 0; i < shape->n_seq; i++)
        to->span[i] = (fm_span){.row0  = i * shape->n_row,
                                .n_row = shape->n_row,
                                .pos0  = shape->pos0,
                                .form  = shape->generated ? FM_FORM_GENERATED : FM_FORM_PROMPT,
                                .page  = b->page + (first + i) * per};
    for (int i = 0; i < shape->n_out; i++) to->out[i] = T - shape->n_out + i;
    to->n_row  = T;
    to->n_span = shape->n_seq;
    to->n_out  = shape->n_out;
}

fm_status fm_bench_read_shape(fm_model_config *c, const char *shape, const char *json)
{
    const char *text = fm_builtin_config(shape);
    if (!text) return fm_fail(FM_E_ARG, "\"%s\" is no built-in shape", shape);
    return fm_config_parse(c, text, strlen(text), shape, json);
}

fm_status fm_bench_lay_out(fm_weights *w, const fm_model_config *c, const fm_weights_want *want,
                           fm_bench_alloc *alloc, void **slab, size_t *bytes)
{
    fm_slab count = {0};
    FM_TRY(fm_weights_layout(w, c, want, &count));
    fm_weights_fini(w);
    *bytes = count.used;
    FM_TRY(alloc(slab, *bytes, "weights"));
    fm_slab place = {.base = *slab, .size = *bytes};
    return fm_weights_layout(w, c, want, &place);
}
