/* SPDX-License-Identifier: Apache-2.0 */
#include "backend_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/device.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/load/weights_fill.h"
#include "llm/model/model.h"
#include "llm/op/cuda/cuda.h"
#include "llm/op/cuda/weights.h"

enum { MAX_ROWS = 96, MAX_OUT = 24, CONTEXT = 192, TEXTS = 3 };

struct fm_both {
    fm_model_config config;
    fm_source      *source;
    fm_weights      cpu_weights, gpu_weights;
    void           *cpu_slab, *gpu_slab;
    fm_comm         self;
    fm_run_limits   limits;
    fm_run         *cpu, *gpu;
    int             done[TEXTS]; /* tokens of each text that are cached */
    int32_t         text[TEXTS][CONTEXT], page[TEXTS][CONTEXT];
    int32_t         token[MAX_ROWS], pos[MAX_ROWS], out[MAX_OUT];
    fm_span         span[TEXTS];
};

/* INT4 becomes BF16 where weights are rows.  Here it does on both sides: where two experts nearly
 * tie, that rounding would decide. */
static fm_dtype as_the_gpu_has_it(void *types, const char *tensor)
{
    const fm_dtype t = fm_source_dtype_of(types, tensor);
    return t == FM_INT4 ? FM_BF16 : t;
}

static fm_status place_weights(fm_both *b, fm_weights *w, fm_packing packing, void **memory)
{
    fm_source_types       types = {b->source, FM_BF16};
    const fm_weights_want want  = {
         .packing = packing, .act = FM_BF16, .dtype_of = as_the_gpu_has_it, .ctx = &types};
    fm_slab s = {0};
    FM_TRY(fm_weights_layout(w, &b->config, &want, &s));
    fm_weights_fini(w);
    if (packing == FM_PACK_ROWS) FM_TRY(fm_cuda_alloc(memory, s.used, "weights"));
    else *memory = aligned_alloc(64, s.used);
    s = (fm_slab){.base = *memory, .size = s.used};
    FM_TRY(fm_weights_layout(w, &b->config, &want, &s));
    return packing == FM_PACK_ROWS ? fm_cuda_weights_fill(w, b->source, 2, 0)
                                   : fm_weights_fill(w, b->source, 1, 0);
}

static fm_status read_shape(fm_both *b, const fm_both_options *o)
{
    fm_model_path where;
    FM_TRY(fm_model_path_find(&where, o->dir ? o->dir : o->shape));
    if (!o->dir) {
        FM_TRY(fm_config_parse(&b->config, where.builtin, strlen(where.builtin), o->shape, o->json));
        if (!o->w8a8) b->config.fp8_activations = 0;
        return fm_source_open_dummy(&b->source, &b->config, 7);
    }
    char file[600];
    snprintf(file, sizeof file, "%s/config.json", o->dir);
    FM_TRY(fm_config_read(&b->config, file, NULL));
    if (!o->w8a8) b->config.fp8_activations = 0;
    return fm_source_open_files(&b->source, o->dir);
}

/* Texts of arbitrary words, but none where two experts nearly tie: rounding
 * decides those.  Pages in an arbitrary order. */
static void make_up_texts(fm_both *b, const fm_both_options *o)
{
    const int per = CONTEXT / b->limits.page_size;
    for (int t = 0; t < TEXTS; t++)
        for (int i = 0; i < CONTEXT; i++) {
            b->text[t][i] = (int32_t)((unsigned)(i * 7919 + t * 104729 + o->first_word) % (unsigned)b->config.vocab);
            b->page[t][i] = i < per ? (int32_t)((i * TEXTS + t) * 5 % (TEXTS * per)) : 0;
        }
}

static fm_status open_all(fm_both *b, const fm_both_options *o)
{
    const fm_run_cuda_options gpu = {.pads = o->pads};
    fm_cuda_device            device;
    FM_TRY(fm_cuda_open(&device, 0));
    FM_TRY(read_shape(b, o));
    b->self   = fm_comm_self();
    b->limits = (fm_run_limits){.max_rows    = MAX_ROWS,
                                .max_out     = MAX_OUT,
                                .max_context = CONTEXT,
                                .page_size   = o->page_size,
                                .n_page      = TEXTS * CONTEXT / o->page_size,
                                .n_thread    = 1,
                                .n_lane      = 1};
    make_up_texts(b, o);
    FM_TRY(place_weights(b, &b->cpu_weights, FM_PACK_PANELS, &b->cpu_slab));
    FM_TRY(place_weights(b, &b->gpu_weights, FM_PACK_ROWS, &b->gpu_slab));
    fm_model_declare(&fm_model_deepseek, &b->config, &b->cpu_weights.shard, FM_BF16, &b->limits);
    FM_TRY(fm_run_create_cpu(&b->cpu, &b->cpu_weights, &b->limits, fm_ranks_self(&b->self)));
    if (o->kv_e4m3)
        fm_model_declare(&fm_model_deepseek, &b->config, &b->gpu_weights.shard, FM_FP8, &b->limits);
    return fm_run_create_cuda(&b->gpu, &b->gpu_weights, &b->limits, &gpu);
}

fm_both *fm_both_open(const fm_both_options *o, const char **why)
{
    fm_both *b = calloc(1, sizeof *b);
    if (open_all(b, o) == FM_OK) return b;
    *why = fm_why();
    fm_both_close(b);
    return NULL;
}

void fm_both_close(fm_both *b)
{
    fm_run_destroy(b->cpu);
    fm_run_destroy(b->gpu);
    fm_weights_fini(&b->cpu_weights);
    fm_weights_fini(&b->gpu_weights);
    fm_source_close(b->source);
    free(b->cpu_slab);
    fm_cuda_free(b->gpu_slab);
    free(b);
}

/* Adds the next n tokens of a text; the logits of the last `outs` are wanted. */
static void add_span(fm_both *b, fm_batch *batch, int text, int n, fm_form form, int outs)
{
    batch->span[batch->n_span++] = (fm_span){.row0  = batch->n_row,
                                             .n_row = n,
                                             .pos0  = b->done[text],
                                             .form  = form,
                                             .page  = b->page[text]};
    for (int i = 0; i < n; i++) {
        if (i >= n - outs) batch->out[batch->n_out++] = batch->n_row;
        batch->pos[batch->n_row]     = b->done[text];
        batch->token[batch->n_row++] = b->text[text][b->done[text]];
        b->done[text]++;
    }
}

static fm_batch empty(fm_both *b)
{
    return (fm_batch){.token = b->token, .pos = b->pos, .out = b->out, .span = b->span};
}

static fm_status forward(fm_run *r, const fm_batch *batch, const float **logits)
{
    fm_run_start(r, batch);
    fm_model_deepseek.forward(r);
    FM_TRY(fm_run_finish(r));
    return fm_run_logits(r, batch, logits);
}

static double worst_row(const float *got, const float *want, int n_row, int V)
{
    double worst = 0;
    for (int i = 0; i < n_row; i++) {
        double off = 0, size = 0;
        for (int j = 0; j < V; j++) {
            const size_t at = (size_t)i * (size_t)V + (size_t)j;
            off += pow((double)got[at] - (double)want[at], 2);
            size += pow((double)want[at], 2);
        }
        if (!(sqrt(off / size) <= worst)) worst = sqrt(off / size);
    }
    return worst;
}

double fm_both_pass(fm_both *b, int step, const char **why)
{
    fm_batch     batch = empty(b);
    const float *cpu, *gpu;
    switch (step) {
    case 0: /* two prompts, one longer than a block of keys */
        add_span(b, &batch, 0, 9, FM_FORM_PROMPT, 1);
        add_span(b, &batch, 1, 70, FM_FORM_PROMPT, 2);
        break;
    case 1: /* a decode before a chunk before a decode */
        add_span(b, &batch, 0, 1, FM_FORM_GENERATED, 1);
        add_span(b, &batch, 2, 33, FM_FORM_PROMPT, 0);
        add_span(b, &batch, 1, 1, FM_FORM_GENERATED, 1);
        break;
    case 2: /* the chunk goes on behind its prefix, tokens are computed again */
        add_span(b, &batch, 2, 40, FM_FORM_PROMPT, 1);
        add_span(b, &batch, 0, 3, FM_FORM_GENERATED, 3);
        break;
    default: /* decodes alone */
        for (int t = 0; t < TEXTS; t++) add_span(b, &batch, t, 1, FM_FORM_GENERATED, 1);
    }
    if (forward(b->cpu, &batch, &cpu) == FM_OK && forward(b->gpu, &batch, &gpu) == FM_OK)
        return worst_row(gpu, cpu, batch.n_out, b->config.vocab);
    *why = fm_why();
    return -1;
}

/* Three ways to ask for a token. */
static void ask(fm_sampling how[TEXTS], const fm_logit_bias *bias)
{
    for (int i = 0; i < TEXTS; i++) {
        how[i]      = fm_sampling_default();
        how[i].seed = 77 + (uint64_t)i;
    }
    how[0].temperature       = 0;
    how[0].logprobs          = 1;
    how[0].top_logprobs      = 4;
    how[0].bias              = bias;
    how[0].n_bias            = 1;
    how[1].temperature       = 0.8f;
    how[1].top_k             = 20;
    how[1].top_p             = 0.9f;
    how[1].min_new_tokens    = 9;
    how[2].frequency_penalty = 0.5f;
    how[2].presence_penalty  = 0.25f;
    how[2].repetition_penalty = 1.2f;
}

static int differ(const fm_sampled *a, const fm_sampled *b)
{
    int n = a->id != b->id || a->n_top != b->n_top || fabsf(a->logprob - b->logprob) > 1e-4f;
    for (int i = 0; !n && i < a->n_top; i++) n = a->top[i].id != b->top[i].id;
    return n;
}

static int choose(fm_both *b, const fm_batch *batch, fm_sampler *s)
{
    const fm_logit_bias bias = {3, 2.5f};
    fm_sampling         how[TEXTS];
    fm_sampled          gpu[TEXTS], cpu;
    fm_draw             draw[TEXTS];
    const float        *logits;
    const size_t        V = (size_t)b->config.vocab;
    int                 n = 0;
    ask(how, &bias);
    for (int i = 0; i < TEXTS; i++) draw[i] = (fm_draw){&how[i], b->text[i], 5, NULL};
    if (forward(b->gpu, batch, &logits) != FM_OK) return -1;
    float *copy = malloc(TEXTS * V * sizeof *copy);
    memcpy(copy, logits, TEXTS * V * sizeof *copy);
    if (fm_run_sample(b->gpu, batch, draw, gpu) != FM_OK) n = -1;
    for (int i = 0; n >= 0 && i < TEXTS; i++) {
        fm_sample(s, &how[i], copy + (size_t)i * V, b->text[i], 5, b->config.eos, b->config.n_eos, &cpu);
        n += differ(&gpu[i], &cpu);
    }
    free(copy);
    return n;
}

int fm_both_tokens_differ(fm_both *b, const char **why)
{
    fm_batch    batch = empty(b);
    fm_sampler *s     = NULL;
    int         n     = -1;
    for (int t = 0; t < TEXTS; t++) add_span(b, &batch, t, 1, FM_FORM_GENERATED, 1);
    if (fm_sampler_create(&s, b->config.vocab) == FM_OK) n = choose(b, &batch, s);
    if (n < 0) *why = fm_why();
    fm_sampler_destroy(s);
    return n;
}

int fm_both_is_invariant(fm_both *b, const char **why)
{
    const size_t V     = (size_t)b->config.vocab;
    const float *logits;
    float       *whole = malloc(V * sizeof *whole);
    int          same  = 0;
    memset(b->done, 0, sizeof b->done);
    fm_batch batch = empty(b);
    add_span(b, &batch, 0, 75, FM_FORM_PROMPT, 1);
    if (forward(b->gpu, &batch, &logits) != FM_OK) goto out;
    memcpy(whole, logits, V * sizeof *whole);

    b->done[0] = 0;
    for (int at = 0, n; at < 75; at += n) {
        static const int pieces[] = {31, 33, 11};
        n     = pieces[at == 0 ? 0 : at == 31 ? 1 : 2];
        batch = empty(b);
        add_span(b, &batch, 1, 5, FM_FORM_PROMPT, 1);
        add_span(b, &batch, 0, n, FM_FORM_PROMPT, 1);
        if (forward(b->gpu, &batch, &logits) != FM_OK) goto out;
    }
    same = !memcmp(whole, logits + V, V * sizeof *whole); /* text 0 is the second out row */
out:
    if (!same) *why = fm_why();
    free(whole);
    return same;
}
