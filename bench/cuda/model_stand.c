/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda/model_stand.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/cuda/device.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/model/deepseek.h"
#include "llm/op/cuda_internal.h" /* its stream, which nobody else has to know */
#include "llm/op/cuda_weights.h"

enum {
    PAGE      = 64,
    PAGES     = FM_GPU_BATCH * (FM_GPU_CONTEXT / PAGE + 1), /* each sequence's and no more */
    N_THREAD  = 4,
    FILL_ROWS = FM_GPU_PROMPT / FM_GPU_CONTEXT * FM_GPU_CONTEXT,
};

static fm_status read_shape(fm_gpu_stand *s, const char *shape, const char *json)
{
    const char *text = fm_builtin_config(shape);
    if (!text) return fm_fail(FM_E_ARG, "\"%s\" is no built-in shape", shape);
    FM_TRY(fm_config_parse(&s->config, text, strlen(text), shape, json));
    return fm_source_open_dummy(&s->source, &s->config, 0);
}

static fm_status make_weights(fm_gpu_stand *s)
{
    fm_source_types       types = {s->source, FM_BF16};
    const fm_weights_want want  = {
         .packing = FM_PACK_ROWS, .act = FM_BF16, .dtype_of = fm_source_dtype_of, .ctx = &types};
    fm_slab count = {0};
    FM_TRY(fm_weights_layout(&s->weights, &s->config, &want, &count));
    fm_weights_fini(&s->weights);
    s->weights    = (fm_weights){0};
    s->slab_bytes = count.used;
    FM_TRY(fm_cuda_alloc(&s->slab, s->slab_bytes, "weights"));
    fm_slab place = {.base = s->slab, .size = s->slab_bytes};
    FM_TRY(fm_weights_layout(&s->weights, &s->config, &want, &place));
    return fm_cuda_weights_fill(&s->weights, s->source, N_THREAD, 0);
}

static fm_status make_batch(fm_gpu_stand *s)
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
    for (size_t i = pages; i-- > 1;) {
        const size_t  j    = fm_rng_u32(5, i) % (i + 1);
        const int32_t that = s->page[i];
        s->page[i]         = s->page[j];
        s->page[j]         = that;
    }
    return FM_OK;
}

static fm_status open_all(fm_gpu_stand *s, const char *shape, const char *json)
{
    fm_cuda_device gpu;
    FM_TRY(fm_cuda_open(&gpu, 0));
    FM_TRY(read_shape(s, shape, json));
    s->limits = (fm_run_limits){.max_rows    = FM_GPU_PROMPT,
                                .max_out     = FM_GPU_BATCH,
                                .max_context = FM_GPU_PROMPT,
                                .page_size   = PAGE,
                                .n_page      = PAGES,
                                .n_thread    = N_THREAD,
                                .n_lane      = 1};
    FM_TRY(make_batch(s));
    return make_weights(s);
}

fm_status fm_gpu_stand_open(fm_gpu_stand *s, const char *shape, const char *json)
{
    *s                 = (fm_gpu_stand){0};
    const fm_status rc = open_all(s, shape, json);
    if (rc != FM_OK) fm_gpu_stand_close(s);
    return rc;
}

void fm_gpu_stand_close(fm_gpu_stand *s)
{
    fm_run_destroy(s->run);
    fm_weights_fini(&s->weights);
    fm_source_close(s->source);
    fm_cuda_free(s->slab);
    free(s->batch.token);
    free(s->batch.pos);
    free(s->batch.out);
    free(s->batch.span);
    free(s->page);
    *s = (fm_gpu_stand){0};
}

/* --- passes --------------------------------------------------------------- */

/* Sequence `first` of the pool is the batch's first. */
static void shape_from(fm_gpu_stand *s, const fm_shape *shape, int first)
{
    fm_batch *b   = &s->batch;
    const int per = (shape->pos0 + shape->n_row + PAGE - 1) / PAGE, T = shape->n_seq * shape->n_row;
    FM_BUG_UNLESS(T <= s->limits.max_rows && per * (first + shape->n_seq) <= s->limits.n_page);
    for (int i = 0; i < T; i++) b->pos[i] = shape->pos0 + i % shape->n_row;
    for (int i = 0; i < shape->n_seq; i++)
        b->span[i] = (fm_span){.row0  = i * shape->n_row,
                               .n_row = shape->n_row,
                               .pos0  = shape->pos0,
                               .form  = shape->generated ? FM_FORM_GENERATED : FM_FORM_PROMPT,
                               .page  = s->page + (first + i) * per};
    for (int i = 0; i < shape->n_out; i++) b->out[i] = T - shape->n_out + i;
    b->n_row  = T;
    b->n_span = shape->n_seq;
    b->n_out  = shape->n_out;
}

void fm_gpu_stand_shape(fm_gpu_stand *s, const fm_shape *shape)
{
    shape_from(s, shape, 0);
}

fm_status fm_gpu_stand_pass(fm_gpu_stand *s)
{
    fm_run_start(s->run, &s->batch);
    fm_deepseek_forward(s->run);
    return fm_run_finish(s->run);
}

/* Latents of every layer come straight from the embedding: random, of the right
 * size, and much sooner there than by whole passes. */
static fm_status fill_cache(fm_gpu_stand *s)
{
    const int per_pass = FILL_ROWS / FM_GPU_CONTEXT;
    fm_run   *r        = s->run;
    for (int first = 0; first < FM_GPU_BATCH; first += per_pass) {
        const int      left  = FM_GPU_BATCH - first;
        const fm_shape shape = {.n_seq = left < per_pass ? left : per_pass, .n_row = FM_GPU_CONTEXT};
        shape_from(s, &shape, first);
        fm_run_start(r, &s->batch);
        fm_embed(r, r->act.x, s->weights.embed);
        for (int l = 0; l < s->weights.n_layer; l++) {
            const fm_attn_weights *w = &s->weights.layer[l].attn;
            fm_rmsnorm(r, r->act.h, r->act.x, w->norm);
            fm_linear(r, r->act.ckv, r->act.h, &w->kv_down);
            fm_store_kv(r, l, r->act.ckv, w->kv_norm);
        }
        FM_TRY(fm_run_finish(r));
        FM_TRY(fm_cuda_stream_wait(fm_gpu_stream(r))); /* the lists are written anew */
    }
    return FM_OK;
}

fm_status fm_gpu_stand_run(fm_gpu_stand *s, const fm_run_cuda_options *o)
{
    fm_run_destroy(s->run);
    s->run = NULL;
    FM_TRY(fm_run_create_cuda(&s->run, &s->weights, &s->limits, o));
    return fill_cache(s);
}

fm_stream fm_gpu_stream(const fm_run *r)
{
    return ((const fm_cuda_run *)r->backend)->stream;
}
