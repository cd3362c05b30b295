/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int begins_with_one_of(const char *variable, const char *const *prefix)
{
    for (; *prefix; prefix++)
        if (!strncmp(variable, *prefix, strlen(*prefix))) return 1;
    return 0;
}

static int is_secret(const char *variable)
{
    static const char *const word[] = {"KEY", "TOKEN", "SECRET", "PASSWORD"};
    const size_t             len    = strcspn(variable, "=");
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++) {
        const char *at = strstr(variable, word[i]);
        if (at && (size_t)(at - variable) < len) return 1;
    }
    return 0;
}

void fm_environment_list(fm_str *out, const char *const *prefix, const char *const *but)
{
    size_t n = 0, n_found = 0;
    while (environ && environ[n]) n++;
    char **found = calloc(n + 1, sizeof *found);
    FM_BUG_UNLESS(found != NULL);
    for (size_t i = 0; i < n; i++)
        if (begins_with_one_of(environ[i], prefix) && !begins_with_one_of(environ[i], but) &&
            !is_secret(environ[i]))
            found[n_found++] = environ[i];
    qsort(found, n_found, sizeof *found, by_name);
    for (size_t i = 0; i < n_found; i++) fm_str_printf(out, "%s\n", found[i]);
    free(found);
}

void fm_environment_cache_path(fm_str *out, const char *name)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache)
        fm_str_printf(out, "%s/fathom/%s", cache, name);
    else if (home && *home)
        fm_str_printf(out, "%s/.cache/fathom/%s", home, name);
}
