/* SPDX-License-Identifier: Apache-2.0 */
/* A run on both sides, and its passes. */
#include "llm/op/shadow/shadow.h"

#include <stdlib.h>

#include "llm/op/shadow/shadow_internal.h"

/* The faults of both sides are the run's. */
int fm__shadow_is_well(fm_run *r)
{
    const fm_shadow *s = fm__shadow(r);
    if (r->fault == FM_OK) r->fault = s->cpu->fault;
    if (r->fault == FM_OK) r->fault = s->gpu->fault;
    return r->fault == FM_OK;
}

/* --- a pass ----------------------------------------------------------------- */

/* Rows of spans of one form, from `row` on, as the GPU orders them. */
static int take_spans(fm_shadow *s, const fm_batch *b, fm_form form, int32_t *row_to, int row)
{
    fm_batch *to = &s->batch;
    for (int k = 0; k < b->n_span; k++) {
        if (b->span[k].form != form) continue;
        to->span[to->n_span]      = b->span[k];
        to->span[to->n_span].row0 = row;
        to->n_span++;
        for (int i = 0; i < b->span[k].n_row; i++, row++) {
            const int from   = b->span[k].row0 + i;
            to->token[row]   = b->token[from];
            to->pos[row]     = b->pos[from];
            s->row_from[row] = from;
            row_to[from]     = row;
        }
    }
    return row;
}

void fm__shadow_begin(fm_run *r)
{
    fm_shadow      *s      = fm__shadow(r);
    const fm_batch *b      = r->batch;
    int32_t        *row_to = (int32_t *)s->room;
    s->batch.n_span        = 0;
    s->batch.n_row         = b->n_row;
    s->batch.n_out         = b->n_out;
    s->batch.is_decode     = b->is_decode;
    s->batch.link          = b->link;
    s->n_gen               = take_spans(s, b, FM_FORM_GENERATED, row_to, 0);
    take_spans(s, b, FM_FORM_PROMPT, row_to, s->n_gen);
    for (int k = 0; k < b->n_span; k++) {
        fm_span *t = &s->batch.span[k];
        if (t->before < 0) t->before = FM_STATE_OF_ROW(row_to[FM_STATE_OF_ROW(t->before)]);
    }
    for (int i = 0; i < b->n_out; i++) s->batch.out[i] = row_to[b->out[i]];
    fm_run_start(s->cpu, &s->batch);
    fm_run_start(s->gpu, &s->batch);
    fm__shadow_is_well(r);
}

void fm__shadow_end(fm_run *r)
{
    const fm_shadow *s = fm__shadow(r);
    fm_run_finish(s->cpu);
    fm_run_finish(s->gpu);
    fm__shadow_is_well(r);
}

/* Taking the CPU's logits ends the pass; the GPU has to choose from its. */
fm_status fm__shadow_logits(fm_run *r, const fm_batch *b, const float **all)
{
    FM_TRY(fm_run_logits(fm__shadow(r)->cpu, b, all));
    const fm_status rc = fm__shadow_choose(r, b, *all);
    if (r->fault == FM_OK) r->fault = rc;
    return rc;
}

/* Both had the same logits, so they drafted the same. */
fm_status fm__shadow_drafted(fm_run *r, const fm_batch *b, int n_link, int32_t *id)
{
    const fm_shadow *s   = fm__shadow(r);
    int32_t         *gpu = (int32_t *)s->room;
    FM_TRY(fm_run_drafted(s->gpu, b, n_link, gpu));
    FM_TRY(fm_run_drafted(s->cpu, b, n_link, id));
    for (int i = 0; i < n_link * b->n_out; i++)
        if (gpu[i] != id[i])
            return fm_fail(FM_E_DEVICE, "--shadow: best, row %d: token %d on the CPU, %d on the GPU",
                           i % b->n_out, (int)id[i], (int)gpu[i]);
    return FM_OK;
}

/* --- making one ------------------------------------------------------------- */

void fm__shadow_destroy(fm_run *r)
{
    fm_shadow *s = fm__shadow(r);
    fm_run_destroy(s->gpu);
    fm_run_destroy(s->cpu);
    free(s->twin);
    free(s->room);
    fm_sampler_destroy(s->sampler);
    free(s->draw);
    free(s->sampled);
    free(s->row_from);
    free(s->batch.token);
    free(s->batch.pos);
    free(s->batch.span);
    free(s->batch.out);
    free(s);
    free(r);
}

/* Bytes of the widest thing that is compared at once. */
static size_t widest(const fm_model_config *c, const fm_run_limits *lim)
{
    const size_t T     = (size_t)lim->max_rows;
    const int    row[] = {c->hidden,
                          c->n_head * (c->nope + c->rope),
                          c->n_head * c->v_dim,
                          fm_kv_width(c),
                          c->q_lora,
                          c->n_expert,
                          2 * c->top_k};
    size_t       most  = (size_t)lim->max_out * (size_t)c->vocab;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (T * (size_t)row[i] > most) most = T * (size_t)row[i];
    return most * sizeof(float);
}

size_t fm_run_shadow_bytes(const fm_model_config *c, const fm_run_limits *lim)
{
    const size_t T = (size_t)lim->max_rows;
    return widest(c, lim) + fm_sampler_bytes(c->vocab) +
           T * (3 * sizeof(int32_t) + sizeof(fm_span)) +
           (size_t)lim->max_out * (sizeof(int32_t) + sizeof(fm_draw) + sizeof(fm_sampled));
}

static fm_status make_ready(fm_shadow *s)
{
    const fm_cuda_run *g = fm__gpu(s->gpu);
    const size_t T = (size_t)s->cpu->limits.max_rows, out = (size_t)s->cpu->limits.max_out;
    if (s->cpu->ranks.replica->n_rank > 1)
        return fm_fail(FM_E_NOSUP, "--shadow compares one rank's run");
    FM_BUG_UNLESS(g->immediate && !g->records && !g->kv_scale);
    s->room        = malloc(widest(s->cpu->config, &s->cpu->limits));
    s->draw        = calloc(out, sizeof *s->draw);
    s->sampled     = calloc(out, sizeof *s->sampled);
    s->row_from    = calloc(T, sizeof *s->row_from);
    s->batch.token = calloc(T, sizeof *s->batch.token);
    s->batch.pos   = calloc(T, sizeof *s->batch.pos);
    s->batch.span  = calloc(T, sizeof *s->batch.span); /* a span has a row */
    s->batch.out   = calloc(out, sizeof *s->batch.out);
    if (!s->room || !s->draw || !s->sampled || !s->row_from || !s->batch.token || !s->batch.pos ||
        !s->batch.span || !s->batch.out)
        return fm_fail(FM_E_OOM, "shadow run");
    FM_TRY(fm_sampler_create(&s->sampler, s->cpu->config->vocab));
    return fm__shadow_list_twins(s);
}

fm_status fm_run_create_shadow(fm_run **out, fm_run *cpu, fm_run *gpu)
{
    fm_run    *r = calloc(1, sizeof *r);
    fm_shadow *s = calloc(1, sizeof *s);
    if (!r || !s) {
        free(r);
        free(s);
        fm_run_destroy(gpu);
        fm_run_destroy(cpu);
        return fm_fail(FM_E_OOM, "shadow run");
    }
    *s = (fm_shadow){.cpu = cpu, .gpu = gpu, .hook = {.end = fm__shadow_end_op}};
    *r = (fm_run){.ops     = &fm__shadow_ops,
                  .config  = cpu->config,
                  .weights = cpu->weights,
                  .limits  = cpu->limits,
                  .act     = cpu->act,
                  .ranks   = cpu->ranks,
                  .backend = s};
    const fm_status rc = make_ready(s);
    if (rc != FM_OK) {
        fm__shadow_destroy(r);
        return rc;
    }
    fm_run_add_hook(r, &s->hook);
    *out = r;
    return FM_OK;
}
