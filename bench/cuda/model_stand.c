/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda/model_stand.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "device/cuda/device.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/model/model.h"
#include "llm/op/cuda/cuda_internal.h" /* its stream, which nobody else has to know */
#include "llm/op/cuda/weights.h"

enum { N_THREAD = 4 };

static int pages_of(const fm_gpu_stand *s, int n_token)
{
    return (n_token + s->sizes.page - 1) / s->sizes.page;
}

/* Every sequence with the token it decodes, or one prompt. */
static int pages_of_all(const fm_gpu_stand *s)
{
    const int all = s->sizes.batch * pages_of(s, s->sizes.context + 1);
    const int one = pages_of(s, s->sizes.prompt);
    return all > one ? all : one;
}

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

static fm_status open_all(fm_gpu_stand *s, const char *shape, const char *json,
                          const fm_gpu_sizes *sizes)
{
    fm_cuda_device gpu;
    s->sizes = *sizes;
    FM_TRY(fm_cuda_open(&gpu, 0));
    FM_TRY(read_shape(s, shape, json));
    s->limits = (fm_run_limits){.max_rows    = sizes->prompt,
                                .max_out     = sizes->batch,
                                .max_context = sizes->prompt,
                                .page_size   = sizes->page,
                                .n_page      = pages_of_all(s),
                                .n_thread    = N_THREAD,
                                .n_lane      = 1};
    FM_TRY(make_batch(s));
    return make_weights(s);
}

fm_status fm_gpu_stand_open(fm_gpu_stand *s, const char *shape, const char *json,
                            const fm_gpu_sizes *sizes)
{
    *s                 = (fm_gpu_stand){0};
    const fm_status rc = open_all(s, shape, json, sizes);
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
    const int per = pages_of(s, shape->pos0 + shape->n_row), T = shape->n_seq * shape->n_row;
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

void fm_gpu_stand_shape(fm_gpu_stand *s, const fm_shape *shape) { shape_from(s, shape, 0); }

fm_status fm_gpu_stand_pass(fm_gpu_stand *s)
{
    fm_run_start(s->run, &s->batch);
    fm_model_deepseek.forward(s->run);
    return fm_run_finish(s->run);
}

/* Latents of every layer come straight from the embedding: random, of the right
 * size, and much sooner there than by whole passes. */
static fm_status fill_pass(fm_gpu_stand *s)
{
    fm_run *r = s->run;
    fm_run_start(r, &s->batch);
    fm_embed(r, r->act.x, s->weights.embed);
    for (int l = 0; l < s->weights.n_layer; l++) {
        const fm_attn_weights *w = &s->weights.layer[l].attn;
        fm_rmsnorm(r, r->act.h, r->act.x, w->norm);
        fm_linear(r, r->act.ckv, r->act.h, &w->kv_down);
        fm_store_kv(r, l, r->act.ckv, w->kv_norm);
    }
    FM_TRY(fm_run_finish(r));
    return fm_cuda_stream_wait(fm_gpu_stream(r)); /* the next pass writes its lists anew */
}

/* One token more than the context, so that a sequence has the pages it decodes with. */
static fm_status fill_cache(fm_gpu_stand *s)
{
    const int each = s->sizes.context + 1, fit = s->sizes.prompt / each;
    for (int first = 0, n; first < s->sizes.batch; first += n) {
        n                    = s->sizes.batch - first < fit ? s->sizes.batch - first : fit;
        const fm_shape shape = {.n_seq = n, .n_row = each};
        shape_from(s, &shape, first);
        FM_TRY(fill_pass(s));
    }
    return FM_OK;
}

fm_status fm_gpu_stand_run(fm_gpu_stand *s, const fm_run_cuda_options *o)
{
    fm_run_destroy(s->run);
    s->run = NULL;
    s->limits.planes = fm_model_deepseek.planes(&s->config, &s->weights.shard, FM_BF16);
    FM_TRY(fm_run_create_cuda(&s->run, &s->weights, &s->limits, o));
    return fill_cache(s);
}

fm_stream fm_gpu_stream(const fm_run *r) { return ((const fm_cuda_run *)r->backend)->stream; }

fm_graph fm_gpu_recorded(const fm_run *r, int rows)
{
    const fm_cuda_run *g = r->backend;
    for (int i = 0; i < g->n_recorded; i++)
        if (g->recorded[i].rows == rows) return g->recorded[i].graph;
    return NULL;
}
