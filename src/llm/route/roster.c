/* SPDX-License-Identifier: Apache-2.0 */
/* The table of workers: from the command line, a file, and requests. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/route/route_internal.h"

fm_worker *fm__roster_by_id(const fm_route *r, int id)
{
    fm_worker *w = r->workers;
    while (w && w->id != id) w = w->next;
    return w;
}

/* A plain decimal number as "3"; 0: the name is no id. */
static int id_of(const char *name)
{
    char      *end;
    const long id = *name >= '1' && *name <= '9' ? strtol(name, &end, 10) : 0;
    return id > 0 && id <= INT_MAX && !*end ? (int)id : 0;
}

fm_worker *fm__roster_find(const fm_route *r, const char *name)
{
    fm_worker *w  = r->workers;
    const int  id = id_of(name);
    while (w && (w->leaving || strcmp(w->url, name))) w = w->next;
    if (w || !id) return w;
    w = fm__roster_by_id(r, id);
    return w && !w->leaving ? w : NULL;
}

static void trim(char *url) /* "http://a/" names what "http://a" does */
{
    for (size_t n = strlen(url); n && url[n - 1] == '/';) url[--n] = 0;
}

fm_status fm__roster_add(fm_route *r, const char *url, const char *api_key, int from_file,
                         fm_worker **out)
{
    fm_worker *w = NULL, **at = &r->workers;
    char      *plain = strdup(url);
    FM_BUG_UNLESS(plain != NULL);
    trim(plain);
    const fm_status rc =
        fm__roster_find(r, plain)
            ? fm_fail(FM_E_ARG, "%s is a worker already", plain)
            : fm_worker_create(&w, r->loop, plain, api_key ? api_key : r->opt->worker_api_key);
    free(plain);
    if (rc != FM_OK) return rc;
    w->route     = r;
    w->id        = ++r->next_worker_id;
    w->from_file = from_file;
    while (*at) at = &(*at)->next;
    *at = w;
    if (out) *out = w;
    fm__say(r, "worker %d %s joins", w->id, w->url);
    return FM_OK;
}

void fm__roster_remove(fm_route *r, fm_worker *w)
{
    if (w->leaving) return;
    w->draining = w->leaving = 1;
    fm__say(r, "worker %d %s leaves; %d requests under way end first", w->id, w->url, w->n_active);
}

void fm__roster_sweep(fm_route *r)
{
    for (fm_worker **at = &r->workers; *at;) {
        fm_worker *w = *at;
        if (!w->leaving || w->n_active || w->n_gather) {
            at = &w->next;
            continue;
        }
        *at = w->next;
        fm_worker_destroy(w);
    }
}

int fm__roster_n_up(const fm_route *r)
{
    int n = 0;
    for (const fm_worker *w = r->workers; w; w = w->next)
        n += w->health == FM_WORKER_UP && !w->draining;
    return n;
}

/* A comment begins at a '#' that begins a word. */
int fm__split_words(char *line, char **word, int most)
{
    char *save = NULL;
    int   n    = 0;
    for (char *at = strtok_r(line, " \t\r\n", &save); at && *at != '#' && n < most;
         at       = strtok_r(NULL, " \t\r\n", &save))
        word[n++] = at;
    return n;
}

/* A worker whose line has another key than before is asked with that from now on. */
static void take_key(const fm_route *r, fm_worker *w, const char *key)
{
    if (!key) key = r->opt->worker_api_key;
    free(w->api_key);
    w->api_key = key ? strdup(key) : NULL;
}

static fm_status take_line(fm_route *r, char *url, const char *key)
{
    trim(url);
    fm_worker *w = fm__roster_find(r, url);
    if (!w) return fm__roster_add(r, url, key, FM_LISTED_NOW, NULL);
    if (!w->from_file) return FM_OK;
    w->from_file = FM_LISTED_NOW;
    take_key(r, w, key);
    return FM_OK;
}

static fm_status fail_at(fm_status rc, const char *path, int n_line)
{
    char why[400];
    snprintf(why, sizeof why, "%s", fm_why());
    return fm_fail(rc, "%s, line %d: %s", path, n_line, why);
}

fm_status fm__read_lines(fm_route *r, FILE *f, const char *path, fm__take_line *take)
{
    char     *line = NULL, *word[3];
    size_t    room = 0;
    int       i    = 0;
    fm_status rc   = FM_OK;
    for (; rc == FM_OK && getline(&line, &room, f) >= 0; i++) {
        const int n = fm__split_words(line, word, 3);
        if (n) rc = take(r, word, n);
    }
    free(line);
    return rc == FM_OK ? rc : fail_at(rc, path, i);
}

static fm_status take_words(fm_route *r, char **word, int n)
{
    if (n > 2)
        return fm_fail(FM_E_FORMAT, "\"%.40s\" stands behind a URL and its API key", word[2]);
    return take_line(r, word[0], n > 1 ? word[1] : NULL);
}

fm_status fm__roster_read_file(fm_route *r)
{
    const char *path = r->opt->worker_file;
    if (!path) return FM_OK;
    FILE *f = fopen(path, "re");
    if (!f) return fm_fail(FM_E_IO, "%s: %s", path, strerror(errno));
    const fm_status rc = fm__read_lines(r, f, path, take_words);
    fclose(f);
    for (fm_worker *w = r->workers; w; w = w->next) {
        if (rc == FM_OK && w->from_file == FM_LISTED) fm__roster_remove(r, w);
        if (w->from_file == FM_LISTED_NOW) w->from_file = FM_LISTED;
    }
    return rc;
}
