/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/run.h"

fm_status fm_run_finish(fm_run *r)
{
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
