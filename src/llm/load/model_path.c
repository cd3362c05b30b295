/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/load/model_path.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"

enum { PATH_MAX_BYTES = sizeof((fm_model_path *)0)->dir };

/* printf into a path; 0 if it does not fit. */
__attribute__((format(printf, 2, 3))) static int put(char dst[PATH_MAX_BYTES], const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(dst, PATH_MAX_BYTES, fmt, ap);
    va_end(ap);
    return n > 0 && n < PATH_MAX_BYTES;
}

static int is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* It may be there, but this user must not look into it. */
static int is_closed(const char *dir)
{
    char        path[PATH_MAX_BYTES];
    struct stat st;
    return put(path, "%s/.", dir) && stat(path, &st) != 0 && errno == EACCES;
}

static int holds_config(const char *dir)
{
    char        path[PATH_MAX_BYTES];
    struct stat st;
    return put(path, "%s/config.json", dir) && stat(path, &st) == 0;
}

/* --- the Hugging Face cache ----------------------------------------------- */

/* "org/name" of letters, digits, '.', '_' and '-'. */
static int is_hub_name(const char *s)
{
    int slashes = 0;
    for (const char *p = s; *p; p++) {
        if (*p == '/')
            slashes++;
        else if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            return 0;
        if (*p == '.' && (p == s || p[-1] == '/')) return 0;
    }
    return slashes == 1 && s[0] != '/' && s[strlen(s) - 1] != '/';
}

/* The snapshot that refs/main names. */
static int main_snapshot(char out[PATH_MAX_BYTES], const char *repo)
{
    char path[PATH_MAX_BYTES], revision[128] = "";
    if (!put(path, "%s/refs/main", repo)) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    const int got = fscanf(f, "%127[0-9A-Za-z._-]", revision);
    fclose(f);
    return got == 1 && revision[0] != '.' && put(out, "%s/snapshots/%s", repo, revision) &&
           holds_config(out);
}

static int newest_snapshot(char out[PATH_MAX_BYTES], const char *repo)
{
    char            path[PATH_MAX_BYTES];
    struct timespec best  = {0};
    int             found = 0;
    DIR            *d     = put(path, "%s/snapshots", repo) ? opendir(path) : NULL;
    if (!d) return 0;
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.' || !put(path, "%s/snapshots/%s", repo, e->d_name)) continue;
        if (stat(path, &st) != 0 || !holds_config(path)) continue;
        const struct timespec t = st.st_mtim;
        if (found &&
            (t.tv_sec < best.tv_sec || (t.tv_sec == best.tv_sec && t.tv_nsec <= best.tv_nsec)))
            continue;
        best  = t;
        found = put(out, "%s", path);
    }
    closedir(d);
    return found;
}

/* The cache folders in the order in which the hub's own library looks. */
static int cache_folder(char out[PATH_MAX_BYTES], int i)
{
    static const struct {
        const char *variable, *below;
    } place[] = {
        {"HF_HUB_CACHE", ""},
        {"HF_HOME", "/hub"},
        {"XDG_CACHE_HOME", "/huggingface/hub"},
        {"HOME", "/.cache/huggingface/hub"},
    };
    if (i >= (int)(sizeof place / sizeof *place)) return -1;
    const char *base = getenv(place[i].variable);
    return base && *base && put(out, "%s%s", base, place[i].below);
}

static int find_in_cache(char out[PATH_MAX_BYTES], const char *name, fm_str *looked)
{
    char        folder[PATH_MAX_BYTES], repo[PATH_MAX_BYTES];
    const char *slash = strchr(name, '/');
    const int   org   = (int)(slash - name);
    for (int i = 0, there; (there = cache_folder(folder, i)) >= 0; i++) {
        if (!there || !put(repo, "%s/models--%.*s--%s", folder, org, name, slash + 1)) continue;
        if (main_snapshot(out, repo) || newest_snapshot(out, repo)) return 1;
        fm_str_printf(looked, "%s%s%s", looked->len ? ", " : "", folder,
                      is_closed(repo) ? " (Permission denied)" : "");
    }
    return 0;
}

/* --- all three ------------------------------------------------------------ */

static fm_status nothing_found(const char *asked, const fm_str *looked)
{
    if (is_closed(asked)) return fm_fail(FM_E_IO, "%s: Permission denied", asked);
    if (is_directory(asked)) return fm_fail(FM_E_IO, "%s: no config.json there", asked);
    return fm_fail(
        FM_E_IO,
        "no model %.200s: not a directory, %snot a built-in shape (r1-mini, r1, v2-lite)%s%s",
        asked, strcmp(asked, "fathom-tiny") ? "not fathom-tiny, " : "",
        looked->len ? ", not in the Hugging Face cache: " : "", looked->len ? looked->text : "");
}

fm_status fm_model_path_find(fm_model_path *out, const char *asked)
{
    fm_model_path p      = {0};
    fm_str        looked = {0};

    if (!asked || !*asked) return fm_fail(FM_E_ARG, "the model path is empty");
    snprintf(p.name, sizeof p.name, "%s", asked);

    int found = is_directory(asked) && holds_config(asked) && put(p.dir, "%s", asked);
    if (!found) found = (p.builtin = fm_builtin_config(asked)) != NULL;
    if (!found && is_hub_name(asked)) found = find_in_cache(p.dir, asked, &looked);

    const fm_status rc = found ? FM_OK : nothing_found(asked, &looked);
    fm_str_fini(&looked);
    if (rc == FM_OK) *out = p;
    return rc;
}
