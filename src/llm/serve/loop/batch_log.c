/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/loop/batch_log.h"

#include <time.h>

void fm__batch_log_begin(fm__batch_log *l, int interval, const fm_engine_info *e, double now)
{
    *l = (fm__batch_log){.interval  = interval,
                         .sched     = e->sched,
                         .kv        = e->kv,
                         .n_output  = e->sched.n_output,
                         .prefilled = now,
                         .decoded   = now};
}

static void put_time(fm_str *out)
{
    char         text[32];
    struct tm    parts;
    const time_t now = time(NULL);
    localtime_r(&now, &parts);
    strftime(text, sizeof text, "[%Y-%m-%d %H:%M:%S] ", &parts);
    fm_str_puts(out, text);
}

static int64_t held_tokens(const fm_engine_info *e)
{
    return (int64_t)(e->plan.n_page - e->n_free_page - e->n_idle_page) * e->plan.page_size;
}

static double usage(const fm_engine_info *e)
{
    return e->plan.max_tokens ? (double)held_tokens(e) / (double)e->plan.max_tokens : 0;
}

static double rate(int64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static void put_prefill(const fm__batch_log *l, const fm_engine_info *e, double now, fm_str *out)
{
    const int64_t n_row    = e->sched.n_prefill_row - l->sched.n_prefill_row;
    const int64_t n_cached = e->kv.hit_tokens - l->kv.hit_tokens;
    const double  hit      = rate(e->kv.hit_tokens, (double)e->kv.asked_tokens);
    put_time(out);
    fm_str_printf(out,
                  "Prefill batch, #new-seq: %lld, #new-token: %lld, #cached-token: %lld, "
                  "token usage: %.2f, #running-req: %d, #queue-req: %d, cache hit rate: %.2f%%, "
                  "input throughput (token/s): %.2f\n",
                  (long long)(e->sched.n_admission - l->sched.n_admission), (long long)n_row,
                  (long long)n_cached, usage(e), e->sched.n_running, e->sched.n_waiting, 100 * hit,
                  rate(n_row, now - l->prefilled));
}

static void put_decode(const fm__batch_log *l, const fm_engine_info *e, double now, fm_str *out)
{
    put_time(out);
    fm_str_printf(out,
                  "Decode batch, #running-req: %d, #token: %lld, token usage: %.2f, "
                  "gen throughput (token/s): %.2f, #queue-req: %d\n",
                  e->sched.n_running, (long long)held_tokens(e), usage(e),
                  rate(e->sched.n_output - l->n_output, now - l->decoded), e->sched.n_waiting);
}

void fm__batch_log_step(fm__batch_log *l, const fm_engine_info *e, double now, fm_str *out)
{
    const fm_sched_stats before = l->sched;
    if (!l->interval || e->sched.n_step == before.n_step) return;
    if (e->sched.n_prefill_row > before.n_prefill_row) {
        put_prefill(l, e, now, out);
        l->prefilled = now;
    }
    l->n_decode += e->sched.n_decode_row > before.n_decode_row;
    if (l->n_decode >= l->interval) {
        put_decode(l, e, now, out);
        l->n_decode = 0;
        l->n_output = e->sched.n_output;
        l->decoded  = now;
    }
    l->sched = e->sched;
    l->kv    = e->kv;
}
