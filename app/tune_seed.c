/* SPDX-License-Identifier: Apache-2.0 */
/* The first points of `fathom tune bench`: those of which the plan expects the most. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "tune.h"

/* Knobs whose effect the plan models. */
static const char *const known[] = {"max-running-requests", "chunked-prefill-size", "tp", "pp",
                                    "dp"};
enum { N_KNOWN = sizeof known / sizeof known[0], N_ENGINE = 2, MOST_TRIES = 512 };

typedef struct {
    double value[N_KNOWN];
    double throughput;
} guess;

static int place_of(const fm_space *s, int k)
{
    return fm_space_find(s, known[k], strlen(known[k]));
}

/* Values of a known knob that are searched; one that is not has a single one, the plan's own. */
static int n_values(const fm_space *s, int k)
{
    const int     i = place_of(s, k);
    const int64_t n = i < 0 ? 1 : fm_param_n_value(&s->param[i]);
    return n > 0 && n <= FM_TUNE_MAX_CHOICE ? (int)n : 1;
}

static double value_text(const fm_space *s, int i, int64_t nth, fm_point *at)
{
    fm_str text = {0};
    at->v[i]    = fm_param_nth(&s->param[i], nth);
    fm_point_text(s, at, i, &text);
    const double x = text.text ? strtod(text.text, NULL) : 0;
    fm_str_fini(&text);
    return x;
}

/* The index-th combination; 0: the constraints forbid it. */
static int point_of(const fm_tune_command *c, int index, fm_point *at, guess *g)
{
    *at = c->first[0];
    for (int k = 0; k < N_KNOWN; k++) {
        const int n = n_values(&c->space, k), i = place_of(&c->space, k);
        g->value[k] = i < 0 ? 0 : value_text(&c->space, i, index % n, at);
        index /= n;
    }
    fm_point_settle(&c->space, at);
    return fm_point_allowed(&c->space, at);
}

static fm_status forecast(fm_plan_command *p, guess *g)
{
    static const char *const option[N_ENGINE] = {"max-running-requests", "chunked-prefill-size"};
    char                     text[32];
    int                      n = 0;
    for (int k = 0; k < N_ENGINE; k++) {
        snprintf(text, sizeof text, "%.0f", g->value[k]);
        if (g->value[k] > 0) FM_TRY(fm_options_set(p->engine, option[k], text));
    }
    fm_layout_wish w      = p->wish;
    int *const     size[] = {&w.tp, &w.pp, &w.dp};
    int            ranks  = 1;
    for (int k = 0; k < 3; k++) {
        if (g->value[N_ENGINE + k] > 0) *size[k] = (int)g->value[N_ENGINE + k];
        if (!*size[k]) *size[k] = 1;
        ranks *= *size[k];
    }
    fm_cluster      cluster = p->cluster;
    fm_forecast_ask a       = fm_plan_ask(p, &cluster);
    cluster.per_node        = ranks;
    a.whole                 = 1;
    a.wish                  = w;
    FM_TRY(fm_forecast_all(p->list, &n, &a));
    g->throughput = n && p->list[0].rc == FM_OK ? p->list[0].throughput : 0;
    return FM_OK;
}

/* Keeps the best guesses, in order, behind the defaults. */
static void keep(fm_tune_command *c, double *best, const fm_point *at, double throughput)
{
    int i = c->n_first;
    for (int k = 0; k < c->n_first; k++)
        if (fm_point_equal(&c->space, at, &c->first[k])) return;
    while (i > c->has_first && best[i - 1] < throughput) i--;
    if (i == FM_TUNE_MAX_FIRST) return;
    const int last = c->n_first < FM_TUNE_MAX_FIRST ? c->n_first++ : FM_TUNE_MAX_FIRST - 1;
    for (int k = last; k > i; k--) {
        c->first[k] = c->first[k - 1];
        best[k]     = best[k - 1];
    }
    c->first[i] = *at;
    best[i]     = throughput;
}

static fm_status try_all(fm_tune_command *c, fm_plan_command *p)
{
    double best[FM_TUNE_MAX_FIRST] = {INFINITY};
    int    n                       = 1;
    for (int k = 0; k < N_KNOWN; k++) n *= n_values(&c->space, k);
    if (!(p->list = calloc(FM_MAX_FORECAST, sizeof *p->list))) return fm_fail(FM_E_OOM, "plan");
    for (int i = 0; i < n && i < MOST_TRIES; i++) {
        fm_point at;
        guess    g = {0};
        if (!point_of(c, i, &at, &g)) continue;
        if (forecast(p, &g) == FM_OK && g.throughput > 0) keep(c, best, &at, g.throughput);
    }
    return FM_OK;
}

void fm_tune_seed(fm_tune_command *c)
{
    fm_word_list     words = {0};
    fm_plan_command *p     = NULL;
    fm_word_add(&words, "plan");
    fm_word_add_all(&words, c->given.word, c->given.n);
    char *name = words.word[0]; /* parsing puts its own there */
    if (fm_plan_open(&p, "tune bench", words.n, words.word) == FM_OK && try_all(c, p) == FM_OK &&
        !c->options.quiet)
        fprintf(stderr, "fathom tune: %d points from the plan come first\n",
                c->n_first - c->has_first);
    fm_plan_close(p);
    words.word[0] = name;
    fm_word_list_fini(&words);
}
