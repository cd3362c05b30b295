/* SPDX-License-Identifier: Apache-2.0 */
/* What drafts need beside a decoder layer; op/cpu/drafts.c is the definition.  Links follow each
 * other without the host: a drafted token stays on the device for the next one, and a copy goes to
 * the host, which waits when the chain is over. */
#include "llm/op/cuda/cuda_internal.h"

/* --- states ---------------------------------------------------------------- */

static int32_t before_first(const fm_cuda_run *g, const fm_span *s)
{
    if (s->before < 0) return g->row_of[FM_STATE_OF_ROW(s->before)];
    return s->before > 0 ? -s->before : FM_CUDA_NO_STATE; /* place before - 1 */
}

void fm__cuda_list_states(fm_run *r)
{
    fm_cuda_run         *g = fm__gpu(r);
    const fm_batch      *b = r->batch;
    const fm_cuda_lists *l = &g->here;
    if (!r->limits.n_kept) return;
    for (int k = 0; k < b->n_span; k++) {
        const fm_span *s    = &b->span[k];
        const int      from = s->n_row - s->n_keep;
        for (int i = 0; i < s->n_row; i++) {
            const int row  = g->row_of[s->row0 + i];
            l->before[row] = i ? g->row_of[s->row0 + i - 1] : before_first(g, s);
            l->keep[row]   = i >= from ? s->keep0 + i - from : -1;
        }
    }
    for (int i = b->n_row; i < r->n_row; i++) l->before[i] = FM_CUDA_NO_STATE, l->keep[i] = -1;
}

void fm__cuda_hidden(fm_run *r, fm_act h, fm_f32s x, const float *norm, const float *w)
{
    const fm_cuda_run        *g = fm__gpu(r);
    const fm_cuda_hidden_args a = {.y      = h.data,
                                   .x      = x.data,
                                   .norm   = norm,
                                   .w      = w,
                                   .kept   = g->kept,
                                   .before = g->there.before,
                                   .keep   = g->there.keep,
                                   .eps    = r->config->eps,
                                   .n_row  = r->n_row,
                                   .width  = r->config->hidden};
    if (x.data) fm__cuda_settle(r);
    if (r->fault == FM_OK) r->fault = fm_cuda_hidden(&a, g->stream);
}

/* --- the head in E4M3 --------------------------------------------------------- */

fm_status fm__cuda_fill_draft_head(fm_run *r)
{
    const fm_cuda_run *g = fm__gpu(r);
    const fm_matrix   *head = &r->weights->head, *to = &g->draft_head;
    if (!to->panels) return FM_OK;
    FM_BUG_UNLESS(head->dtype == FM_BF16 && head->n == to->n && head->k == to->k);
    const fm_cuda_quantise_weights_args a = {head->panels, to->panels, to->scale, to->n, to->k};
    return fm_cuda_quantise_weights(&a, g->stream);
}

void fm__cuda_linear_draft(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w)
{
    const fm_cuda_run *g = fm__gpu(r);
    if (!g->draft_head.panels) {
        fm__cuda_linear_f32(r, y, x, w, r->n_out);
        return;
    }
    fm__cuda_quantise(r, g->draft_row, x.data, w->k, r->n_out);
    fm__cuda_bytes_product(r, g->draft_row, &g->draft_head, y.data, FM_CUDA_FP8_F32, r->n_out);
}

/* --- the largest ----------------------------------------------------------- */

static fm_status gather_best(fm_run *r)
{
    fm_cuda_run *g     = fm__gpu(r);
    size_t      *bytes = g->exchange.recv_n;
    const int    n     = r->weights->shard.attn.n;
    if (n == 1) return FM_OK;
    for (int k = 0; k < n; k++) bytes[k] = (size_t)r->n_out * sizeof *g->best;
    return fm_device_all_gather(g->exchange.attn, g->best,
                                g->best + r->weights->shard.attn.index * r->n_out, bytes,
                                g->stream);
}

/* A row of a link is a span and an out row: the lists of rows serve. */
void fm__cuda_best(fm_run *r, fm_f32s logits, fm_act state)
{
    fm_cuda_run                 *g    = fm__gpu(r);
    const fm_share               attn = r->weights->shard.attn;
    const fm_cuda_best_args      own  = {.logits = logits.data,
                                         .best   = g->best + attn.index * r->n_out,
                                         .n_row  = r->n_out,
                                         .width  = logits.width,
                                         .first  = fm_shard_outputs(attn, r->config->vocab).begin};
    const fm_cuda_take_best_args all  = {.best   = g->best,
                                         .id     = g->link_id,
                                         .state  = state.data,
                                         .kept   = g->kept,
                                         .keep   = g->there.keep,
                                         .n_row  = r->n_out,
                                         .n_rank = attn.n,
                                         .width  = r->config->hidden};
    if (fm__is_well(r, fm_cuda_best(&own, g->stream)) && fm__is_well(r, gather_best(r)))
        r->fault = fm_cuda_take_best(&all, g->stream);
}

void fm__cuda_end_link(fm_run *r)
{
    fm_cuda_run *g  = fm__gpu(r);
    int32_t     *to = g->drafted + (size_t)(r->batch->link - 1) * (size_t)r->limits.max_out;
    const size_t n  = (size_t)r->batch->n_out;
    if (n) r->fault = fm_cuda_download(to, g->link_id, n * sizeof *to, g->stream);
}

fm_status fm__cuda_drafted(fm_run *r, const fm_batch *b, int n_link, int32_t *id)
{
    const fm_cuda_run *g = fm__gpu(r);
    if (r->weights->n_mtp) FM_TRY(fm__cuda_wait(r));
    return fm__take_drafts(r, b, n_link, g->drafted, r->limits.max_out, id);
}
