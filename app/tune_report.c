/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "output_file.h"
#include "tune.h"
#include "tune/importance.h"
#include "tune/page.h"
#include "tune/words.h"

typedef struct {
    const fm_tune_command *c;
    const fm_study        *s;
    const char            *ended_by;
    int                    winner;
    double                 mean, spread;
    int                    n_run;
    double                 share[FM_TUNE_MAX_PARAM];
    fm_str                 command; /* the winner's */
    fm_str                 preset;
} report;

static int count(const fm_study *s, fm_trial_state state)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->trial[i].state == state && s->trial[i].confirms < 0;
    return n;
}

/* ---- stdout ---- */

static void print_head(const report *r)
{
    const fm_study *s = r->s;
    printf("====== fathom tune =======\n");
    printf("%-20s %d (%d failed, %d unfit, %d pruned)\n", "Points tried:", fm_study_n_ended(s),
           count(s, FM_TRIAL_FAILED) + count(s, FM_TRIAL_TIMEOUT), count(s, FM_TRIAL_UNFIT),
           count(s, FM_TRIAL_PRUNED));
    printf("%-20s %s\n", "Ended:", r->ended_by);
    printf("%-20s %.6g (trial %d, mean of %d, spread %.2g %%)\n", "Best value:", r->mean, r->winner,
           r->n_run, 100 * r->spread / fmax(fabs(r->mean), 1e-300));
    if (r->c->has_first && s->n && s->trial[0].state == FM_TRIAL_OK)
        printf("%-20s %.6g (trial 0): %.3f x\n", "Defaults:", s->trial[0].value,
               r->s->maximize ? r->mean / s->trial[0].value : s->trial[0].value / r->mean);
}

static void print_parameters(const report *r)
{
    const fm_trial *t    = fm_study_find(r->s, r->winner);
    fm_str          text = {0};
    printf("\n%-28s %-14s importance\n", "parameter", "best");
    for (int i = 0; i < r->s->space->n; i++) {
        fm_str_clear(&text);
        fm_point_text(r->s->space, &t->at, i, &text);
        printf("%-28s %-14s %.0f %%\n", r->s->space->param[i].name, text.len ? text.text : "-",
               100 * r->share[i]);
    }
    printf("\n%s\n", r->command.text);
    fm_str_fini(&text);
}

/* ---- files ---- */

static json_t *report_json(const report *r)
{
    const fm_trial *t  = fm_study_find(r->s, r->winner);
    json_t         *at = json_object(), *share = json_object();
    fm_str          text = {0};
    for (int i = 0; i < r->s->space->n; i++) {
        const char *name = r->s->space->param[i].name;
        json_object_set_new(share, name, json_real(r->share[i]));
        if (isnan(t->at.v[i])) continue;
        fm_str_clear(&text);
        fm_point_text(r->s->space, &t->at, i, &text);
        json_object_set_new(at, name, json_string(text.text));
    }
    fm_str_fini(&text);
    return json_pack("{s:f, s:i, s:f, s:s, s:o, s:s, s:o, s:i, s:i, s:s}", "value", r->mean, "runs",
                     r->n_run, "spread", r->spread, "goal",
                     r->s->maximize ? "maximize" : "minimize", "at", at, "command", r->command.text,
                     "importance", share, "trials", fm_study_n_ended(r->s), "trial", r->winner,
                     "ended_by", r->ended_by);
}

static fm_status write_json(const report *r)
{
    json_t *o    = report_json(r);
    char   *text = o ? json_dumps(o, JSON_PRESERVE_ORDER | JSON_INDENT(2)) : NULL;
    FM_BUG_UNLESS(text != NULL);
    fm_str out = {0};
    fm_str_printf(&out, "%s\n", text);
    free(text);
    json_decref(o);
    const fm_status rc = fm_output_write("json", r->c->options.json, &out);
    fm_str_fini(&out);
    return rc;
}

static fm_status write_html(const report *r)
{
    fm_str page = {0}, what = {0};
    fm_words_quote(&what, r->c->shown.word);
    const fm_study_facts facts = {.command  = what.text,
                                  .metric   = r->c->metric,
                                  .ended_by = r->ended_by,
                                  .winner   = r->command.text,
                                  .preset   = r->preset.text,
                                  .share    = r->share};
    fm_study_page(&page, r->s, &facts);
    const fm_status rc = fm_output_write("html", r->c->options.html, &page);
    fm_str_fini(&what);
    fm_str_fini(&page);
    return rc;
}

/* ---- the winner as words ---- */

static fm_status make_command(report *r)
{
    char          **word = NULL;
    const fm_point *at   = &fm_study_find(r->s, r->winner)->at;
    FM_TRY(fm_words_fill(&word, r->s->space, at, r->c->shown.word, r->c->shown.n, r->winner, 0));
    fm_words_quote(&r->command, word);
    fm_words_free(word);
    return FM_OK;
}

static fm_status make_preset(report *r)
{
    char          **word = NULL;
    const fm_point *at   = &fm_study_find(r->s, r->winner)->at;
    if (!*r->c->form) return FM_OK;
    FM_TRY(fm_words_fill(&word, r->s->space, at, r->c->tuned.word, r->c->tuned.n, r->winner, 0));
    fm_str_printf(&r->preset, "# fathom tune %s: %.6g by %s\n", r->c->form, r->mean, r->c->metric);
    for (int i = 0; word[i]; i++) fm_str_printf(&r->preset, "%s\n", word[i]);
    fm_words_free(word);
    return FM_OK;
}

static fm_status write_files(const report *r)
{
    const fm_tune_options *o = &r->c->options;
    if (o->html) FM_TRY(write_html(r));
    if (o->json) FM_TRY(write_json(r));
    return o->write_preset ? fm_output_write("write-preset", o->write_preset, &r->preset) : FM_OK;
}

static fm_status no_winner(const fm_study *s, const char *ended_by)
{
    if (!s->n) return fm_fail(FM_E_NOCONV, "no trial was run: %s", ended_by);
    const fm_trial *t = &s->trial[s->n - 1];
    return fm_fail(FM_E_NOCONV,
                   "none of %d trials gave a value within the limits; the last: %s%s%s", s->n,
                   fm_trial_state_name(t->state), *t->why ? ": " : "", t->why);
}

fm_status fm_tune_report(const fm_tune_command *c, const fm_study *s, const char *ended_by)
{
    report r = {.c = c, .s = s, .ended_by = ended_by, .winner = fm_study_winner(s)};
    if (r.winner < 0) return no_winner(s, ended_by);
    r.mean = fm_study_mean(s, r.winner, &r.n_run, &r.spread);
    (void)fm_importance(r.share, s); /* too few trials: zeros */
    fm_status rc = make_command(&r);
    if (rc == FM_OK) rc = make_preset(&r);
    if (rc == FM_OK) {
        print_head(&r);
        print_parameters(&r);
        rc = write_files(&r);
    }
    fm_str_fini(&r.command);
    fm_str_fini(&r.preset);
    return rc;
}
