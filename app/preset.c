/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "preset.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* "--name=value", "--name value" or "--name"; blanks at both ends are none. */
static fm_status add_line(fm_word_list *out, char *line, const char *path, int number)
{
    while (isspace((unsigned char)*line)) line++;
    size_t n = strlen(line);
    while (n && isspace((unsigned char)line[n - 1])) line[--n] = 0;
    if (!n || *line == '#') return FM_OK;
    if (fm_utf8_prefix(line, n) < n)
        return fm_fail(FM_E_FORMAT, "--preset %s, line %d is not UTF-8", path, number);
    if (strncmp(line, "--", 2) || !line[2])
        return fm_fail(FM_E_FORMAT, "--preset %s, line %d: \"%s\" is no option", path, number,
                       line);
    char *value = line + strcspn(line, " \t=");
    if (*value == '=' || !*value) {
        fm_word_add(out, line);
        return FM_OK;
    }
    *value++ = 0;
    while (isspace((unsigned char)*value)) value++;
    fm_word_add(out, line);
    fm_word_add(out, value);
    return FM_OK;
}

static fm_status add_file(fm_word_list *out, const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) return fm_fail(FM_E_IO, "--preset %s: %s", path, strerror(errno));
    char     *line = NULL;
    size_t    cap  = 0;
    fm_status rc   = FM_OK;
    for (int number = 1; rc == FM_OK && getline(&line, &cap, f) >= 0; number++)
        rc = add_line(out, line, path, number);
    free(line);
    fclose(f);
    return rc;
}

/* The file a word asks for, or NULL; *more: it stands in the next word. */
static const char *file_of(char **argv, int i, int argc, int *more)
{
    *more = 0;
    if (!fm_word_is_option(argv[i], "preset")) return NULL;
    const char *eq = strchr(argv[i], '=');
    if (eq) return eq + 1;
    *more = i + 1 < argc;
    return *more ? argv[i + 1] : NULL;
}

fm_status fm_preset_words(fm_word_list *out, int argc, char **argv)
{
    fm_status rc = FM_OK;
    int       more, ours = 1; /* not behind "--" */
    fm_word_add(out, argv[0]);
    for (int i = 1; i < argc && ours && rc == FM_OK; i++) {
        const char *path = file_of(argv, i, argc, &more);
        if (path) rc = add_file(out, path);
        i += more;
        ours = i < argc && strcmp(argv[i], "--");
    }
    if (rc == FM_OK)
        fm_word_add_all(out, argv + 1, argc - 1); /* --preset itself is passed over */
    else
        fm_word_list_fini(out);
    return rc;
}
