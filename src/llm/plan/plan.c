/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/plan/plan.h"

#include <limits.h>

static double gib(size_t bytes)
{
    return (double)bytes / 0x1p30;
}

/* Left alone by default: a sixteenth of the machine, at least 256 MiB. */
static size_t margin(size_t total)
{
    return total / 16 > (size_t)256 << 20 ? total / 16 : (size_t)256 << 20;
}

static size_t budget_of(const fm_plan_request *q)
{
    if (q->mem_fraction <= 0)
        return q->available > margin(q->total) ? q->available - margin(q->total) : 0;
    const double wish = q->mem_fraction * (double)q->total;
    return wish < (double)q->available ? (size_t)wish : q->available;
}

/* Pages worth having: what was asked for, or what the running sequences could
 * ever fill. */
static int64_t wanted_pages(const fm_plan_request *q)
{
    const int64_t tokens = q->max_total_tokens ? q->max_total_tokens
                                               : (int64_t)q->max_running * q->max_context;
    const int64_t pages  = (tokens + q->page_size - 1) / q->page_size;
    return pages < INT_MAX / q->page_size ? pages : INT_MAX / q->page_size;
}

/* A share of the machine was asked for, and more is there. */
static const char *or_more_memory(const fm_plan_request *q)
{
    return q->mem_fraction > 0 && q->mem_fraction * (double)q->total < (double)q->available
               ? ", or raise --mem-fraction-static"
               : "";
}

/* `need` is with the fewest pages that make sense for the request. */
static fm_status too_big(const fm_plan_request *q, size_t budget, size_t need)
{
    const size_t fixed = q->weights + q->workspace;
    if (q->weights > budget)
        return fm_fail(FM_E_OOM,
                       "the weights take %.2f GiB, %.2f GiB more than the %.2f GiB there are for "
                       "everything: run fewer layers (--json-model-override-args "
                       "'{\"num_hidden_layers\": N}')%s",
                       gib(q->weights), gib(q->weights - budget), gib(budget), or_more_memory(q));
    if (fixed + q->kv_page > budget)
        return fm_fail(FM_E_OOM,
                       "the plan is %.2f GiB over the %.2f GiB there are: weights %.2f, workspace "
                       "%.2f GiB; lower --chunked-prefill-size, --max-running-requests or "
                       "--context-length%s",
                       gib(need - budget), gib(budget), gib(q->weights), gib(q->workspace),
                       or_more_memory(q));
    const int64_t fit = (int64_t)((budget - fixed) / q->kv_page) * q->page_size;
    return fm_fail(FM_E_OOM,
                   "--max-total-tokens %lld needs %.2f GiB more than the %.2f GiB there are: "
                   "--max-total-tokens %lld fits%s",
                   (long long)q->max_total_tokens, gib(need - budget), gib(budget), (long long)fit,
                   or_more_memory(q));
}

fm_status fm_plan_make(fm_plan *out, const fm_plan_request *q)
{
    const size_t  budget = budget_of(q), fixed = q->weights + q->workspace;
    const int64_t wanted = wanted_pages(q);
    const int64_t fit    = budget > fixed ? (int64_t)((budget - fixed) / q->kv_page) : 0;
    if (fit < 1) return too_big(q, budget, fixed + q->kv_page);
    if (q->max_total_tokens && fit < wanted)
        return too_big(q, budget, fixed + (size_t)wanted * q->kv_page);
    const int64_t pages = fit < wanted ? fit : wanted;
    *out                = (fm_plan){.weights    = q->weights,
                                    .workspace  = q->workspace,
                                    .kv         = (size_t)pages * q->kv_page,
                                    .budget     = budget,
                                    .n_page     = (int)pages,
                                    .page_size  = q->page_size,
                                    .max_tokens = pages * q->page_size};
    return FM_OK;
}

void fm_plan_print(const fm_plan *p, fm_str *out)
{
    fm_str_printf(out, "memory plan       GiB\n");
    fm_str_printf(out, "  weights    %8.2f\n", gib(p->weights));
    fm_str_printf(out, "  workspace  %8.2f\n", gib(p->workspace));
    fm_str_printf(out, "  KV pages   %8.2f   %lld tokens in %d pages of %d\n", gib(p->kv),
                  (long long)p->max_tokens, p->n_page, p->page_size);
    fm_str_printf(out, "  in all     %8.2f   of %.2f it may use\n",
                  gib(p->weights + p->workspace + p->kv), gib(p->budget));
}
