/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cpu_stand.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/host.h"
#include "llm/model/model.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/load/source.h"
#include "llm/load/weights_fill.h"

enum { PAGE = 16 };

static fm_status load(fm_stand *s, fm_source *src)
{
    fm_source_types       types   = {src, FM_BF16};
    const fm_weights_want want    = {.act = FM_BF16, .dtype_of = fm_source_dtype_of, .ctx = &types};
    fm_slab               measure = {0};
    FM_TRY(fm_weights_layout(&s->weights, &s->config, &want, &measure));
    fm_weights_fini(&s->weights);
    s->slab_bytes = measure.used;
    FM_TRY(fm_host_alloc(&s->slab, s->slab_bytes, "weights"));
    fm_slab place = {.base = s->slab, .size = s->slab_bytes};
    FM_TRY(fm_weights_layout(&s->weights, &s->config, &want, &place));
    return fm_weights_fill(&s->weights, src, s->limits.n_thread, 0);
}

static fm_status read_shape(fm_stand *s, const char *model, const char *overrides)
{
    const char *text = fm_builtin_config(model);
    if (!text) return fm_fail(FM_E_ARG, "\"%s\" is no built-in shape", model);
    return fm_config_parse(&s->config, text, strlen(text), model, overrides);
}

static fm_status make_batch(fm_stand *s)
{
    const size_t rows = (size_t)s->limits.max_rows, pages = (size_t)s->limits.n_page;
    s->batch.token = calloc(rows, sizeof(int32_t));
    s->batch.pos   = calloc(rows, sizeof(int32_t));
    s->batch.out   = calloc(rows, sizeof(int32_t));
    s->batch.span  = calloc(rows, sizeof(fm_span));
    s->page        = calloc(pages, sizeof *s->page);
    if (!s->batch.token || !s->batch.pos || !s->batch.out || !s->batch.span || !s->page)
        return fm_fail(FM_E_OOM, "batch");
    for (size_t i = 0; i < rows; i++)
        s->batch.token[i] = (int32_t)(fm_rng_u32(3, i) % (uint32_t)s->config.vocab);
    for (size_t i = 0; i < pages; i++) s->page[i] = (int32_t)i;
    return FM_OK;
}

static fm_status open_all(fm_stand *s, const char *model, const char *overrides, int max_rows,
                          int max_keys, int n_thread)
{
    fm_source *src = NULL;
    FM_TRY(read_shape(s, model, overrides));
    s->limits = (fm_run_limits){.max_rows    = max_rows,
                                .max_out     = 256,
                                .max_context = max_keys,
                                .page_size   = PAGE,
                                .n_page      = max_keys / PAGE + max_rows,
                                .n_thread    = n_thread,
                                .n_lane      = 1};
    FM_TRY(make_batch(s));
    FM_TRY(fm_source_open_dummy(&src, &s->config, 0));
    const fm_status rc = load(s, src);
    fm_source_close(src);
    FM_TRY(rc);
    s->limits.planes = fm_model_deepseek.planes(&s->config, &s->weights.shard, s->weights.act);
    s->world = fm_comm_self();
    return fm_run_create_cpu(&s->run, &s->weights, &s->limits, fm_ranks_self(&s->world));
}

fm_status fm_stand_open(fm_stand *s, const char *model, const char *overrides, int max_rows,
                        int max_keys, int n_thread)
{
    *s                 = (fm_stand){0};
    const fm_status rc = open_all(s, model, overrides, max_rows, max_keys, n_thread);
    if (rc != FM_OK) fm_stand_close(s);
    return rc;
}

void fm_stand_close(fm_stand *s)
{
    fm_run_destroy(s->run);
    fm_weights_fini(&s->weights);
    fm_host_free(s->slab, s->slab_bytes);
    free(s->batch.token);
    free(s->batch.pos);
    free(s->batch.out);
    free(s->batch.span);
    free(s->page);
    *s = (fm_stand){0};
}

void fm_stand_shape(fm_stand *s, const fm_shape *shape)
{
    fm_batch *b   = &s->batch;
    const int per = (shape->pos0 + shape->n_row + PAGE - 1) / PAGE, T = shape->n_seq * shape->n_row;
    FM_BUG_UNLESS(T <= s->limits.max_rows && per * shape->n_seq <= s->limits.n_page);
    for (int i = 0; i < T; i++) b->pos[i] = shape->pos0 + i % shape->n_row;
    for (int i = 0; i < shape->n_seq; i++)
        b->span[i] = (fm_span){.row0  = i * shape->n_row,
                               .n_row = shape->n_row,
                               .pos0  = shape->pos0,
                               .form  = shape->generated ? FM_FORM_GENERATED : FM_FORM_PROMPT,
                               .page  = s->page + i * per};
    for (int i = 0; i < shape->n_out; i++) b->out[i] = T - shape->n_out + i;
    b->n_row  = T;
    b->n_span = shape->n_seq;
    b->n_out  = shape->n_out;
    fm_run_start(s->run, b);
}

/* As prompt rows in steps of max_rows: only the latents are stored, nothing is
 * computed from them. */
void fm_stand_fill(fm_stand *s, int n_seq, int n_key)
{
    fm_run      *r     = s->run;
    const size_t n     = (size_t)s->limits.max_rows * (size_t)r->act.ckv.width;
    const int    n_all = n_seq * n_key; /* pages are consecutive: one long text */
    for (size_t i = 0; i < n; i++) r->act.ckv.data[i] = (float)fm_rng_u32(4, i) * 0x1p-31f - 1.0f;
    for (int at = 0; at < n_all; at += s->limits.max_rows) {
        const int      left  = n_all - at;
        const fm_shape shape = {
            .n_seq = 1, .pos0 = at, .n_row = left < s->limits.max_rows ? left : s->limits.max_rows};
        fm_stand_shape(s, &shape);
        for (int l = 0; l < s->config.n_layer; l++)
            fm_store_kv(r, l, r->act.ckv, s->weights.layer[l].attn.kv_norm);
    }
}
