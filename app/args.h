/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of one command: knob tables become options, names that
 * SGLang and vLLM use for the same thing become aliases, and their flags that
 * have no meaning here are accepted and explained. */
#ifndef FM_APP_ARGS_H
#define FM_APP_ARGS_H

#include "base/knobs.h"
#include "base/str.h"
#include "word_list.h"

typedef struct {
    const char    *heading; /* in --help */
    const fm_knob *knob;    /* [n] */
    int            n;
    void          *base; /* the struct that holds the values */
} fm_arg_table;

typedef struct {
    const char         *command; /* "bench" */
    const char         *usage;   /* what follows the options in --help, or NULL */
    int                 n_word;  /* words that must follow, as `usage` names them, or FM_SOME_WORDS */
    const char         *about;   /* the rest of --help */
    const fm_arg_table *table;   /* [n_table] read while the command line is parsed, then NULL */
    int                 n_table;

    /* After an option of a table was stored; NULL is fine. */
    fm_status (*stored)(void *ctx, const fm_knob *k, const char *value);
    /* A word that is no option; `after` is the option it follows, or NULL.
     * Without this function such words are counted by n_word and kept in `given`. */
    fm_status (*word)(void *ctx, const char *after, const char *word);
    void *ctx;

    /* Out; fm_args_fini() frees them. */
    const char **given; /* [n_given] words, borrowed from the command line */
    int          n_given;
    fm_str       notes;  /* a line per flag that was explained */
    int          n_node; /* --nnodes */
    int          node;   /* --node-rank */
} fm_args;

enum { FM_SOME_WORDS = -1 }; /* one or more */

/* FM_E_ARG names the option; of one that does not exist, the nearest that does.  --help and
 * --version end the process here, as argp does; so does --print-options, which completions of
 * shells ask for. */
fm_status fm_args_parse(fm_args *a, int argc, char **argv);
void      fm_args_fini(fm_args *a);

/* Of words meant for another process of this program: FM_E_ARG names the first that is an option of
 * none of the tables, as fm_args_parse would there. */
fm_status fm_args_spelling(const fm_arg_table *table, int n_table, const fm_word_list *word);

/* FM_E_ARG: a word that belongs to no option. */
fm_status fm_args_stray(const char *word);

#endif
