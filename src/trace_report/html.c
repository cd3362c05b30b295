/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "trace_report/html.h"

#include <string.h>

#include "trace_report/quoted.h"
#include "trace_report/text.h"
#include "trace_report/verdict.h"

enum { MAX_SPANS = 480000, MAX_TASKS = 40000 }; /* of all ranks: a page below 8 MB */

/* Where the page wants its data. */
static const char place[] = "/*DATA*/";

static void put_keys(FILE *to, const fm_trace_analysis *a)
{
    fputs("keys:[", to);
    for (int r = 0; r < a->job->n_row; r++) {
        const fm_trace_key *k = &a->job->row[r].key;
        fm_str              t = {0};
        fm_trace_key_text(&t, k);
        fprintf(to, "[%d,", k->cls);
        fm__put_quoted(to, t.text);
        fprintf(to, ",%d],", k->flags);
        fm_str_fini(&t);
    }
    fputs("],\n", to);
}

static void put_ranks(FILE *to, const fm_trace_analysis *a)
{
    fputs("ranks:[", to);
    for (int i = 0; i < a->job->n; i++) {
        const fm_account *r = &a->account[i];
        fprintf(to, "{rank:%d,host:", a->job->file[i].head.rank);
        fm__put_quoted(to, a->job->file[i].head.host);
        fprintf(to,
                ",wall:%.6g,idle:%.6g,parts:[%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g],caused:%.6g},\n",
                r->wall, r->idle, r->work, r->wait, r->comm - r->wait, r->host, r->await, r->gap,
                r->rest, a->caused[i]);
    }
    fputs("],\n", to);
}

static fm_status put_lanes(FILE *to, const fm_trace_analysis *a)
{
    static const int part[FM__LANES] = {8, 6, 2, 5}; /* most spans are ops */
    const size_t     most            = MAX_SPANS / (size_t)a->job->n;
    fputs("lanes:[", to);
    for (int i = 0; i < a->job->n; i++) {
        putc('[', to);
        for (int l = 0; l < FM__LANES; l++) {
            FM_TRY(fm__put_lane(to, a, i, l, most / (size_t)part[l]));
            fputs(",\n", to);
        }
        fputs("],", to);
    }
    fputs("],\n", to);
    return FM_OK;
}

/* Beginning, length (ms), row, id, rows of every stage. */
static void put_tasks(FILE *to, const fm_trace_analysis *a)
{
    int n = 0;
    fputs("tasks:[", to);
    for (int i = 0; i < a->job->n; i++)
        for (size_t s = 0; s < a->job->file[i].n_span && n < MAX_TASKS; s++) {
            const fm_trace_span *p = &a->job->file[i].span[s];
            if (a->job->file[i].key[p->key].cls != FM_TRACE_TASK) continue;
            fprintf(to, "[%.2f,%.2f,%d,\"%llu\",%u],",
                    1e-6 * (double)fm_trace_time(a->job, i, p->begin_ns), 1e-6 * (double)p->dur_ns,
                    a->job->row_of[i][p->key], (unsigned long long)p->tag, p->rows);
            n++;
        }
    fputs("],\n", to);
}

/* A point per key and intensity: operations per byte, operations per second, seconds. */
static void put_points(FILE *to, const fm_trace_analysis *a)
{
    fputs("points:[", to);
    for (int r = 0; r < a->job->n_row; r++)
        for (int b = 0; b < FM_TRACE_BINS; b++) {
            fm_trace_bin all = {0};
            for (int i = 0; i < a->job->n; i++) {
                const fm_trace_sum *s = fm_trace_sum_of(a->job, r, i);
                if (!s) continue;
                all.bytes += s->bin[b].bytes;
                all.flops += s->bin[b].flops;
                all.ns += s->bin[b].ns;
            }
            if (a->job->row[r].key.cls != FM_TRACE_WORK || !(all.bytes > 0) || !(all.flops > 0) ||
                !all.ns)
                continue;
            fprintf(to, "[%d,%.4g,%.4g,%.4g],", r, all.flops / all.bytes,
                    1e9 * all.flops / (double)all.ns, 1e-9 * (double)all.ns);
        }
    fputs("],\n", to);
}

static void put_limits(FILE *to, const fm_rates *r)
{
    fputs("limits:", to);
    if (!r) {
        fputs("null,\n", to);
        return;
    }
    const int is_gpu = r->rank[0].gpu.read.n > 0;
    fprintf(to, "{read:%.6g,peak:{", is_gpu ? r->rank[0].gpu.read.median : r->rank[0].read.median);
    for (int f = 0; f < FM_N_FACTOR; f++) {
        const fm_rate *p = is_gpu ? &r->rank[0].gpu.product[f] : &r->rank[0].product[f];
        if (p->n) fprintf(to, "%s:%.6g,", fm_factor_name((fm_factor)f), p->median);
    }
    fputs("}},\n", to);
}

static void put_texts(FILE *to, const fm_trace_analysis *a)
{
    const fm_trace_head *h       = &a->job->file[0].head;
    fm_str               verdict = {0}, tables = {0};
    fm_trace_verdict(&verdict, a);
    fm__trace_tables(&tables, a);
    fputs("program:", to);
    fm__put_quoted(to, h->program);
    fputs(",command:", to);
    fm__put_quoted(to, h->command);
    fputs(",task:", to);
    fm__put_quoted(to, h->task);
    fputs(",row:", to);
    fm__put_quoted(to, h->row);
    fputs(",verdict:", to);
    fm__put_quoted(to, verdict.text ? verdict.text : "");
    fputs(",tables:", to);
    fm__put_quoted(to, tables.text ? tables.text : "");
    fprintf(to, ",began:%.6f,ended:%.6f,\n", a->began, a->ended);
    fm_str_fini(&verdict);
    fm_str_fini(&tables);
}

fm_status fm_trace_html(FILE *to, const fm_trace_analysis *a)
{
    const char  *page = (const char *)fm_trace_page_html;
    const char  *at   = memmem(page, fm_trace_page_html_len, place, sizeof place - 1);
    const size_t head = (size_t)(at - page);
    FM_BUG_UNLESS(at != NULL);
    fwrite(page, 1, head, to);
    fputs("{", to);
    put_texts(to, a);
    put_keys(to, a);
    put_ranks(to, a);
    FM_TRY(put_lanes(to, a));
    put_tasks(to, a);
    put_points(to, a);
    put_limits(to, a->rates);
    fputs("}", to);
    fwrite(at + sizeof place - 1, 1, fm_trace_page_html_len - head - (sizeof place - 1), to);
    return FM_OK;
}
