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

static fm_status too_big(const fm_plan_request *q, size_t budget, int64_t pages)
{
    const size_t fixed = q->weights + q->workspace, need = fixed + (size_t)pages * q->kv_page;
    const size_t over  = need - budget;
    if (fixed + q->kv_page > budget)
        return fm_fail(FM_E_OOM,
                       "the model needs %.2f GiB more than the %.2f GiB it may use: weights %.2f, "
                       "workspace %.2f GiB; fewer layers (--json-model-override-args), a smaller "
                       "--chunked-prefill-size, --max-running-requests or --context-length, or a "
                       "larger --mem-fraction-static would help",
                       gib(over), gib(budget), gib(q->weights), gib(q->workspace));
    const int64_t fit = (int64_t)((budget - fixed) / q->kv_page) * q->page_size;
    return fm_fail(FM_E_OOM,
                   "--max-total-tokens %lld needs %.2f GiB more than the %.2f GiB there are: "
                   "--max-total-tokens %lld fits, or give more with --mem-fraction-static",
                   (long long)q->max_total_tokens, gib(over), gib(budget), (long long)fit);
}

fm_status fm_plan_make(fm_plan *out, const fm_plan_request *q)
{
    const size_t  budget = budget_of(q), fixed = q->weights + q->workspace;
    const int64_t wanted = wanted_pages(q);
    const int64_t fit    = budget > fixed ? (int64_t)((budget - fixed) / q->kv_page) : 0;
    if (fit < 1) return too_big(q, budget, 1);
    if (q->max_total_tokens && fit < wanted) return too_big(q, budget, wanted);
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
