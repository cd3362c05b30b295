/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/plan/plan.h"

#include <limits.h>
#include <stdio.h>

static double gib(size_t bytes)
{
    return (double)bytes / 0x1p30;
}

/* Left alone by default: a sixteenth of the machine, at least 256 MiB. */
static size_t margin(size_t total)
{
    return total / 16 > (size_t)256 << 20 ? total / 16 : (size_t)256 << 20;
}

/* A share of main memory that was asked for is taken whole. */
static size_t reserve_of(const fm_plan_request *q)
{
    if (q->reserve) return q->reserve;
    return q->mem_fraction > 0 ? 0 : margin(q->total);
}

size_t fm_plan_budget(const fm_plan_request *q)
{
    const size_t kept = reserve_of(q), most = q->available > kept ? q->available - kept : 0;
    const double wish = q->mem_fraction * (double)q->total;
    return q->mem_fraction > 0 && wish < (double)most ? (size_t)wish : most;
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

static const char *limited_by(const fm_plan_request *q)
{
    return q->limited_by ? q->limited_by : "";
}

/* How many ranks with this much memory each would hold the weights, and how many
 * layers these ranks do.  Not all of a model divides evenly: about. */
static fm_status weights_too_big(const fm_plan_request *q, size_t budget)
{
    const size_t  beside = q->workspace + q->kv_page;
    const size_t  room   = budget > beside ? budget - beside : 0;
    const int     n_rank = q->n_rank > 0 ? q->n_rank : 1;
    const double  times  = room ? (double)q->weights / (double)room : 0;
    const int64_t layers = room ? (int64_t)(q->n_layer / times) : 0;
    fm_str        cure   = {0};
    if (room)
        fm_str_printf(
            &cure, "; about %lld ranks with as much memory each hold them (--tp-size, --pp-size)",
            (long long)(times * n_rank) + 1);
    if (layers)
        fm_str_printf(&cure,
                      "; about %lld of the %d layers fit here (--json-model-override-args "
                      "'{\"num_hidden_layers\": %lld}')",
                      (long long)layers, q->n_layer, (long long)layers);
    const fm_status rc =
        fm_fail(FM_E_OOM,
                "the weights take %.2f GiB, %.2f GiB more than the %.2f GiB there are for "
                "everything%s%s%s",
                gib(q->weights), gib(q->weights - budget), gib(budget), limited_by(q),
                cure.text ? cure.text : "", or_more_memory(q));
    fm_str_fini(&cure);
    return rc;
}

static fm_status workspace_too_big(const fm_plan_request *q, size_t budget, size_t need)
{
    char cure[120] = "lower --chunked-prefill-size, --max-running-requests or --context-length";
    if (q->chunk_fits)
        snprintf(cure, sizeof cure, "--chunked-prefill-size %lld fits", (long long)q->chunk_fits);
    return fm_fail(FM_E_OOM,
                   "the plan is %.2f GiB over the %.2f GiB there are%s: weights %.2f, workspace "
                   "%.2f GiB; %s%s",
                   gib(need - budget), gib(budget), limited_by(q), gib(q->weights),
                   gib(q->workspace), cure, or_more_memory(q));
}

/* `need` is with the fewest pages that make sense for the request. */
static fm_status too_big(const fm_plan_request *q, size_t budget, size_t need)
{
    const size_t fixed = q->weights + q->workspace;
    if (q->weights > budget) return weights_too_big(q, budget);
    if (fixed + q->kv_page > budget) return workspace_too_big(q, budget, need);
    const int64_t fit = (int64_t)((budget - fixed) / q->kv_page) * q->page_size;
    return fm_fail(FM_E_OOM,
                   "--max-total-tokens %lld needs %.2f GiB more than the %.2f GiB there are%s: "
                   "--max-total-tokens %lld fits%s",
                   (long long)q->max_total_tokens, gib(need - budget), gib(budget), limited_by(q),
                   (long long)fit, or_more_memory(q));
}

fm_status fm_plan_make(fm_plan *out, const fm_plan_request *q)
{
    const size_t  budget = fm_plan_budget(q), fixed = q->weights + q->workspace;
    const int64_t wanted = wanted_pages(q);
    const int64_t fit    = budget > fixed ? (int64_t)((budget - fixed) / q->kv_page) : 0;
    if (fit < 1) return too_big(q, budget, fixed + q->kv_page);
    if (q->max_total_tokens && fit < wanted)
        return too_big(q, budget, fixed + (size_t)wanted * q->kv_page);
    const int64_t pages = fit < wanted ? fit : wanted;
    const char   *others = "the rest of the machine";
    *out                = (fm_plan){.kept_for   = q->reserve ? q->kept_for : others,
                                    .kv_type    = q->kv_type ? q->kv_type : "bfloat16",
                                    .reserve    = reserve_of(q),
                                    .available  = q->available,
                                    .weights    = q->weights,
                                    .workspace  = q->workspace,
                                    .kv         = (size_t)pages * q->kv_page,
                                    .host       = q->host,
                                    .host_for   = q->host_for,
                                    .budget     = budget,
                                    .n_page     = (int)pages,
                                    .page_size  = q->page_size,
                                    .max_tokens = pages * q->page_size};
    snprintf(out->where, sizeof out->where, "%s", q->where ? q->where : "in main memory");
    return FM_OK;
}

static long long mib(size_t bytes)
{
    return (long long)((bytes + ((size_t)1 << 19)) >> 20);
}

/* Of the next part of a sum, so that what is printed adds up. */
static long long next_mib(size_t *sum, size_t bytes)
{
    const long long before = mib(*sum);
    *sum += bytes;
    return mib(*sum) - before;
}

void fm_plan_print(const fm_plan *p, fm_str *out)
{
    size_t sum = 0;
    fm_str_printf(out, "memory plan       MiB   %s\n", p->where);
    fm_str_printf(out, "  weights    %8lld\n", next_mib(&sum, p->weights));
    fm_str_printf(out, "  workspace  %8lld\n", next_mib(&sum, p->workspace));
    if (p->reserve)
        fm_str_printf(out, "  reserve    %8lld   %s\n", next_mib(&sum, p->reserve), p->kept_for);
    fm_str_printf(out, "  KV pages   %8lld   %lld tokens in %d pages of %d, %s\n",
                  next_mib(&sum, p->kv), (long long)p->max_tokens, p->n_page, p->page_size,
                  p->kv_type);
    fm_str_printf(out, "  in all     %8lld   of %lld free\n", mib(sum), mib(p->available));
    if (p->host)
        fm_str_printf(out, "  beside     %8lld   in main memory: %s\n", mib(p->host), p->host_for);
    if (!p->pinned) return;
    fm_str_printf(out, "  pinned     %8lld   in main memory", mib(p->pinned));
    if (p->main_available) fm_str_printf(out, ", of %lld free", mib(p->main_available));
    if (p->n_host_page) fm_str_printf(out, ": %d pages of prefixes", p->n_host_page);
    fm_str_puts(out, "\n");
}
