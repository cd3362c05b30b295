/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens chosen on the device: what a request asks for becomes a few numbers
 * per row and a list of logits that change. */
#include <string.h>

#include "llm/op/cuda/cuda_internal.h"

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

static int list_edits(fm_cuda_run *g, fm_cuda_choice *c, const fm_draw *d,
                      const fm_model_config *config, int row)
{
    edits e = {c, g->edit_at, row, *c->n_edit, 0};
    list_penalties(&e, d);
    list_forbidden(&e, d, config);
    for (int i = 0; i < d->how->n_bias; i++)
        edit_of(&e, d->how->bias[i].id)->bias += d->how->bias[i].bias;
    for (int i = e.first; i < *c->n_edit; i++) {
        e.at[c->edit[i].id] = 0;
        c->how[row].forbids |= (int16_t)c->edit[i].forbid;
    }
    return !e.is_full;
}

/* --- a step --------------------------------------------------------------- */

/* The same from step to step for a row that is not drawn. */
static fm_cuda_sampling how_of(const fm_draw *d)
{
    const fm_sampling *p         = d->how;
    const int          is_greedy = p->temperature < 1e-6f;
    return (fm_cuda_sampling){.temperature = p->temperature,
                              .top_p       = p->top_p,
                              .min_p       = p->min_p,
                              .top_k       = p->top_k,
                              .position    = is_greedy ? 0 : d->n_output,
                              .logprob     = p->logprobs || p->top_logprobs > 0,
                              .n_top       = p->top_logprobs,
                              .seed        = p->seed};
}

/* A row's mask behind those before it; the number of masks then. */
static int32_t list_mask(fm_cuda_choice *c, const fm_draw *d, int vocab, int32_t n_mask)
{
    const size_t n = fm__cuda_mask_words(vocab);
    memcpy(c->allowed + (size_t)n_mask * n, d->allowed, n * sizeof *c->allowed);
    return n_mask + 1;
}

static fm_status list_choice(fm_run *r, fm_cuda_choice *c, const fm_draw *draw, int n,
                             fm_cuda_sample_args *a, int32_t *n_mask)
{
    *c->n_edit     = 0;
    a->only_greedy = 1;
    for (int i = 0; i < n; i++) {
        c->how[i] = how_of(&draw[i]);
        if (!(c->how[i].temperature < 1e-6f) || c->how[i].logprob) a->only_greedy = 0;
        if (c->how[i].n_top > 0) a->any_top = 1;
        if (draw[i].allowed)
            c->how[i].mask = *n_mask = list_mask(c, &draw[i], r->config->vocab, *n_mask);
        if (!list_edits(fm__gpu(r), c, &draw[i], r->config, i))
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

/* The list on the device is the previous step's; it is copied only if this step's differs. */
static int is_there(const fm_cuda_run *g, const fm_cuda_asked *q)
{
    const fm_cuda_asked *last = &g->asked[(g->n_asked - 1) % FM_CUDA_AHEAD];
    return g->n_asked > 0 && last->n >= q->n &&
           !memcmp(last->here.how, q->here.how, (size_t)q->n * sizeof *q->here.how);
}

static fm_status upload(fm_cuda_run *g, const fm_cuda_asked *q, int n_edit, size_t masks)
{
    const fm_cuda_choice *here = &q->here, there = g->choose_there;
    const size_t          bytes = (size_t)((char *)(here->edit + n_edit) - (char *)here->n_edit);
    if (!is_there(g, q))
        FM_TRY(fm_cuda_upload(there.how, here->how, (size_t)q->n * sizeof *here->how, g->stream));
    if (n_edit) FM_TRY(fm_cuda_upload(there.n_edit, here->n_edit, bytes, g->stream));
    return masks ? fm_cuda_upload(there.allowed, here->allowed, masks, g->stream) : FM_OK;
}

/* The best tokens are many: they are copied. */
static fm_status download_top(fm_cuda_run *g, const fm_cuda_asked *q)
{
    const fm_cuda_choice *here = &q->here;
    const size_t          n    = (size_t)q->n * FM_MAX_TOP_LOGPROBS;
    const char           *end  = (char *)(here->top_logprob + n);
    return fm_cuda_download(here->top_id, g->choose_there.top_id,
                            (size_t)(end - (char *)here->top_id), g->stream);
}

static fm_status ask(fm_run *r, fm_cuda_asked *q, const fm_draw *draw)
{
    fm_cuda_run         *g     = fm__gpu(r);
    const fm_cuda_choice there = g->choose_there;
    fm_cuda_sample_args  a     = {.how          = there.how,
                                  .edit         = there.edit,
                                  .n_edit       = there.n_edit,
                                  .n_row        = q->n,
                                  .vocab        = r->config->vocab,
                                  .scratch      = g->choose_scratch,
                                  .id           = there.id,
                                  .logprob      = there.logprob,
                                  .top_id       = there.top_id,
                                  .top_logprob  = there.top_logprob,
                                  .told_id      = q->here.id,
                                  .told_logprob = q->here.logprob};
    int32_t n_mask = 0;
    FM_TRY(list_choice(r, &q->here, draw, q->n, &a, &n_mask));
    a.logits   = fm__cuda_taken(r);
    a.max_edit = *q->here.n_edit;
    a.allowed  = n_mask ? there.allowed : NULL;
    q->any_top = a.any_top;
    FM_TRY(upload(g, q, a.max_edit, (size_t)n_mask * fm__cuda_mask_words(a.vocab) * sizeof *there.allowed));
    FM_TRY(fm_cuda_sample(&a, g->stream));
    if (a.any_top) FM_TRY(download_top(g, q));
    return fm_cuda_mark_set(q->done, g->stream);
}

fm_status fm__cuda_sample(fm_run *r, const fm_batch *b, const fm_draw *draw, int *ticket)
{
    fm_cuda_run   *g = fm__gpu(r);
    fm_cuda_asked *q = &g->asked[*ticket = (int)(g->n_asked % FM_CUDA_AHEAD)];
    FM_TRY(fm__cuda_reach(r, q->done));
    q->n = fm__cuda_outs(r, b);
    if (q->n) FM_TRY(ask(r, q, draw));
    else (void)fm__cuda_taken(r);
    g->n_asked++;
    return FM_OK;
}

fm_status fm__cuda_sampled(fm_run *r, int ticket, fm_sampled *out)
{
    const fm_cuda_asked *q = &fm__gpu(r)->asked[ticket];
    if (!q->n) return FM_OK;
    FM_TRY(fm__cuda_reach(r, q->done));
    for (int i = 0; i < q->n; i++) read_choice(&q->here, i, q->any_top, &out[i]);
    return FM_OK;
}
