/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/run.h"

void fm_run_start(fm_run *r, const fm_batch *b)
{
    r->batch       = b;
    r->n_row       = b->n_row;
    r->n_out       = b->n_out;
    r->is_replayed = 0;
    r->layer       = FM_NO_LAYER;
    r->fault       = FM_OK;
    if (r->ops->begin) r->ops->begin(r);
}

fm_status fm_run_finish(fm_run *r)
{
    if (r->ops->end) r->ops->end(r);
    r->batch = NULL;
    return r->fault;
}

void fm_run_destroy(fm_run *r)
{
    if (r) r->ops->destroy(r);
}

fm_status fm_run_logits(fm_run *r, const fm_batch *b, const float **all)
{
    return r->ops->logits(r, b, all);
}

fm_status fm_run_drafted(fm_run *r, const fm_batch *b, int n_link, int32_t *id)
{
    return r->ops->drafted(r, b, n_link, id);
}

fm_status fm_run_choose(fm_run *r, const fm_batch *b, const fm_draw *draw, int *ticket)
{
    r->layer = FM_NO_LAYER;
    if (r->hook) fm__op_begins(r, FM_OP_SAMPLE, b->n_out, NULL, NULL);
    const fm_status rc = r->ops->sample(r, b, draw, ticket);
    if (r->hook) fm__op_ends(r);
    return rc;
}

fm_status fm_run_chosen(fm_run *r, int ticket, fm_sampled *out)
{
    return r->ops->sampled(r, ticket, out);
}

fm_status fm_run_sample(fm_run *r, const fm_batch *b, const fm_draw *draw, fm_sampled *out)
{
    int ticket = 0;
    FM_TRY(fm_run_choose(r, b, draw, &ticket));
    return fm_run_chosen(r, ticket, out);
}

fm_status fm_run_copy_pages(fm_run *r, const fm_page_copy *copy, int n)
{
    return n ? r->ops->copy_pages(r, copy, n) : FM_OK;
}

fm_status fm_run_copied(fm_run *r, int waits, uint32_t *n_made)
{
    return r->ops->copied ? r->ops->copied(r, waits, n_made) : FM_OK;
}

/* --- hooks ------------------------------------------------------------------- */

const char *fm_op_name(fm_op op)
{
    static const char *const name[FM_N_OP] = {
#define X(id, text) [FM_OP_##id] = text,
        FM_OP_MAP(X)
#undef X
    };
    return name[op];
}

void fm_run_add_hook(fm_run *r, fm_op_hook *h)
{
    h->next = r->hook;
    r->hook = h;
}

void fm_run_remove_hook(fm_run *r, fm_op_hook *h)
{
    fm_op_hook **at = &r->hook;
    while (*at != h) {
        FM_BUG_UNLESS(*at);
        at = &(*at)->next;
    }
    *at = h->next;
}

fm_status fm_run_watch(fm_run *r, fm_op_watch *w)
{
    if (!r->ops->watch) return fm_fail(FM_E_NOSUP, "%s has no ops that run later", r->ops->name);
    return r->ops->watch(r, w);
}

void fm__op_begins(fm_run *r, fm_op op, int n_row, const void *out, const void *weights)
{
    r->call = (fm_op_call){op, r->layer, n_row, out, weights};
    for (fm_op_hook *h = r->hook; h; h = h->next)
        if (h->begin) h->begin(h, r, &r->call);
}

void fm__op_ends(fm_run *r)
{
    for (fm_op_hook *h = r->hook; h; h = h->next)
        if (h->end) h->end(h, r, &r->call);
}
