/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_report/text.h"

#include "trace_report/verdict.h"

/* What the numbers do not show. */
static void put_reservations(fm_str *out, const fm_trace_analysis *a)
{
    const fm_trace_job *j      = a->job;
    uint64_t            n_lost = 0, n_bad = 0;
    int                 n_open = 0;
    for (int i = 0; i < j->n; i++) {
        n_lost += j->file[i].n_lost;
        n_bad += j->file[i].n_damaged;
        n_open += !j->file[i].head.is_closed;
    }
    if (j->n < j->n_rank)
        fm_str_printf(out, "Note: %d of %d ranks are missing.\n", j->n_rank - j->n, j->n_rank);
    if (n_open)
        fm_str_printf(out, "Note: %d of %d ranks had not finished: still running, or killed.\n",
                      n_open, j->n);
    if (n_lost)
        fm_str_printf(
            out,
            "Note: %llu older spans were overwritten (--trace-size): sums are of the whole "
            "run, the timeline and waiting of the last %.1f s.\n",
            (unsigned long long)n_lost, a->ended - a->began);
    if (n_bad)
        fm_str_printf(out, "Note: %llu damaged spans were left out.\n", (unsigned long long)n_bad);
}

static void put_title(fm_str *out, const fm_trace_analysis *a)
{
    const fm_trace_head *h = &a->job->file[0].head;
    fm_str_printf(out, "%s, %s: %d rank%s, %.1f s recorded, %.1f s of it idle\n\n", h->program,
                  h->command[0] ? h->command : "no name", a->job->n, a->job->n > 1 ? "s" : "",
                  a->all.wall / a->job->n, a->all.idle / a->job->n);
}

void fm_trace_text(fm_str *out, const fm_trace_analysis *a)
{
    put_title(out, a);
    fm_trace_verdict(out, a);
    put_reservations(out, a);
    fm__trace_tables(out, a);
    fm__trace_timeline(out, a);
}
