/* SPDX-License-Identifier: Apache-2.0 */
/* A line a rank: what took most of each hundredth of the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace_report/analysis_internal.h"
#include "trace_report/text.h"

enum { WIDTH = 100, MAX_RANKS = 16 };

/* In the order in which a span hides others: a collective lies in an op, an op in a phase. */
typedef enum {
    LANE_IDLE,
    LANE_GAP,
    LANE_HOST,
    LANE_REST,
    LANE_AWAIT,
    LANE_WORK,
    LANE_COMM,
    N_LANE
} lane;
static const char mark[N_LANE] = {'.', '_', 'h', '-', 'p', '#', 'c'};

/* Of a device what the host sees: few of its ops have spans. */
static int lane_of(const fm_trace_key *k)
{
    if (k->flags & FM_TRACE_IS_DEVICE) return k->cls == FM_TRACE_PHASE ? LANE_WORK : -1;
    switch (k->cls) {
    case FM_TRACE_IDLE: return LANE_IDLE;
    case FM_TRACE_GAP: return LANE_GAP;
    case FM_TRACE_PHASE:
        return k->flags & FM_TRACE_HOLDS_WORK ? LANE_REST
               : k->flags & FM_TRACE_AWAITS   ? LANE_AWAIT
                                              : LANE_HOST;
    case FM_TRACE_WORK: return LANE_WORK;
    case FM_TRACE_COLLECTIVE: return k->flags & FM_TRACE_AWAITS ? -1 : LANE_COMM;
    default: return -1;
    }
}

typedef struct {
    double in[WIDTH][N_LANE]; /* seconds */
} columns;

static void add(columns *c, const fm_trace_analysis *a, int l, double begin, double end)
{
    const double each = (a->ended - a->began) / WIDTH;
    if (begin < a->began) begin = a->began;
    if (end > a->ended) end = a->ended;
    for (int at = (int)((begin - a->began) / each); at < WIDTH && begin < end; at++) {
        const double stop = a->began + (at + 1) * each, upto = end < stop ? end : stop;
        if (upto > begin) c->in[at][l] += upto - begin;
        begin = upto > begin ? upto : begin;
    }
}

/* Of a collective that overlaps with computing only what the rank waited for it counts. */
static void fill(columns *c, const fm_trace_analysis *a, int i)
{
    const fm_trace_file *f = &a->job->file[i];
    memset(c, 0, sizeof *c);
    for (size_t s = 0; s < f->n_span; s++) {
        const fm_trace_span *p = &f->span[s];
        const int            l = lane_of(&f->key[p->key]);
        if (l < 0) continue;
        const double end = 1e-9 * (double)fm_trace_time(a->job, i, p->begin_ns + p->dur_ns);
        const double dur = l == LANE_COMM ? 1e-6 * p->rows : fm__seconds(p->dur_ns);
        add(c, a, l, end - dur, end);
    }
}

/* What remains of the outer ones when the inner ones are taken out. */
static char mark_of(const double *in)
{
    double left[N_LANE];
    int    top = -1;
    memcpy(left, in, sizeof left);
    left[LANE_REST] -= in[LANE_WORK];
    left[LANE_WORK] -= in[LANE_COMM];
    for (int l = 0; l < N_LANE; l++)
        if (left[l] > (top < 0 ? 0 : left[top])) top = l;
    return top < 0 ? ' ' : mark[top];
}

static void put_line(fm_str *out, const columns *c, const char *name)
{
    fm_str_printf(out, "%-9s|", name);
    for (int at = 0; at < WIDTH; at++) fm_str_add(out, (char[]){mark_of(c->in[at])}, 1);
    fm_str_puts(out, "|\n");
}

/* A stage of a task, in columns of the timeline. */
typedef struct {
    int      rank;
    uint64_t task;
    int      first, last;
} stage;

static int by_task(const void *a, const void *b)
{
    const stage *x = a, *y = b;
    if (x->rank != y->rank) return x->rank - y->rank;
    if (x->task != y->task) return x->task < y->task ? -1 : 1;
    return x->first - y->first;
}

static int column_of(const fm_trace_analysis *a, double seconds)
{
    const double at = WIDTH * (seconds - a->began) / (a->ended - a->began);
    return at < 0 ? -1 : at < WIDTH ? (int)at : WIDTH;
}

/* `out` has room for all spans of tasks; returns how many lie in the timeline. */
static size_t stages_of(stage *out, const fm_trace_analysis *a, int i)
{
    const fm_trace_file *f = &a->job->file[i];
    size_t               n = 0;
    for (size_t s = 0; s < f->n_span; s++) {
        const fm_trace_span *p = &f->span[s];
        if (f->key[p->key].cls != FM_TRACE_TASK) continue;
        const double begin = 1e-9 * (double)fm_trace_time(a->job, i, p->begin_ns);
        const int first = column_of(a, begin), last = column_of(a, begin + fm__seconds(p->dur_ns));
        if (last >= 0 && first < WIDTH) out[n++] = (stage){i, p->tag, first, last};
    }
    return n;
}

/* A task counts once in a column, whatever stages it has there. */
static double count_tasks(double n[WIDTH], stage *s, size_t n_stage)
{
    double most = 0;
    int    next = 0;
    qsort(s, n_stage, sizeof *s, by_task);
    for (size_t i = 0; i < n_stage; i++) {
        const int is_next = !i || s[i].rank != s[i - 1].rank || s[i].task != s[i - 1].task;
        if (is_next) next = 0;
        if (next < s[i].first) next = s[i].first;
        for (; next <= s[i].last && next < WIDTH; next++)
            if (++n[next] > most) most = n[next];
    }
    return most;
}

/* How many tasks were under way in each hundredth, 1 to 9 of the most there were. */
static void put_tasks(fm_str *out, const fm_trace_analysis *a)
{
    double n[WIDTH] = {0};
    size_t room = 0, n_stage = 0;
    for (int i = 0; i < a->job->n; i++) room += a->job->file[i].n_span;
    stage *s = malloc((room + 1) * sizeof *s);
    for (int i = 0; s && i < a->job->n; i++) n_stage += stages_of(s + n_stage, a, i);
    const double most = s ? count_tasks(n, s, n_stage) : 0;
    free(s);
    if (most < 1) return;
    fm_str_printf(out, "%-9.8s|", a->job->file[0].head.task);
    for (int at = 0; at < WIDTH; at++)
        fm_str_add(out, (char[]){n[at] > 0 ? (char)('1' + (int)(8.999 * (n[at] - 1) / most)) : ' '},
                   1);
    fm_str_printf(out, "|  9: %.0f waiting or under way\n", most);
}

void fm__trace_timeline(fm_str *out, const fm_trace_analysis *a)
{
    columns *c = a->ended > a->began ? malloc(sizeof *c) : NULL;
    if (!c) return;
    fm_str_printf(out,
                  "\n%.2f s to %.2f s: # computes  c communicates  h host phases  - between ops  p "
                  "awaits a plan"
                  "  _ gap  . idle\n",
                  a->began, a->ended);
    for (int i = 0; i < a->job->n && i < MAX_RANKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "rank %d", a->job->file[i].head.rank);
        fill(c, a, i);
        put_line(out, c, name);
    }
    put_tasks(out, a);
    free(c);
}
