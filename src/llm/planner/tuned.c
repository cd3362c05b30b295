/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/tuned.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *fm_work_name(fm_work_kind k)
{
    static const char *const name[] = {
#define X(id, text) text,
        FM_WORK_MAP(X)
#undef X
    };
    return name[k];
}

double fm_tuned_peak(const fm_tuned *t, fm_dtype factor)
{
    return factor == FM_F32 ? t->peak_f32 : factor == FM_FP8 ? t->peak_fp8 : t->peak_bf16;
}

const fm_tuned_steps *fm_tuned_steps_of(const fm_tuned *t, const char *model)
{
    for (int i = 0; i < t->n_step; i++)
        if (!strcmp(t->step[i].model, model)) return &t->step[i];
    return NULL;
}

fm_tuned_steps *fm_tuned_add_steps(fm_tuned *t, const char *model)
{
    for (int i = 0; i < t->n_step; i++)
        if (!strcmp(t->step[i].model, model)) return &t->step[i];
    if (t->n_step == FM_TUNED_MODELS) return NULL;
    fm_tuned_steps *s = &t->step[t->n_step++];
    *s                = (fm_tuned_steps){0};
    strncpy(s->model, model, sizeof s->model - 1);
    return s;
}

void fm_tuned_file_name(fm_str *out, const char *name)
{
    int dash = 1; /* none at the beginning */
    for (; *name; name++) {
        const int c = tolower((unsigned char)*name), plain = isalnum(c);
        if (plain)
            fm_str_printf(out, "%c", c);
        else if (!dash)
            fm_str_puts(out, "-");
        dash = !plain;
    }
    while (out->len && out->text[out->len - 1] == '-') out->text[--out->len] = 0;
}

static void add_file(fm_str *path, const char *dir, const char *name)
{
    fm_str_clear(path);
    fm_str_printf(path, "%s/", dir);
    fm_tuned_file_name(path, name);
    fm_str_puts(path, ".json");
}

static int cache_dir(fm_str *dir)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache)
        fm_str_printf(dir, "%s/fathom/tuned", cache);
    else if (home && *home)
        fm_str_printf(dir, "%s/.cache/fathom/tuned", home);
    return dir->len > 0;
}

static fm_status make_dirs(char *dir)
{
    for (char *at = strchr(dir + 1, '/');; at = strchr(at + 1, '/')) {
        if (at) *at = 0;
        const int failed = mkdir(dir, 0777) != 0 && errno != EEXIST;
        if (at) *at = '/';
        if (failed) return fm_fail(FM_E_IO, "%s: %s", dir, strerror(errno));
        if (!at) return FM_OK;
    }
}

fm_status fm_tuned_home(fm_str *path, const char *name)
{
    fm_str    dir = {0};
    fm_status rc  = cache_dir(&dir) ? make_dirs(dir.text)
                                    : fm_fail(FM_E_IO, "neither HOME nor XDG_CACHE_HOME is set");
    if (rc == FM_OK) add_file(path, dir.text, name);
    fm_str_fini(&dir);
    return rc;
}

fm_status fm_tuned_find(fm_tuned *out, const char *name, fm_str *where)
{
    fm_str      cache  = {0};
    const int   cached = cache_dir(&cache);
    const char *dirs[] = {getenv("FM_TUNED_DIR"), "tuned", cached ? cache.text : NULL,
                          FM_INSTALLED_TUNED, FM_SOURCE_TUNED};
    fm_status   rc     = FM_E_IO;
    fm_str      tried  = {0};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs && rc == FM_E_IO; i++) {
        if (!dirs[i] || !*dirs[i]) continue;
        add_file(where, dirs[i], name);
        fm_str_printf(&tried, "%s%s", tried.len ? ", " : "", where->text);
        if (access(where->text, R_OK) == 0) rc = fm_tuned_load(out, where->text);
    }
    if (rc == FM_E_IO)
        fm_fail(FM_E_IO,
                "there is no table of measured costs for \"%s\" (looked for %s): fathom plan "
                "--calibrate measures a machine",
                name, tried.text);
    fm_str_fini(&cache);
    fm_str_fini(&tried);
    return rc;
}
