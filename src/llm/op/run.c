/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/run.h"

void fm_run_start(fm_run *r, const fm_batch *b)
{
    r->batch       = b;
    r->n_row       = b->n_row;
    r->n_out       = b->n_out;
    r->is_replayed = 0;
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
