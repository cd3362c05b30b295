/* SPDX-License-Identifier: Apache-2.0 */
/* fathom ablate: every feature on, each one off, pairs, the full cross; one process each. */
#define _POSIX_C_SOURCE 200809L
#include "ablate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ablate_cell.h"
#include "base/clock.h"
#include "client_flags.h"
#include "commands.h"
#include "default_model.h"
#include "early_end.h"
#include "fathom/fathom.h"
#include "llm/load/config_read.h"
#include "llm/options.h"
#include "machine.h"
#include "output_file.h"

enum { FULL_UP_TO = 64 };

static const char about[] =
    "Measures what each feature brings: all on, each one off, pairs, the full cross, for one rank "
    "and "
    "for layouts of two.  Every cell is a process of its own; the answers of all cells are "
    "compared."
    "\v"
    "FLAGS are those of fathom bench: the model and the requests.  Without them fathom-tiny answers "
    "32 requests with shared prefixes.";

static const char *const default_flags[] = {
    "--model-path=fathom-tiny",    "--dataset-name=generated-shared-prefix",
    "--gsp-num-groups=4",          "--gsp-prompts-per-group=8",
    "--gsp-system-prompt-len=320", "--gsp-question-len=32",
    "--gsp-output-len=24"};

/* The place of a feature in the run's list; -1: it is not there. */
static int place_of(const fm_ablation *a, const char *name)
{
    for (int i = 0; i < a->n_feature; i++)
        if (!strcmp(fm_ablate_features[a->feature[i]].name, name)) return i;
    return -1;
}

static int is_off(const fm_ablation *a, uint32_t off, int feature)
{
    const char *needs = fm_ablate_features[a->feature[feature]].needs;
    const int   other = needs ? place_of(a, needs) : -1;
    return (off >> feature & 1) || (other >= 0 && off >> other & 1);
}

int fm_ablate_is_on(const fm_ablation *a, const fm_cell *c, int feature)
{
    return !is_off(a, c->off, feature);
}

const char *fm_ablate_lacks(const fm_ablation *a, const fm_ablate_feature *f)
{
    if (f->needs_gpu && !a->n_gpu) return "no GPU";
    return f->needs_mtp && !a->has_mtp ? "no MTP layer" : NULL;
}

/* ---- what this machine has ---- */

static int is_listed(const char *list, const char *name)
{
    return !list || fm_list_has(list, name);
}

static const char *feature_name(int i) { return fm_ablate_features[i].name; }
static const char *layout_name(int i) { return fm_ablate_layouts[i].name; }

/* Every word of a list is the name of something. */
static fm_status check_list(const char *flag, const char *list, const char *(*name)(int), int n)
{
    const char *at  = fm_list_stranger(list, name, n);
    fm_str      all = {0};
    if (!at) return FM_OK;
    for (int i = 0; i < n; i++) fm_str_printf(&all, "%s%s", i ? ", " : "", name(i));
    const fm_status rc = fm_fail(FM_E_ARG, "--%s: there is no \"%.*s\" among %s", flag,
                                 (int)strcspn(at, ","), at, all.text);
    fm_str_fini(&all);
    return rc;
}

/* Of the model that the flags name. */
static int model_has_mtp(const fm_ablation *a)
{
    fm_options     *o = NULL;
    fm_model_path   path;
    fm_model_config config = {0};
    if (fm_options_create(&o) != FM_OK) return 0;
    for (int i = 0; i < a->given.n; i++) {
        const char *w = a->given.word[i], *is = strchr(w, '=');
        const char *value = is ? is + 1 : i + 1 < a->given.n ? a->given.word[i + 1] : "";
        if (fm_word_is_option(w, "model-path") || fm_word_is_option(w, "model"))
            fm_options_set(o, "model-path", value);
        if (fm_word_is_option(w, "json-model-override-args"))
            fm_options_set(o, "json-model-override-args", value);
    }
    if (!o->model_path) fm_options_set(o, "model-path", "r1-mini");
    const int is_read = fm_named_model(o) == FM_OK &&
                        fm_model_path_find(&path, o->model_path) == FM_OK &&
                        fm_config_of(&config, &path, o->json_model_override_args) == FM_OK;
    fm_options_destroy(o);
    return is_read && config.n_mtp > 0;
}

static void choose_features(fm_ablation *a)
{
    for (int i = 0; i < fm_n_ablate_feature; i++) {
        const fm_ablate_feature *f = &fm_ablate_features[i];
        if (is_listed(a->options.features, f->name) && !fm_ablate_lacks(a, f))
            a->feature[a->n_feature++] = i;
    }
}

/* Why a layout cannot run here; "" if it can. */
static void layout_obstacle(const fm_ablation *a, const fm_ablate_layout *l, char *why, size_t size)
{
    *why = 0;
    if (a->n_gpu && l->n_rank > a->n_gpu)
        snprintf(why, size, "%d ranks need %d GPUs, there is %d", l->n_rank, l->n_rank, a->n_gpu);
    else if (!a->n_gpu && l->n_rank > fm_usable_cpus())
        snprintf(why, size, "%d ranks need %d CPUs, there is %d", l->n_rank, l->n_rank,
                 fm_usable_cpus());
    else if (l->n_rank > 1 && !FM_HAVE_MPI)
        snprintf(why, size, "this build has no MPI");
}

/* ---- cells ---- */

static fm_status most_off(const fm_ablation *a, int n_layout, int *out)
{
    const char *level = a->options.level;
    if (!strcmp(level, "singles"))
        *out = 1;
    else if (!strcmp(level, "pairs"))
        *out = 2;
    else if (!strcmp(level, "full"))
        *out = a->n_feature;
    else if (strcmp(level, "auto"))
        return fm_fail(FM_E_ARG, "--level %s is none of auto, singles, pairs, full", level);
    else
        *out = n_layout << a->n_feature <= FULL_UP_TO ? a->n_feature : 2;
    return FM_OK;
}

static int group_of(const fm_ablation *a, uint32_t off)
{
    int group = 0;
    for (int i = 0; i < a->n_feature; i++)
        if (fm_ablate_features[a->feature[i]].changes_numbers)
            group = 2 * group + (int)(off >> i & 1);
    return group;
}

/* A feature is switched off although it is off already, for want of another. */
static int is_repeated(const fm_ablation *a, uint32_t off)
{
    for (int i = 0; i < a->n_feature; i++)
        if (off >> i & 1 && is_off(a, off & ~((uint32_t)1 << i), i)) return 1;
    return 0;
}

static fm_status add_cells(fm_ablation *a, int layout, const uint32_t *off, int n)
{
    char why[sizeof a->cell[0].why];
    layout_obstacle(a, &fm_ablate_layouts[layout], why, sizeof why);
    for (int i = 0; i < (*why ? 1 : n); i++) {
        if (is_repeated(a, off[i])) continue;
        if (a->n_cell == FM_ABLATE_MAX_CELL)
            return fm_fail(FM_E_ARG,
                           "more than %d cells; choose with --features, --layouts or --level",
                           FM_ABLATE_MAX_CELL);
        fm_cell *c = &a->cell[a->n_cell++];
        *c         = (fm_cell){.layout = layout, .off = off[i], .group = group_of(a, off[i])};
        c->state   = FM_CELL_SKIPPED;
        memcpy(c->why, why, sizeof why);
    }
    return FM_OK;
}

static fm_status make_cells(fm_ablation *a)
{
    static uint32_t off[1 << FM_CROSS_MAX_FEATURE];
    int             n_layout = 0, most = 0;
    for (int l = 0; l < fm_n_ablate_layout; l++)
        n_layout += is_listed(a->options.layouts, fm_ablate_layouts[l].name);
    FM_TRY(check_list("layouts", a->options.layouts, layout_name, fm_n_ablate_layout));
    FM_TRY(check_list("features", a->options.features, feature_name, fm_n_ablate_feature));
    choose_features(a);
    if (!n_layout || !a->n_feature)
        return fm_fail(FM_E_ARG,
                       "this machine or the model has none of the features of --features");
    FM_TRY(most_off(a, n_layout, &most));
    const int n = fm_cross(off, a->n_feature, most);
    for (int l = 0; l < fm_n_ablate_layout; l++)
        if (is_listed(a->options.layouts, fm_ablate_layouts[l].name))
            FM_TRY(add_cells(a, l, off, n));
    return FM_OK;
}

/* ---- the run ---- */

static void tell(const fm_ablation *a, const fm_cell *c)
{
    fprintf(stderr, "%-14s", fm_ablate_layouts[c->layout].name);
    for (int i = 0; i < a->n_feature; i++)
        fprintf(stderr, " %s%s", fm_ablate_is_on(a, c, i) ? "+" : "-",
                fm_ablate_features[a->feature[i]].name);
    if (c->state == FM_CELL_OK)
        fprintf(stderr, "  %.1f tok/s, TTFT %.1f ms, %016llx\n", c->throughput, c->ttft_ms,
                (unsigned long long)c->hash);
    else
        fprintf(stderr, "  %s\n", c->why);
}

/* Why no further cell is run, or NULL. */
static const char *reason_to_end(const fm_ablation *a, double longest)
{
    if (fm_early_end_why()) return fm_early_end_why();
    if (a->options.wall_time <= 0) return NULL;
    return fm_now() + longest > fm_start_time() + a->options.wall_time ? "the wall time is over"
                                                                       : NULL;
}

static fm_status run_cell(fm_ablation *a, fm_cell *c, double *longest)
{
    const double began = fm_now();
    const char  *ends  = reason_to_end(a, *longest);
    if (!ends) {
        FM_TRY(fm_cell_run(a, c));
        ends = fm_early_end_why(); /* it was ended, it did not fail */
        if (fm_now() - began > *longest) *longest = fm_now() - began;
    }
    if (ends) {
        c->state = FM_CELL_SKIPPED;
        snprintf(c->why, sizeof c->why, "not run: %s", ends);
    }
    tell(a, c);
    return FM_OK;
}

/* Every layout with all on first, then each feature off, and so on: when time runs out, the
 * cells that are missing are the least interesting. */
static fm_status run_cells(fm_ablation *a)
{
    double longest = 0;
    for (int n_off = 0; n_off <= a->n_feature; n_off++)
        for (int i = 0; i < a->n_cell; i++) {
            fm_cell *c = &a->cell[i];
            if (*c->why || c->is_earlier || fm_cross_n_off(c->off) != n_off)
                continue; /* why: cannot run here */
            FM_TRY(run_cell(a, c, &longest));
        }
    return FM_OK;
}

/* The first cell of a group that ran says what its answers are. */
static void compare_answers(fm_ablation *a)
{
    for (int i = 0; i < a->n_cell; i++) {
        const fm_cell *c = &a->cell[i];
        a->n_failed += c->state == FM_CELL_FAILED;
        if (c->state != FM_CELL_OK) continue;
        int first = 0;
        while (a->cell[first].state != FM_CELL_OK || a->cell[first].group != c->group) first++;
        a->n_group += first == i;
        a->differ += a->cell[first].hash != c->hash;
    }
}

static fm_status verdict(const fm_ablation *a)
{
    if (a->n_failed) return fm_fail(FM_E_NOCONV, "%d of %d cells failed", a->n_failed, a->n_cell);
    if (a->differ)
        return fm_fail(FM_E_NOCONV, "the answers of %d cells differ from the others'", a->differ);
    return FM_OK;
}

static fm_status run(fm_ablation *a)
{
    FM_TRY(fm_output_check("markdown", a->options.markdown));
    FM_TRY(fm_output_check("html", a->options.html));
    FM_TRY(fm_output_check("json", a->options.json));
    FM_TRY(fm_usable_gpus(&a->n_gpu, &a->given));
    a->has_mtp = model_has_mtp(a);
    FM_TRY(make_cells(a));
    FM_TRY(fm_ablate_continue(a));
    fm_early_end_catch();
    FM_TRY(run_cells(a));
    compare_answers(a);
    FM_TRY(fm_ablate_report(a));
    return verdict(a);
}

static fm_status read_command_line(fm_ablation *a, int argc, char **argv)
{
    FM_TRY(fm_knobs_init(fm_ablate_knobs, fm_n_ablate_knob, &a->options));
    const fm_arg_table tables[] = {{"The table:", fm_ablate_knobs, fm_n_ablate_knob, &a->options}};
    fm_word_list       own      = {0};
    fm_word_add(&own, argv[0]);
    const int asks =
        argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
                      !strcmp(argv[1], "--version") || !strcmp(argv[1], "--print-options"));
    if (asks)
        fm_word_add(&own, argv[1]);
    else
        fm_word_divide(&own, &a->given, fm_ablate_knobs, fm_n_ablate_knob, NULL, argv + 1,
                       argc - 1);
    a->args              = (fm_args){.command = "ablate",
                                     .usage   = "[FLAGS of bench]",
                                     .about   = about,
                                     .table   = tables,
                                     .n_table = 1};
    char     *name       = own.word[0];
    fm_status rc         = fm_args_parse(&a->args, own.n, own.word);
    own.word[0]          = name;
    fm_word_list_fini(&own);
    if (!a->given.n)
        fm_word_add_all(&a->given, (char *const *)default_flags,
                        (int)(sizeof default_flags / sizeof default_flags[0]));
    if (rc == FM_OK) rc = fm_check_flags(&a->given, fm_ablate_knobs, fm_n_ablate_knob);
    return rc;
}

int fm_cmd_ablate(int argc, char **argv)
{
    fm_ablation *a = calloc(1, sizeof *a);
    FM_BUG_UNLESS(a != NULL);
    fm_status rc = read_command_line(a, argc, argv);
    if (rc == FM_OK) rc = run(a);
    const int status = rc != FM_OK          ? fm_complain("ablate", rc)
                       : fm_early_end_why() ? FM_EXIT_PARTIAL
                                            : FM_EXIT_OK;
    fm_word_list_fini(&a->given);
    fm_args_fini(&a->args);
    fm_knobs_fini(fm_ablate_knobs, fm_n_ablate_knob, &a->options);
    free(a);
    return status;
}
