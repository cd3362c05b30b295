/* SPDX-License-Identifier: Apache-2.0 */
/* `tune bench` and `tune serve`: fathom's own knobs as a space, and the command of a trial. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_flags.h"
#include "machine.h"
#include "tune.h"

/* ---- which knobs ---- */

static const char *knob_name(int i) { return fm_tune_spaces[i].name; }

static fm_status check_list(const char *list)
{
    const char *at = fm_list_stranger(list, knob_name, fm_n_tune_space);
    if (!at) return FM_OK;
    return fm_fail(FM_E_ARG, "--knobs: there is no \"%.*s\"; --knobs help lists them",
                   (int)strcspn(at, ","), at);
}

/* --param NAME=... of the user replaces the table's range. */
static const char *given_range(const fm_tune_command *c, const char *name)
{
    const size_t n = strlen(name);
    for (int i = 0; i < c->param.n; i++)
        if (!strncmp(c->param.word[i], name, n) && c->param.word[i][n] == '=')
            return c->param.word[i];
    return NULL;
}

static int is_wanted(const fm_tune_command *c, const fm_tune_knob *k, int gpu)
{
    if (fm_word_has_option(&c->given, k->option)) return 0;
    if (given_range(c, k->name)) return 1;
    if (c->options.knobs) return fm_list_has(c->options.knobs, k->name);
    return (k->where & (gpu ? FM_TUNE_GPU : FM_TUNE_CPU)) && !(k->where & FM_TUNE_ASKED);
}

/* ---- the space ---- */

static fm_status set_first(fm_tune_command *c, const fm_tune_knob *k, int n_cpu)
{
    const int i = c->space.n - 1;
    char      cpus[16];
    snprintf(cpus, sizeof cpus, "%d", n_cpu);
    const char *initial = !strcmp(k->initial, "cpus") ? cpus : k->initial;
    if (fm_param_read(&c->space.param[i], initial, &c->first[0].v[i]) != FM_OK)
        c->first[0].v[i] =
            fm_param_value(&c->space.param[i], 0.5); /* outside of the user's range */
    return FM_OK;
}

/* The table's range, with the number of CPUs in it. */
static void range_text(fm_str *out, const fm_tune_knob *k, int n_cpu)
{
    const char *at = strstr(k->space, "%d");
    if (at)
        fm_str_printf(out, "%.*s%d%s", (int)(at - k->space), k->space, n_cpu, at + 2);
    else
        fm_str_puts(out, k->space);
}

static int cpus_of_a_trial(const fm_tune_command *c)
{
    const int share = fm_usable_cpus() / (int)c->options.jobs;
    return share > 0 ? share : 1;
}

static fm_status add_knob(fm_tune_command *c, const fm_tune_knob *k, int n_cpu)
{
    fm_str      text  = {0};
    const char *given = given_range(c, k->name);
    if (given)
        fm_str_puts(&text, given);
    else
        range_text(&text, k, n_cpu);
    fm_status rc = fm_space_add(&c->space, text.text);
    fm_str_fini(&text);
    if (rc != FM_OK) return rc;
    fm_word_add(&c->tuned, k->word);
    return set_first(c, k, n_cpu);
}

/* Ranks of a layout that fit: one a CPU, or a GPU if there are some. */
static fm_status constrain_ranks(fm_tune_command *c, int n_cpu, int gpu)
{
    static const char *const name[] = {"tp", "pp", "dp"};
    fm_str                   text   = {0};
    for (int i = 0; i < 3; i++)
        if (fm_space_find(&c->space, name[i], 2) >= 0)
            fm_str_printf(&text, "%s%s", text.len ? "*" : "", name[i]);
    fm_status rc = FM_OK;
    if (text.len) {
        fm_str_printf(&text, " <= %d", gpu ? gpu : n_cpu);
        rc = fm_space_constrain(&c->space, text.text);
    }
    fm_str_fini(&text);
    return rc;
}

static fm_status make_space(fm_tune_command *c)
{
    const int n_cpu = cpus_of_a_trial(c);
    int       gpu   = 0;
    FM_TRY(fm_usable_gpus(&gpu, &c->given));
    FM_TRY(check_list(c->options.knobs));
    for (int i = 0; i < fm_n_tune_space; i++)
        if (is_wanted(c, &fm_tune_spaces[i], gpu)) FM_TRY(add_knob(c, &fm_tune_spaces[i], n_cpu));
    for (int i = 0; i < c->param.n; i++)
        if (fm_space_find(&c->space, c->param.word[i], strcspn(c->param.word[i], "=")) < 0)
            return fm_fail(FM_E_ARG, "--param %s: no knob of that name, or its option is given",
                           c->param.word[i]);
    if (!c->space.n) return fm_fail(FM_E_ARG, "no knob is left to search");
    FM_TRY(constrain_ranks(c, n_cpu, gpu));
    fm_point_settle(&c->space, &c->first[0]);
    c->has_first = fm_point_allowed(&c->space, &c->first[0]);
    c->n_first   = c->has_first;
    return FM_OK;
}

/* ---- the command ---- */

static fm_status add_program(fm_word_list *l)
{
    char          path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return fm_fail(FM_E_IO, "/proc/self/exe cannot be read");
    path[n] = 0;
    fm_word_add(l, path);
    return FM_OK;
}

static fm_status make_bench_words(fm_tune_command *c)
{
    FM_TRY(add_program(&c->run));
    fm_word_add(&c->shown, "fathom");
    fm_word_list *const both[] = {&c->run, &c->shown};
    for (int i = 0; i < 2; i++) {
        fm_word_add(both[i], "bench");
        fm_word_add_all(both[i], c->given.word, c->given.n);
        fm_word_add_all(both[i], c->tuned.word, c->tuned.n);
    }
    if (!fm_word_has_option(&c->given, "quiet")) fm_word_add(&c->run, "--quiet");
    return FM_OK;
}

static fm_status make_serve_words(fm_tune_command *c)
{
    fm_word_list server = {0};
    fm_divide_flags(&server, &c->client, &c->given);
    fm_status rc = add_program(&c->run);
    fm_word_add(&c->run, "tune");
    fm_word_add(&c->run, "serve-trial");
    fm_word_add(&c->shown, "fathom");
    fm_word_add(&c->shown, "serve");
    fm_word_list *const both[] = {&c->run, &c->shown};
    for (int i = 0; i < 2; i++) {
        fm_word_add_all(both[i], server.word, server.n);
        fm_word_add_all(both[i], c->tuned.word, c->tuned.n);
    }
    fm_word_add(&c->run, "--");
    fm_word_add_all(&c->run, c->client.word, c->client.n);
    fm_word_list_fini(&server);
    return rc;
}

__attribute__((noreturn)) static void list_knobs(const fm_tune_command *c)
{
    fm_str text = {0};
    for (int i = 0; i < fm_n_tune_space; i++) {
        const fm_tune_knob *k = &fm_tune_spaces[i];
        fm_str_clear(&text);
        range_text(&text, k, cpus_of_a_trial(c));
        printf("%-26s %s%s%s\n", k->name, strchr(text.text, '=') + 1,
               k->where & FM_TUNE_CPU ? "" : "  (GPU)",
               k->where & FM_TUNE_ASKED ? "  (if named)" : "");
    }
    fm_str_fini(&text);
    exit(0);
}

fm_status fm_tune_own_form(fm_tune_command *c)
{
    if (c->options.knobs && !strcmp(c->options.knobs, "help")) list_knobs(c);
    FM_TRY(fm_check_flags(&c->given, fm_tune_knobs, fm_n_tune_knob));
    FM_TRY(make_space(c));
    if (!strcmp(c->form, "bench")) fm_tune_seed(c);
    return strcmp(c->form, "serve") ? make_bench_words(c) : make_serve_words(c);
}
