/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/text.h"

#include "trace_report/analysis_internal.h"
#include "trace_report/verdict.h"

enum { NAME_WIDTH = 30, TIME_WIDTH = 10, MAX_RANKS = 64 };

static void put_padded(fm_str *out, const fm_str *text, int width, int left)
{
    if (left)
        fm_str_printf(out, "%-*.*s", width, width, text->text ? text->text : "");
    else
        fm_str_printf(out, "%*s", width, text->text ? text->text : "");
}

static void put_name(fm_str *out, const fm_trace_key *k)
{
    fm_str text = {0};
    fm_trace_key_text(&text, k);
    put_padded(out, &text, NAME_WIDTH, 1);
    fm_str_fini(&text);
}

static void put_time(fm_str *out, double seconds)
{
    fm_str text = {0};
    fm_trace_time_text(&text, seconds);
    put_padded(out, &text, TIME_WIDTH, 0);
    fm_str_fini(&text);
}

/* "-" where it is not known. */
static void put_number(fm_str *out, int width, int digits, double x)
{
    if (x > 0)
        fm_str_printf(out, " %*.*f", width, digits, x);
    else
        fm_str_printf(out, " %*s", width, "-");
}

static const fm_key_total *each(const fm_trace_analysis *a, fm_trace_class cls, int *at)
{
    for (; *at < a->n_total; ++*at)
        if (a->job->row[a->total[*at].row].key.cls == cls) return &a->total[(*at)++];
    return NULL;
}

static int has(const fm_trace_analysis *a, fm_trace_class cls)
{
    int at = 0;
    return each(a, cls, &at) != NULL;
}

static double percent(const fm_trace_analysis *a, double seconds)
{
    return 100 * fm__part(seconds, a->active);
}

static void put_work(fm_str *out, const fm_trace_analysis *a, const fm_key_total *t)
{
    put_name(out, &a->job->row[t->row].key);
    fm_str_printf(out, " %6.1f %10llu", percent(a, t->own), (unsigned long long)t->count);
    put_time(out, t->mean);
    put_time(out, t->p50);
    put_time(out, t->p99);
    put_number(out, 7, 1, 1e-9 * fm__part(t->bytes, t->own));
    put_number(out, 7, 3, 1e-12 * fm__part(t->flops, t->own));
    put_number(out, 8, 0, 100 * fm__part(t->limit, t->own));
    fm_str_puts(out, t->limit <= 0                    ? "\n"
                     : 2 * t->memory_limit > t->limit ? " memory\n"
                                                      : " peak\n");
}

/* Those that take less than a thousandth of the time share a line. */
static void put_works(fm_str *out, const fm_trace_analysis *a)
{
    const fm_key_total *t;
    double              rest = 0;
    int                 n    = 0;
    if (!has(a, FM_TRACE_WORK)) return;
    fm_str_printf(
        out,
        "\n%-*s time %%      calls      mean       p50       p99    GB/s TFLOP/s  %% of limit\n",
        NAME_WIDTH, "op (kind)");
    for (int at = 0; (t = each(a, FM_TRACE_WORK, &at));) {
        if (t->own >= 1e-3 * a->active) {
            put_work(out, a, t);
            continue;
        }
        rest += t->own;
        n++;
    }
    if (n)
        fm_str_printf(out, "%d more %*s %6.1f\n", n, NAME_WIDTH - 7 - (n > 9), "",
                      percent(a, rest));
}

static void put_calls(fm_str *out, const fm_trace_analysis *a)
{
    const fm_key_total *t;
    if (!has(a, FM_TRACE_COLLECTIVE)) return;
    fm_str_printf(
        out,
        "\n%-*s time %%      calls        MB  waiting %%  moving %%    GB/s       p50       p99"
        "  waited for\n",
        NAME_WIDTH, "collective (group)");
    for (int at = 0; (t = each(a, FM_TRACE_COLLECTIVE, &at));) {
        const double move = t->busy - t->wait;
        if (a->job->row[t->row].key.flags & FM_TRACE_AWAITS) continue;
        put_name(out, &a->job->row[t->row].key);
        fm_str_printf(out, " %6.1f %10llu %9.1f %10.1f %9.1f", percent(a, t->busy),
                      (unsigned long long)t->count, 1e-6 * t->bytes,
                      100 * fm__part(t->wait, t->busy), 100 * fm__part(move, t->busy));
        put_number(out, 7, 2, 1e-9 * fm__part(t->bytes, move));
        put_time(out, t->p50);
        put_time(out, t->p99);
        if (t->late >= 0)
            fm_str_printf(out, "  rank %d, %.0f %%", a->job->file[t->late].head.rank,
                          100 * t->late_share);
        fm_str_puts(out, "\n");
    }
}

static void put_host(fm_str *out, const fm_trace_analysis *a)
{
    static const fm_trace_class classes[] = {FM_TRACE_PHASE, FM_TRACE_GAP, FM_TRACE_IDLE,
                                             FM_TRACE_STEP};
    const fm_key_total         *t;
    fm_str_printf(out, "\n%-*s time %%      count      mean       p50       p99       max\n",
                  NAME_WIDTH, "phase, gap or step");
    for (int c = 0; c < (int)(sizeof classes / sizeof *classes); c++)
        for (int at = 0; (t = each(a, classes[c], &at));) {
            put_name(out, &a->job->row[t->row].key);
            fm_str_printf(out, " %6.1f %10llu", percent(a, t->total), (unsigned long long)t->count);
            put_time(out, t->mean);
            put_time(out, t->p50);
            put_time(out, t->p99);
            put_time(out, t->max);
            fm_str_puts(out, "\n");
        }
}

static void put_tasks(fm_str *out, const fm_trace_analysis *a)
{
    const fm_trace_head *h = &a->job->file[0].head;
    const fm_key_total  *t;
    if (!has(a, FM_TRACE_TASK)) return;
    fm_str_printf(out, "\n%-*s   %ss     %ss      mean       p50       p99       max\n",
                  NAME_WIDTH - 4, "stage", h->task, h->row);
    for (int at = 0; (t = each(a, FM_TRACE_TASK, &at));) {
        put_name(out, &a->job->row[t->row].key);
        fm_str_printf(out, " %8llu %10llu", (unsigned long long)t->count,
                      (unsigned long long)t->rows);
        put_time(out, t->mean);
        put_time(out, t->p50);
        put_time(out, t->p99);
        put_time(out, t->max);
        fm_str_puts(out, "\n");
    }
}

static void put_ranks(fm_str *out, const fm_trace_analysis *a)
{
    const fm_trace_job *j = a->job;
    if (j->n < 2) return;
    fm_str_puts(
        out, "\nrank host              compute %  waits %  moves %  host %  plan %  gaps %  rest %"
             "   others wait for it\n");
    for (int i = 0; i < j->n && i < MAX_RANKS; i++) {
        const fm_account *r      = &a->account[i];
        const double      active = r->wall - r->idle;
        fm_str_printf(out, "%4d %-18.18s %8.1f %8.1f %8.1f %7.1f %7.1f %7.1f %7.1f",
                      j->file[i].head.rank, j->file[i].head.host, 100 * fm__part(r->work, active),
                      100 * fm__part(r->wait, active), 100 * fm__part(r->comm - r->wait, active),
                      100 * fm__part(r->host, active), 100 * fm__part(r->await, active),
                      100 * fm__part(r->gap, active), 100 * fm__part(r->rest, active));
        put_time(out, a->caused[i]);
        fm_str_puts(out, "\n");
    }
    if (j->n > MAX_RANKS) fm_str_printf(out, "     and %d more\n", j->n - MAX_RANKS);
}

void fm__trace_tables(fm_str *out, const fm_trace_analysis *a)
{
    put_works(out, a);
    put_calls(out, a);
    put_host(out, a);
    put_tasks(out, a);
    put_ranks(out, a);
}
