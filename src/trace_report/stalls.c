/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that did additional work while tasks under way waited for their next result, held against
 * steps without such work. */
#include <stdlib.h>

#include "trace_report/analysis_internal.h"

/* The rank with the most steps whose tasks are known. */
static int leader(const fm_trace_job *j)
{
    int      best = 0;
    uint64_t most = 0;
    for (int i = 0; i < j->n; i++) {
        uint64_t n = 0;
        for (int k = 0; k < j->file[i].n_key; k++)
            if (j->file[i].key[k].cls == FM_TRACE_TASK) n += j->file[i].sum[k].count;
        if (n > most) most = n, best = i;
    }
    return best;
}

static const fm_trace_key *step_key(const fm_trace_file *f, const fm_trace_span *s)
{
    const fm_trace_key *k = &f->key[s->key];
    return k->cls == FM_TRACE_STEP && s->layer && s->layer != FM_TRACE_NO_LAYER ? k : NULL;
}

/* Median of steps with tasks and nothing else. */
static fm_status find_usual(fm_stalls *out, const fm_trace_job *j, int i)
{
    const fm_trace_file *f = &j->file[i];
    double              *x = malloc((f->n_span + 1) * sizeof *x);
    int                  n = 0;
    if (!x) return fm_fail(FM_E_OOM, "%zu spans", f->n_span);
    for (size_t s = 0; s < f->n_span; s++) {
        const fm_trace_key *k = step_key(f, &f->span[s]);
        if (!k || k->flags & FM_TRACE_STALLS) continue;
        x[n++]         = fm__seconds(f->span[s].dur_ns);
        out->usual_row = j->row_of[i][f->span[s].key];
    }
    out->usual = fm__median(x, n);
    free(x);
    return FM_OK;
}

fm_status fm__find_stalls(fm_trace_analysis *a)
{
    enum { TIMES = 2 }; /* longer than usual by this factor */
    const fm_trace_job  *j = a->job;
    const int            i = leader(j);
    const fm_trace_file *f = &j->file[i];
    fm_stalls           *o = &a->stalls;
    *o                     = (fm_stalls){.row = -1, .usual_row = -1};
    FM_TRY(find_usual(o, j, i));
    for (size_t s = 0; o->usual > 0 && s < f->n_span; s++) {
        const fm_trace_span *p   = &f->span[s];
        const fm_trace_key  *k   = step_key(f, p);
        const double         dur = fm__seconds(p->dur_ns);
        if (!k || !(k->flags & FM_TRACE_STALLS) || dur < TIMES * o->usual) continue;
        o->n++;
        o->lost += dur - o->usual;
        if (dur <= o->worst) continue;
        o->worst = dur;
        o->rows  = p->rows;
        o->tasks = p->layer;
        o->row   = j->row_of[i][p->key];
    }
    return FM_OK;
}
