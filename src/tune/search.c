/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "tune/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/ascending.h"
#include "base/clock.h"
#include "tune/prune.h"
#include "tune/words.h"

typedef struct {
    const fm_search *q;
    fm_process       process[FM_SEARCH_MAX_JOBS];
    int              id[FM_SEARCH_MAX_JOBS];   /* its trial; -1: the slot is free */
    size_t           read[FM_SEARCH_MAX_JOBS]; /* output searched for reports */
    int              pruned[FM_SEARCH_MAX_JOBS];
    int              n_running;
} running;

/* ---- beginning ---- */

static fm_status begin(running *r, int slot, const fm_point *at, int confirms)
{
    const fm_search *q = r->q;
    fm_trial        *t = fm_study_begin(q->study, at);
    t->confirms        = confirms;
    char **argv        = NULL;
    FM_TRY(fm_words_fill(&argv, q->study->space, at, q->word, q->n_word, t->id, slot));
    const fm_process_place place = {slot, q->jobs, q->gpus};
    double                 limit = q->trial_seconds;
    if (q->until > 0 && (limit <= 0 || q->until - fm_now() < limit)) limit = q->until - fm_now();
    const fm_status rc = fm_process_start(&r->process[slot], argv, &place, limit);
    fm_words_free(argv);
    FM_TRY(rc);
    r->id[slot]     = t->id;
    r->read[slot]   = 0;
    r->pruned[slot] = 0;
    r->n_running++;
    return FM_OK;
}

static double median_seconds(const fm_study *s)
{
    double *x = malloc((size_t)(s->n + 1) * sizeof *x);
    FM_BUG_UNLESS(x != NULL);
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (s->trial[i].state != FM_TRIAL_RUNNING) x[n++] = s->trial[i].seconds;
    fm_sort_ascending(x, (size_t)n);
    const double median = n ? x[n / 2] : 0;
    free(x);
    return median;
}

static int fits_wall_time(const fm_search *q, int n_run)
{
    if (q->until <= 0) return 1;
    return fm_now() + 1.2 * n_run * median_seconds(q->study) < q->until;
}

static fm_status choose(const fm_search *q, fm_point *out)
{
    for (int i = 0; i < q->n_first; i++)
        if (!fm_study_has(q->study, &q->first[i])) {
            *out = q->first[i];
            return FM_OK;
        }
    return fm_suggest(out, q->sampler, q->study);
}

/* Why no further trial begins, or NULL. */
static const char *reason_to_end(const running *r)
{
    const fm_search *q = r->q;
    if (q->stop && q->stop()) return q->stop();
    if (fm_study_n_ended(q->study) + r->n_running >= q->n_trial) return "all trials were run";
    if (!fits_wall_time(q, 1 + q->n_confirm)) return "the wall time is over";
    return NULL;
}

/* ---- while it runs ---- */

static void add_report(fm_trial *t, double x)
{
    double *grown = realloc(t->report, (size_t)(t->n_report + 1) * sizeof *grown);
    FM_BUG_UNLESS(grown != NULL);
    t->report                = grown;
    t->report[t->n_report++] = x;
}

static void read_reports(running *r, int slot)
{
    const fm_search *q = r->q;
    const fm_str    *o = &r->process[slot].output;
    fm_trial        *t = fm_study_find(q->study, r->id[slot]);
    double           x;
    if (!q->report || !o->len) return;
    if (r->read[slot] > o->len) r->read[slot] = o->len; /* old output was dropped */
    while (fm_metric_next(q->report, o->text, o->len, &r->read[slot], &x)) {
        add_report(t, x);
        if (r->pruned[slot] || t->confirms >= 0 || !fm_prune(q->study, t)) continue;
        r->pruned[slot] = 1;
        fm_process_stop(&r->process[slot]);
    }
}

/* ---- the end ---- */

static double excess_of(const fm_search *q, const fm_str *output)
{
    double sum = 0;
    for (int i = 0; i < q->n_limit; i++) {
        const double x = fm_limit_excess(&q->limit[i], output->text, output->len);
        sum += isfinite(x) ? x : 10;
    }
    return sum;
}

static void judge(const fm_search *q, fm_trial *t, const fm_process *p)
{
    const int ok = WIFEXITED(p->status) && WEXITSTATUS(p->status) == 0;
    const int found =
        p->output.len && fm_metric_last(q->metric, p->output.text, p->output.len, &t->value);
    fm_process_why(p, t->why, sizeof t->why);
    t->state = p->end == FM_END_TIME ? FM_TRIAL_TIMEOUT : FM_TRIAL_FAILED;
    if (!ok || p->end != FM_END_NONE) return;
    if (!found) {
        snprintf(t->why, sizeof t->why, "its output has no value of the metric");
        return;
    }
    t->excess = excess_of(q, &p->output);
    t->state  = t->excess > 0 ? FM_TRIAL_UNFIT : FM_TRIAL_OK;
}

static void keep_output(const fm_search *q, const fm_trial *t, const fm_str *output)
{
    if (!q->keep_output) return;
    fm_str path = {0};
    fm_str_printf(&path, "%s/trial-%04d.log", q->keep_output, t->id);
    FILE *f = fopen(path.text, "w");
    if (f && output->len) fwrite(output->text, 1, output->len, f);
    if (f) fclose(f);
    fm_str_fini(&path);
}

/* A trial that was interrupted by the user says nothing about its point. */
static void forget(fm_study *s, int id)
{
    fm_trial *t = fm_study_find(s, id);
    free(t->report);
    const size_t at = (size_t)(t - s->trial);
    memmove(t, t + 1, ((size_t)s->n - at - 1) * sizeof *t);
    s->n--;
}

static fm_status end_trial(running *r, int slot)
{
    const fm_search *q  = r->q;
    fm_process      *p  = &r->process[slot];
    fm_trial        *t  = fm_study_find(q->study, r->id[slot]);
    fm_status        rc = FM_OK;
    r->n_running--;
    t->seconds = p->seconds;
    judge(q, t, p);
    keep_output(q, t, &p->output);
    if (r->pruned[slot]) t->state = FM_TRIAL_PRUNED;
    if (p->end == FM_END_ASKED && !r->pruned[slot]) {
        forget(q->study, r->id[slot]);
    } else {
        rc = fm_study_end(q->study, t);
        if (q->ended) q->ended(q->ctx, q->study, t);
    }
    r->id[slot] = -1;
    fm_process_fini(p);
    return rc;
}

static fm_status step_all(running *r)
{
    const int stop = r->q->stop && r->q->stop() != NULL;
    for (int slot = 0; slot < r->q->jobs; slot++) {
        if (r->id[slot] < 0) continue;
        if (stop) fm_process_stop(&r->process[slot]);
        const int ended = fm_process_step(&r->process[slot]);
        read_reports(r, slot);
        if (ended) FM_TRY(end_trial(r, slot));
    }
    return FM_OK;
}

static fm_status fill_slots(running *r, const char **why)
{
    for (int slot = 0; slot < r->q->jobs && !*why; slot++) {
        fm_point p;
        if (r->id[slot] >= 0 || (*why = reason_to_end(r))) continue;
        const fm_status rc = choose(r->q, &p);
        if (rc == FM_E_FULL && !r->q->study->n)
            return fm_fail(FM_E_ARG, "no point was found that the constraints allow");
        else if (rc == FM_E_FULL)
            *why = "every point was tried";
        else if (rc != FM_OK)
            return rc;
        else
            FM_TRY(begin(r, slot, &p, -1));
    }
    return FM_OK;
}

static void start_empty(running *r, const fm_search *q)
{
    *r = (running){.q = q};
    for (int i = 0; i < FM_SEARCH_MAX_JOBS; i++) {
        r->id[i]      = -1;
        r->process[i] = (fm_process){.fd = -1};
    }
}

static void clean_up(running *r)
{
    for (int i = 0; i < r->q->jobs; i++) fm_process_fini(&r->process[i]);
}

fm_status fm_search_run(const fm_search *q, const char **why)
{
    FM_BUG_UNLESS(q->jobs >= 1 && q->jobs <= FM_SEARCH_MAX_JOBS);
    running   r;
    fm_status rc = FM_OK;
    *why         = NULL;
    start_empty(&r, q);
    do {
        if (!*why) FM_GO(fill_slots(&r, why));
        if (r.n_running) fm_process_wait(r.process, q->jobs, 0.05);
        FM_GO(step_all(&r));
    } while (!*why || r.n_running);
out:
    clean_up(&r);
    return rc;
}

/* Alone on the machine, but within the CPUs of one slot as before. */
static fm_status repeat(const fm_search *q, int id)
{
    running        r;
    const fm_point at = fm_study_find(q->study, id)->at;
    fm_status      rc = FM_OK;
    start_empty(&r, q);
    FM_GO(begin(&r, 0, &at, id));
    while (r.n_running) {
        fm_process_wait(r.process, 1, 0.05);
        FM_GO(step_all(&r));
    }
out:
    clean_up(&r);
    return rc;
}

fm_status fm_search_confirm(const fm_search *q)
{
    int       best[FM_SEARCH_MAX_CONFIRM];
    const int n = fm_study_best(q->study, best, q->n_confirm);
    for (int i = 0; i < n; i++) {
        int n_run;
        (void)fm_study_mean(q->study, best[i], &n_run, NULL);
        if (n_run > 1) continue; /* of a continued study */
        if ((q->stop && q->stop()) || !fits_wall_time(q, 1)) break;
        FM_TRY(repeat(q, best[i]));
    }
    return FM_OK;
}
