/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens chosen on the device: what a request asks for becomes a few numbers
 * per row and a list of logits that change. */
#include <string.h>

#include "llm/op/cuda_internal.h"

void fm__cuda_carve_choice(fm_cuda_choice *c, size_t n, fm_slab *s)
{
    c->how         = fm_slab_take(s, n * sizeof *c->how);
    c->n_edit      = fm_slab_take(s, sizeof *c->n_edit);
    c->edit        = fm_slab_take(s, FM_CUDA_EDITS * sizeof *c->edit);
    c->id          = fm_slab_take(s, n * sizeof *c->id);
    c->logprob     = fm_slab_take(s, n * sizeof *c->logprob);
    c->top_id      = fm_slab_take(s, n * FM_MAX_TOP_LOGPROBS * sizeof *c->top_id);
    c->top_logprob = fm_slab_take(s, n * FM_MAX_TOP_LOGPROBS * sizeof *c->top_logprob);
}

/* --- edits ---------------------------------------------------------------- */

typedef struct {
    fm_cuda_choice *c;
    int32_t        *at; /* [vocab] 1 + the row's edit of a logit; 0: none */
    int             row, first;
    int             is_full;
} edits;

static fm_cuda_logit_edit *edit_of(edits *e, int32_t id)
{
    fm_cuda_choice *c = e->c;
    if (e->at[id]) return &c->edit[e->at[id] - 1];
    e->is_full |= *c->n_edit == FM_CUDA_EDITS;
    if (e->is_full) return &c->edit[FM_CUDA_EDITS - 1];
    c->edit[*c->n_edit] = (fm_cuda_logit_edit){.row = e->row, .id = id, .penalty = 1};
    e->at[id]           = ++*c->n_edit;
    return &c->edit[*c->n_edit - 1];
}

static void list_penalties(edits *e, const fm_draw *d)
{
    const fm_sampling *p = d->how;
    if (p->frequency_penalty == 0 && p->presence_penalty == 0 && p->repetition_penalty == 1) return;
    for (int i = 0; i < d->n_output; i++) edit_of(e, d->output[i])->less += 1; /* how often */
    for (int i = e->first; i < *e->c->n_edit; i++) {
        fm_cuda_logit_edit *at = &e->c->edit[i];
        at->less               = p->frequency_penalty * at->less + p->presence_penalty;
        at->penalty            = p->repetition_penalty;
    }
}

static void list_forbidden(edits *e, const fm_draw *d, const fm_model_config *c)
{
    if (d->n_output >= d->how->min_new_tokens) return;
    for (int i = 0; i < c->n_eos; i++)
        if (c->eos[i] >= 0 && c->eos[i] < c->vocab) edit_of(e, c->eos[i])->forbid = 1;
    for (int i = 0; i < d->how->n_stop_id; i++)
        if (d->how->stop_id[i] >= 0 && d->how->stop_id[i] < c->vocab)
            edit_of(e, d->how->stop_id[i])->forbid = 1;
}

static int list_edits(fm_cuda_run *g, const fm_draw *d, const fm_model_config *config, int row)
{
    fm_cuda_choice *c = &g->choose_here;
    edits           e = {c, g->edit_at, row, *c->n_edit, 0};
    list_penalties(&e, d);
    list_forbidden(&e, d, config);
    for (int i = 0; i < d->how->n_bias; i++)
        edit_of(&e, d->how->bias[i].id)->bias += d->how->bias[i].bias;
    for (int i = e.first; i < *c->n_edit; i++) e.at[c->edit[i].id] = 0;
    return !e.is_full;
}

/* --- a step --------------------------------------------------------------- */

static fm_cuda_sampling how_of(const fm_draw *d)
{
    const fm_sampling *p = d->how;
    return (fm_cuda_sampling){.temperature = p->temperature,
                              .top_p       = p->top_p,
                              .min_p       = p->min_p,
                              .top_k       = p->top_k,
                              .position    = d->n_output,
                              .logprob     = p->logprobs || p->top_logprobs > 0,
                              .n_top       = p->top_logprobs,
                              .seed        = p->seed};
}

static fm_status list_choice(fm_run *r, const fm_draw *draw, int n, fm_cuda_sample_args *a)
{
    fm_cuda_run    *g = fm__gpu(r);
    fm_cuda_choice *c = &g->choose_here;
    *c->n_edit     = 0;
    a->only_greedy = 1;
    for (int i = 0; i < n; i++) {
        c->how[i] = how_of(&draw[i]);
        if (!(c->how[i].temperature < 1e-6f) || c->how[i].logprob) a->only_greedy = 0;
        if (c->how[i].n_top > 0) a->any_top = 1;
        if (!list_edits(g, &draw[i], r->config, i))
            return fm_fail(FM_E_FULL, "more than %d logits are penalised or biased", FM_CUDA_EDITS);
    }
    return FM_OK;
}

static void read_choice(const fm_cuda_choice *c, int i, int any_top, fm_sampled *out)
{
    *out       = (fm_sampled){.id = c->id[i], .logprob = c->logprob[i]};
    const int at = i * FM_MAX_TOP_LOGPROBS;
    while (any_top && out->n_top < c->how[i].n_top && c->top_id[at + out->n_top] >= 0) {
        out->top[out->n_top] = (fm_top_logprob){c->top_id[at + out->n_top],
                                                c->top_logprob[at + out->n_top]};
        out->n_top++;
    }
}

fm_status fm__cuda_sample(fm_run *r, const fm_batch *b, const fm_draw *draw, fm_sampled *out)
{
    fm_cuda_run         *g = fm__gpu(r);
    const fm_cuda_choice there = g->choose_there;
    fm_cuda_choice      *here  = &g->choose_here;
    const int            n_out = fm__cuda_outs(r, b);
    fm_cuda_sample_args  a     = {.logits      = fm__cuda_taken(r),
                                  .how         = there.how,
                                  .edit        = there.edit,
                                  .n_edit      = there.n_edit,
                                  .n_row       = n_out,
                                  .vocab       = r->config->vocab,
                                  .scratch     = g->choose_scratch,
                                  .id          = there.id,
                                  .logprob     = there.logprob,
                                  .top_id      = there.top_id,
                                  .top_logprob = there.top_logprob};
    if (n_out == 0) return FM_OK;
    FM_TRY(list_choice(r, draw, n_out, &a));
    a.max_edit = *here->n_edit;

    const size_t n     = (size_t)n_out;
    const size_t there_bytes = (size_t)((char *)(here->edit + a.max_edit) - (char *)here->how);
    const size_t back  = a.any_top ? (size_t)((char *)(here->top_logprob + n * FM_MAX_TOP_LOGPROBS) -
                                              (char *)here->id)
                                   : (size_t)((char *)(here->logprob + n) - (char *)here->id);
    FM_TRY(fm_cuda_upload(there.how, here->how, there_bytes, g->stream));
    FM_TRY(fm_cuda_sample(&a, g->stream));
    FM_TRY(fm_cuda_download(here->id, there.id, back, g->stream));
    FM_TRY(fm__cuda_wait(r));
    for (int i = 0; i < n_out; i++) read_choice(here, i, a.any_top, &out[i]);
    return FM_OK;
}
