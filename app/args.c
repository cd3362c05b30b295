/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "args.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign_flags.h"
#include "preset.h"
#include "spelling.h"

/* Other names of our options.  Short ones stand here although they are
 * prefixes: --tp would otherwise be ambiguous. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"model", "model-path"},
    {"tokenizer", "tokenizer-path"},
    {"tp", "tp-size"},
    {"tensor-parallel-size", "tp-size"},
    {"pp", "pp-size"},
    {"pipeline-parallel-size", "pp-size"},
    {"dp", "dp-size"},
    {"data-parallel-size", "dp-size"},
    {"ep", "ep-size"},
    {"expert-parallel-size", "ep-size"},
    {"max-model-len", "context-length"},
    {"gpu-memory-utilization", "mem-fraction-static"},
    {"max-num-seqs", "max-running-requests"},
    {"max-num-batched-tokens", "chunked-prefill-size"},
    {"block-size", "page-size"},
    {"no-enable-prefix-caching", "disable-radix-cache"},
    {"scheduling-policy", "schedule-policy"},
    {"enable-deterministic-inference", "deterministic"},
    {"hf-overrides", "json-model-override-args"},
    {"num-warmups", "warmup-requests"},
    {"seed", "random-seed"}, /* in a server: other commands have a --seed of their own */
    {"cors-allowed-origins", "cors-origins"},
    {"tls-cert-path", "ssl-certfile"},
    {"tls-key-path", "ssl-keyfile"},
};
enum { N_ALIAS = sizeof aliases / sizeof aliases[0] };

/* argp's key of an option: table in the thousands, or a foreign flag. */
enum { KEY_HELP = 'h', KEY_PRESET = 9000, KEY_TABLE = 10000, KEY_STEP = 1000, KEY_FOREIGN = 90000 };

typedef struct {
    fm_args    *args;
    const char *after; /* the last option */
    fm_status   rc;
    char        doc[8192]; /* defaults added to help texts */
    size_t      doc_used;
} parse;

/* "help (default 16)", kept until the parse ends. */
static const char *doc_of(parse *p, const fm_knob *k)
{
    if (!k->initial || !*k->initial || k->kind == FM_KNOB_FLAG) return k->help;
    char        *at   = p->doc + p->doc_used;
    const size_t room = sizeof p->doc - p->doc_used;
    const int    n    = snprintf(at, room, "%s (default %s)", k->help, k->initial);
    if (n < 0 || (size_t)n >= room) return k->help;
    p->doc_used += (size_t)n + 1;
    return at;
}

static int in_tables(const fm_args *a, const char *name)
{
    for (int t = 0; t < a->n_table; t++)
        if (fm_knob_find(a->table[t].knob, a->table[t].n, name)) return 1;
    return 0;
}

static struct argp_option *add_knob(struct argp_option *o, parse *p, int table, int i)
{
    const fm_knob *k = &p->args->table[table].knob[i];
    *o++             = (struct argp_option){.name  = k->name,
                                            .key   = KEY_TABLE + table * KEY_STEP + i,
                                            .arg   = k->kind == FM_KNOB_FLAG ? NULL : k->value,
                                            .doc   = doc_of(p, k),
                                            .group = table + 1};
    for (int j = 0; j < N_ALIAS; j++)
        if (!strcmp(aliases[j].name, k->name) && !in_tables(p->args, aliases[j].alias))
            *o++ = (struct argp_option){aliases[j].alias, 0, NULL, OPTION_ALIAS, NULL, table + 1};
    return o;
}

static struct argp_option *build_options(parse *p)
{
    const fm_args *a = p->args;
    size_t         n = (size_t)fm_n_foreign_flag + N_ALIAS + 5;
    for (int t = 0; t < a->n_table; t++) n += (size_t)a->table[t].n + 1;
    struct argp_option *options = calloc(n, sizeof *options), *o = options;
    FM_BUG_UNLESS(options != NULL);

    for (int t = 0; t < a->n_table; t++) {
        FM_BUG_UNLESS(a->table[t].n < KEY_STEP);
        *o++ = (struct argp_option){.doc = a->table[t].heading, .group = t + 1};
        for (int i = 0; i < a->table[t].n; i++) o = add_knob(o, p, t, i);
    }
    for (int i = 0; i < fm_n_foreign_flag; i++) {
        const fm_foreign_flag *f = &fm_foreign_flags[i];
        if (in_tables(a, f->name)) continue; /* this command knows better */
        *o++ = (struct argp_option){.name  = f->name,
                                    .key   = KEY_FOREIGN + i,
                                    .arg   = f->takes == FM_TAKES_NOTHING ? NULL : "X",
                                    .flags = OPTION_HIDDEN};
    }
    *o++ = (struct argp_option){.doc = "Of every command:", .group = a->n_table + 1};
    *o++ = (struct argp_option){
        .name  = "preset",
        .key   = KEY_PRESET,
        .arg   = "FILE",
        .doc   = "options from a file, one a line; what the command line says comes after them",
        .group = a->n_table + 1};
    *o = (struct argp_option){.key = KEY_HELP, .flags = OPTION_HIDDEN};
    return options;
}

/* "--output-details --seed 1": the value was forgotten. */
static int is_option(const fm_args *a, const char *value)
{
    return value && !strncmp(value, "--", 2) && in_tables(a, value + 2);
}

static fm_status take_knob(parse *p, int key, const char *value)
{
    const fm_args      *a = p->args;
    const fm_arg_table *t = &a->table[(key - KEY_TABLE) / KEY_STEP];
    const fm_knob      *k = &t->knob[(key - KEY_TABLE) % KEY_STEP];
    p->after              = k->name;
    if (is_option(a, value))
        return fm_fail(FM_E_ARG, "--%s needs a value (%s), and \"%s\" stands in its place", k->name,
                       k->value, value);
    FM_TRY(fm_knob_set(k, t->base, value));
    return a->stored ? a->stored(a->ctx, k, value) : FM_OK;
}

static fm_status take_foreign(parse *p, const fm_foreign_flag *f, const char *value)
{
    fm_args *a = p->args;
    p->after   = f->name;
    FM_TRY(fm_foreign_explain(f, value, a->command, &a->notes));
    if (!strcmp(f->name, "nnodes")) a->n_node = atoi(value);
    if (!strcmp(f->name, "node-rank")) a->node = atoi(value);
    return FM_OK;
}

static int follows_list(const char *after)
{
    for (int i = 0; after && i < fm_n_foreign_flag; i++)
        if (!strcmp(fm_foreign_flags[i].name, after))
            return fm_foreign_flags[i].takes == FM_TAKES_MANY;
    return 0;
}

fm_status fm_args_stray(const char *word)
{
    if (!strchr(word, '/'))
        return fm_fail(FM_E_ARG, "\"%s\" stands where an option is expected", word);
    return fm_fail(FM_E_ARG,
                   "\"%s\" stands where an option is expected; a model is named by --model-path %s",
                   word, word);
}

static fm_status take_word(parse *p, const char *word)
{
    fm_args *a = p->args;
    if (follows_list(p->after)) return FM_OK;
    if (a->word) return a->word(a->ctx, p->after, word);
    if (!a->n_word) return fm_args_stray(word);
    if (a->n_given == a->n_word)
        return fm_fail(FM_E_ARG, "\"%s\" is one too many: give %s", word, a->usage);
    a->given[a->n_given++] = word;
    return FM_OK;
}

static fm_status check_words(const fm_args *a)
{
    const int is_short = a->n_word == FM_SOME_WORDS ? !a->n_given : a->n_given < a->n_word;
    return is_short ? fm_fail(FM_E_ARG, "give %s", a->usage) : FM_OK;
}

static error_t on_key(int key, char *value, struct argp_state *state)
{
    parse *p = state->input;
    if (key == KEY_HELP) argp_state_help(state, stdout, ARGP_HELP_STD_HELP); /* and ends here */
    if (key == KEY_PRESET) return 0; /* its words stand in its place already */
    if (key == ARGP_KEY_ARG)
        p->rc = take_word(p, value);
    else if (key >= KEY_FOREIGN && key < KEY_FOREIGN + fm_n_foreign_flag)
        p->rc = take_foreign(p, &fm_foreign_flags[key - KEY_FOREIGN], value);
    else if (key >= KEY_TABLE && key < KEY_TABLE + p->args->n_table * KEY_STEP)
        p->rc = take_knob(p, key, value);
    else
        return ARGP_ERR_UNKNOWN;
    return p->rc == FM_OK ? 0 : ECANCELED;
}

/* For the completion of shells: a line per option, "--name", "=" if it takes a
 * value, a tab, its help; aliases have no help. */
static void print_options(const struct argp_option *o)
{
    for (; o->name || o->key || o->doc; o++)
        if (o->name && !(o->flags & OPTION_HIDDEN)) {
            const struct argp_option *main = o;
            while (main->flags & OPTION_ALIAS) main--;
            printf("--%s%s\t%s\n", o->name, main->arg ? "=" : "", o->doc ? o->doc : "");
        }
}

/* What was typed, with the words of presets: commands borrow from it until the program ends.  A
 * command that reads the words of another, as `tune` does for the plan, has two. */
enum { MOST_TYPED = 2 };
static fm_word_list all_typed[MOST_TYPED];
static int          n_typed;

static fm_status parse_words(fm_args *a, int argc, char **argv)
{
    parse p = {.args = a};
    char  name[64];
    snprintf(name, sizeof name, "fathom %s", a->command);
    argv[0]              = name;
    argp_err_exit_status = 2;

    struct argp_option *options = build_options(&p);
    if (argc == 2 && !strcmp(argv[1], "--print-options")) {
        print_options(options);
        exit(0);
    }
    FM_BUG_UNLESS(n_typed < MOST_TYPED);
    fm_word_list   *typed = &all_typed[n_typed++];
    fm_status       read  = fm_preset_words(typed, argc, argv);
    if (read == FM_OK) read = fm_spelling_check(options, typed->n, typed->word);
    if (read == FM_OK) read = fm_spelling_variables(options, a->command, &a->notes);
    if (read != FM_OK) {
        free(options);
        return read;
    }
    a->given = calloc((size_t)typed->n, sizeof *a->given);
    FM_BUG_UNLESS(a->given != NULL);
    const struct argp parser = {options, on_key, a->usage, a->about, NULL, NULL, NULL};
    const error_t     e      = argp_parse(&parser, typed->n, typed->word, ARGP_IN_ORDER, NULL, &p);
    free(options);
    if (p.rc != FM_OK) return p.rc;
    return e ? fm_fail(FM_E_ARG, "command line: %s", strerror(e)) : check_words(a);
}

fm_status fm_args_spelling(const fm_arg_table *table, int n_table, const fm_word_list *word)
{
    fm_args             a       = {.table = table, .n_table = n_table};
    parse               p       = {.args = &a};
    struct argp_option *options = build_options(&p);
    fm_word_list        all     = {0};
    fm_word_add(&all, "fathom"); /* in the program's place */
    fm_word_add_all(&all, word->word, word->n);
    const fm_status rc = fm_spelling_check(options, all.n, all.word);
    fm_word_list_fini(&all);
    free(options);
    return rc;
}

fm_status fm_args_parse(fm_args *a, int argc, char **argv)
{
    const fm_status rc = parse_words(a, argc, argv);
    a->table           = NULL;
    return rc;
}

void fm_args_fini(fm_args *a)
{
    free(a->given);
    fm_str_fini(&a->notes);
}
