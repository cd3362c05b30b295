/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "trace_report/html.h"

/* A span, or several neighbours; `row` is that of the longest of them. */
typedef struct {
    double   begin, end; /* us of the job's axis */
    double   longest;
    int      row, n;
    uint32_t rows;
} block;

static int lane_of(const fm_trace_key *k)
{
    static const int lane[FM_N_TRACE_CLASS] = {
        [FM_TRACE_STEP] = 0,  [FM_TRACE_PHASE] = 1, [FM_TRACE_WORK] = 2, [FM_TRACE_COLLECTIVE] = 3,
        [FM_TRACE_TASK] = -1, [FM_TRACE_GAP] = 1,   [FM_TRACE_IDLE] = 1};
    return lane[k->cls];
}

static int by_begin(const void *a, const void *b)
{
    const block *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static size_t collect(block *out, const fm_trace_analysis *a, int i, int lane)
{
    const fm_trace_file *f = &a->job->file[i];
    size_t               n = 0;
    for (size_t s = 0; s < f->n_span; s++) {
        const fm_trace_span *p = &f->span[s];
        if (lane_of(&f->key[p->key]) != lane) continue;
        const double begin = 1e-3 * (double)fm_trace_time(a->job, i, p->begin_ns),
                     dur   = 1e-3 * (double)p->dur_ns;
        out[n++] = (block){begin, begin + dur, dur, a->job->row_of[i][p->key], 1, p->rows};
    }
    qsort(out, n, sizeof *out, by_begin);
    return n;
}

/* Joins neighbours as long as the block stays shorter than `most_us`. */
static size_t join(block *b, size_t n, double most_us)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        block *last = kept ? &b[kept - 1] : NULL;
        if (!last || b[i].end - last->begin > most_us) {
            b[kept++] = b[i];
            continue;
        }
        if (b[i].longest > last->longest) last->longest = b[i].longest, last->row = b[i].row;
        if (b[i].end > last->end) last->end = b[i].end;
        last->n += b[i].n;
    }
    return kept;
}

fm_status fm__put_lane(FILE *to, const fm_trace_analysis *a, int i, int lane, size_t most)
{
    const double wide = 1e6 * (a->ended - a->began);
    block       *b    = malloc((a->job->file[i].n_span + 1) * sizeof *b);
    if (!b) return fm_fail(FM_E_OOM, "%zu spans", a->job->file[i].n_span);
    size_t n    = collect(b, a, i, lane);
    double last = 0;
    for (double us = wide / 1e6; n > most && us < wide; us *= 2) n = join(b, n, us);
    putc('[', to);
    for (size_t k = 0; k < n; k++) {
        fprintf(to, "%s%.0f,%.0f,%d,%u", k ? "," : "", b[k].begin - last, b[k].end - b[k].begin,
                b[k].n > 1 ? -1 - b[k].row : b[k].row, b[k].n > 1 ? (unsigned)b[k].n : b[k].rows);
        last += (double)(long long)(b[k].begin - last + (b[k].begin < last ? -0.5 : 0.5));
    }
    putc(']', to);
    free(b);
    return FM_OK;
}
