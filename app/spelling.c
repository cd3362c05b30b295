/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "spelling.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/nearest.h"
#include "base/utf8.h"

/* What argp adds to every command. */
static const struct argp_option of_argp[] = {
    {.name = "help"}, {.name = "usage"}, {.name = "version"}, {0}};

static int is_end(const struct argp_option *o) { return !o->name && !o->key && !o->doc; }

/* The option a name or its beginning means, or NULL.  Of several it is the first: argp says that
 * it is ambiguous. */
static const struct argp_option *find(const struct argp_option *o, const char *name, size_t n)
{
    const struct argp_option *begun = NULL;
    for (; !is_end(o); o++) {
        if (!o->name || strncmp(o->name, name, n)) continue;
        if (!o->name[n]) return o;
        if (!begun) begun = o;
    }
    return begun;
}

static int takes_value(const struct argp_option *o)
{
    while (o->flags & OPTION_ALIAS) o--;
    return o->arg != NULL;
}

static fm_status refuse(const struct argp_option *options, const char *word, const char *name)
{
    const int  n    = (int)strcspn(name, "=");
    char      *bare = strndup(name, (size_t)n);
    fm_nearest like = {.word = bare ? bare : name};
    for (const struct argp_option *o = options; !is_end(o); o++)
        if (o->name) fm_nearest_offer(&like, o->name);
    const fm_status rc =
        like.name ? fm_fail(FM_E_ARG, "there is no option %s; is --%s meant?", word, like.name)
                  : fm_fail(FM_E_ARG, "there is no option %s; --help lists them", word);
    free(bare);
    return rc;
}

fm_status fm_spelling_check(const struct argp_option *options, int argc, char *const *argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const char  *word = argv[i], *name = word + strspn(word, "-");
        const size_t n = strcspn(name, "=");
        if (word == name || !*name) continue; /* a word, or "-": standard input */
        if (word[1] != '-') {
            if (!strcmp(word, "-h") || !strcmp(word, "-?") || !strcmp(word, "-V")) continue;
            return refuse(options, word, name);
        }
        const struct argp_option *o = find(options, name, n);
        if (!o && !find(of_argp, name, n)) return refuse(options, word, name);
        if (o && takes_value(o) && !name[n]) i++;
    }
    return FM_OK;
}

/* page-size of FM_PAGE_SIZE=16 */
static void option_of(char *out, size_t size, const char *variable)
{
    size_t n = 0;
    for (const char *c = variable + 3; *c && *c != '=' && n + 1 < size; c++)
        out[n++] = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    out[n] = 0;
}

/* The option that is meant by a name which none has, or NULL; "" where one has it. */
static const char *meant_by(const struct argp_option *options, const char *name)
{
    fm_nearest like = {.word = name};
    for (const struct argp_option *o = options; !is_end(o); o++) {
        if (!o->name || o->flags & OPTION_HIDDEN) continue;
        const struct argp_option *own = o;
        while (own->flags & OPTION_ALIAS) own--;
        if (!strcmp(o->name, name)) return own == o ? "" : own->name;
        if (own == o) fm_nearest_offer(&like, o->name);
    }
    return like.name;
}

fm_status fm_spelling_variables(const struct argp_option *options, const char *command,
                                fm_str *notes)
{
    char name[FM_KNOB_VARIABLE], variable[FM_KNOB_VARIABLE];
    for (char **v = environ; *v; v++) {
        if (strncmp(*v, "FM_", 3) || !strchr(*v, '=')) continue;
        option_of(name, sizeof name, *v);
        const char *meant = meant_by(options, name);
        const int n_name = (int)strcspn(*v, "=");
        if (meant && !*meant && fm_utf8_prefix(*v, strlen(*v)) < strlen(*v))
            return fm_fail(FM_E_ARG, "%.*s in the environment is not UTF-8", n_name, *v);
        if (!meant || !*meant) continue;
        fm_knob_variable(variable, meant);
        fm_str_printf(notes,
                      "fathom %s: %.*s in the environment is read by no option; is %s meant?\n",
                      command, n_name, *v, variable);
    }
    return FM_OK;
}
