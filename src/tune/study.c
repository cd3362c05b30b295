/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "tune/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ascending.h"

const char *fm_trial_state_name(fm_trial_state s)
{
    static const char *const name[] = {
#define X(id, text) text,
        FM_TRIAL_STATES(X)
#undef X
    };
    return name[s];
}

void fm_study_init(fm_study *s, fm_space *space, int maximize)
{
    *s = (fm_study){.space = space, .maximize = maximize, .fd = -1};
}

void fm_study_close(fm_study *s)
{
    for (int i = 0; i < s->n; i++) free(s->trial[i].report);
    free(s->trial);
    free(s->path);
    if (s->fd >= 0) close(s->fd);
    *s = (fm_study){.fd = -1};
}

static int next_id(const fm_study *s)
{
    int id = 0;
    for (int i = 0; i < s->n; i++)
        if (s->trial[i].id >= id) id = s->trial[i].id + 1;
    return id;
}

fm_trial *fm_study_begin(fm_study *s, const fm_point *at)
{
    if (s->n == s->cap) {
        s->cap          = s->cap ? 2 * s->cap : 64;
        fm_trial *grown = realloc(s->trial, (size_t)s->cap * sizeof *grown);
        FM_BUG_UNLESS(grown != NULL);
        s->trial = grown;
    }
    fm_trial *t = &s->trial[s->n];
    *t          = (fm_trial){
                 .id = next_id(s), .at = *at, .state = FM_TRIAL_RUNNING, .value = NAN, .confirms = -1};
    s->n++;
    return t;
}

fm_trial *fm_study_find(const fm_study *s, int id)
{
    for (int i = 0; i < s->n; i++)
        if (s->trial[i].id == id) return &s->trial[i];
    return NULL;
}

int fm_study_has(const fm_study *s, const fm_point *at)
{
    for (int i = 0; i < s->n; i++)
        if (fm_point_equal(s->space, &s->trial[i].at, at)) return 1;
    return 0;
}

int fm_study_n_ended(const fm_study *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++)
        n += s->trial[i].state != FM_TRIAL_RUNNING && s->trial[i].confirms < 0;
    return n;
}

double fm_study_loss(const fm_study *s, double value) { return s->maximize ? -value : value; }

/* ---- numbers for a model ---- */

typedef struct {
    double median, worst, mean, spread;
} summary;

static summary summarise(const fm_study *s)
{
    double *ok = malloc((size_t)(s->n + 1) * sizeof *ok);
    FM_BUG_UNLESS(ok != NULL);
    int    n   = 0;
    double sum = 0;
    for (int i = 0; i < s->n; i++)
        if (s->trial[i].state == FM_TRIAL_OK) sum += ok[n++] = fm_study_loss(s, s->trial[i].value);
    summary out = {0};
    if (n) {
        fm_sort_ascending(ok, (size_t)n);
        out = (summary){ok[n / 2], ok[n - 1], sum / n, ok[n - 1] - ok[0]};
    }
    if (out.spread <= 0) out.spread = fabs(out.worst) > 0 ? fabs(out.worst) : 1;
    free(ok);
    return out;
}

static double loss_of(const fm_study *s, const fm_trial *t, const summary *sum)
{
    switch (t->state) {
    case FM_TRIAL_OK: return fm_study_loss(s, t->value);
    case FM_TRIAL_PRUNED: {
        const double last = t->n_report ? fm_study_loss(s, t->report[t->n_report - 1]) : sum->worst;
        return last > sum->median ? last : sum->median;
    }
    case FM_TRIAL_UNFIT: return sum->worst + sum->spread * 0.25 * (t->excess < 4 ? t->excess : 4);
    case FM_TRIAL_RUNNING: return sum->mean;
    default: return sum->worst + 0.25 * sum->spread;
    }
}

void fm_study_losses(const fm_study *s, double *loss)
{
    const summary sum = summarise(s);
    for (int i = 0; i < s->n; i++) loss[i] = loss_of(s, &s->trial[i], &sum);
}

/* ---- the best ---- */

double fm_study_mean(const fm_study *s, int id, int *n_run, double *spread)
{
    const fm_trial *first = fm_study_find(s, id);
    double          sum = 0, lo = INFINITY, hi = -INFINITY;
    int             n = 0;
    for (int i = 0; first && i < s->n; i++) {
        const fm_trial *t = &s->trial[i];
        if (t->state != FM_TRIAL_OK || !fm_point_equal(s->space, &t->at, &first->at)) continue;
        sum += t->value;
        lo = t->value < lo ? t->value : lo;
        hi = t->value > hi ? t->value : hi;
        n++;
    }
    if (n_run) *n_run = n;
    if (spread) *spread = n ? hi - lo : 0;
    return n ? sum / n : NAN;
}

static int is_first_run(const fm_study *s, int at)
{
    if (s->trial[at].state != FM_TRIAL_OK) return 0;
    for (int i = 0; i < at; i++)
        if (s->trial[i].state == FM_TRIAL_OK &&
            fm_point_equal(s->space, &s->trial[i].at, &s->trial[at].at))
            return 0;
    return 1;
}

/* Insertion into a short sorted list. */
int fm_study_best(const fm_study *s, int *id, int most)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (!is_first_run(s, i)) continue;
        const int    mine = s->trial[i].id;
        const double loss = fm_study_loss(s, fm_study_mean(s, mine, NULL, NULL));
        int          at   = n;
        while (at > 0 && loss < fm_study_loss(s, fm_study_mean(s, id[at - 1], NULL, NULL))) at--;
        if (at >= most) continue;
        const int last = n < most ? n++ : n - 1;
        memmove(&id[at + 1], &id[at], (size_t)(last - at) * sizeof *id);
        id[at] = mine;
    }
    return n;
}

int fm_study_winner(const fm_study *s)
{
    enum { FEW = 32 };
    int       id[FEW];
    const int n = fm_study_best(s, id, FEW);
    for (int i = 0; i < n; i++) {
        int n_run;
        (void)fm_study_mean(s, id[i], &n_run, NULL);
        if (n_run > 1) return id[i];
    }
    return n ? id[0] : -1;
}
