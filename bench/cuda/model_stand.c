/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda/model_stand.h"

#include "device/cuda/device.h"
#include "llm/model/model.h"
#include "llm/op/cuda/cuda_internal.h" /* for its stream */
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

static fm_status make_weights(fm_gpu_stand *s)
{
    fm_source_types       types = {s->source, FM_BF16};
    const fm_weights_want want  = {
         .packing = FM_PACK_ROWS, .act = FM_BF16, .dtype_of = fm_source_dtype_of, .ctx = &types};
    FM_TRY(fm_bench_lay_out(&s->weights, &s->config, &want, fm_cuda_alloc, &s->slab, &s->slab_bytes));
    return fm_cuda_weights_fill(&s->weights, s->source, N_THREAD, 0);
}

static fm_status open_all(fm_gpu_stand *s, const char *shape, const char *json,
                          const fm_gpu_sizes *sizes)
{
    fm_cuda_device gpu;
    s->sizes = *sizes;
    FM_TRY(fm_cuda_open(&gpu, 0));
    FM_TRY(fm_bench_read_shape(&s->config, shape, json));
    FM_TRY(fm_source_open_dummy(&s->source, &s->config, 0));
    s->limits = (fm_run_limits){.max_rows    = sizes->prompt,
                                .max_out     = sizes->batch,
                                .max_context = sizes->prompt,
                                .page_size   = sizes->page,
                                .n_page      = pages_of_all(s),
                                .n_thread    = N_THREAD,
                                .n_lane      = 1};
    FM_TRY(fm_bench_batch_make(&s->batch, &s->limits, s->config.vocab, 1));
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
    fm_bench_batch_free(&s->batch);
    *s = (fm_gpu_stand){0};
}

/* --- passes --------------------------------------------------------------- */

void fm_gpu_stand_shape(fm_gpu_stand *s, const fm_shape *shape)
{
    fm_bench_batch_shape(&s->batch, &s->limits, shape, 0);
}

fm_status fm_gpu_stand_pass(fm_gpu_stand *s)
{
    fm_run_start(s->run, &s->batch.batch);
    fm_model_deepseek.forward(s->run);
    return fm_run_finish(s->run);
}

/* Latents of every layer come straight from the embedding: random, of the right
 * size, and much sooner there than by whole passes. */
static fm_status fill_pass(fm_gpu_stand *s)
{
    fm_run *r = s->run;
    fm_run_start(r, &s->batch.batch);
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
        fm_bench_batch_shape(&s->batch, &s->limits, &shape, first);
        FM_TRY(fill_pass(s));
    }
    return FM_OK;
}

fm_status fm_gpu_stand_run(fm_gpu_stand *s, const fm_run_cuda_options *o)
{
    fm_run_destroy(s->run);
    s->run = NULL;
    fm_model_declare(&fm_model_deepseek, &s->config, &s->weights.shard, FM_BF16, &s->limits);
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
