/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that keeps the file tier's directory: lists what is there at the start,
 * looks every few seconds for pages that other processes wrote, and prunes. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "llm/tier/prune.h"
#include "llm/tier/store_internal.h"

enum { LOOK_AGAIN = 10, LISTED_AT_ONCE = 512 }; /* seconds; pages */

typedef struct {
    fm_store    *s;
    fm_page_hash key[LISTED_AT_ONCE];
    int          n;
    double       when[FM_PAGE_FOLDERS]; /* modification of each folder, as last seen */
} keeper;

static void list_found(keeper *k)
{
    pthread_mutex_lock(&k->s->lock);
    for (int i = 0; i < k->n; i++) fm_key_set_add(&k->s->listed, k->key[i]);
    pthread_mutex_unlock(&k->s->lock);
    k->n = 0;
}

static int found(void *ctx, const fm_stored_page *p)
{
    keeper *k = ctx;
    if (!p->key.lo && !p->key.hi) return 0;
    k->key[k->n++] = p->key;
    if (k->n == LISTED_AT_ONCE) list_found(k);
    return 0;
}

/* Adding or removing a file changes its folder's time; one that cannot be listed is looked at
 * again. */
static int scan_folder(keeper *k, const char *folder, double *when)
{
    fm_disk_facts is;
    if (fm_disk_look(&k->s->disk, folder, &is) || is.changed == *when) return 0;
    const int bad = fm_page_dir_walk_folder(&k->s->disk, folder, found, k);
    if (!bad) *when = is.changed;
    return bad;
}

/* The pages of one folder do not depend on those of another: after an error the rest is listed. */
static int scan(keeper *k)
{
    char         folder[FM_PAGE_PATH];
    const double began = fm_now();
    int          bad   = 0;
    for (int i = 0; i < FM_PAGE_FOLDERS && !k->s->is_closing; i++) {
        if (!fm_page_dir_folder(folder, k->s->dir, k->s->opt.format.model, i)) continue;
        const int is = scan_folder(k, folder, &k->when[i]);
        if (is) bad = is;
    }
    list_found(k);
    pthread_mutex_lock(&k->s->lock);
    k->s->stats.scan_seconds = fm_now() - began;
    pthread_mutex_unlock(&k->s->lock);
    return bad;
}

static int write_about(fm_store *s, const char *folder)
{
    char path[FM_PAGE_PATH + 16], temporary[FM_PAGE_PATH + 32];
    snprintf(path, sizeof path, "%s/about", folder);
    snprintf(temporary, sizeof temporary, "%s/%016llx.tmp", folder, (unsigned long long)s->nonce);
    return fm_disk_write(&s->disk, temporary, path, s->about, strlen(s->about));
}

static int is_directory(fm_store *s, const char *path)
{
    fm_disk_facts is;
    return !fm_disk_look(&s->disk, path, &is) && is.is_dir;
}

/* A directory that can only be read serves what it has, and what others add to it. */
static int prepare(fm_store *s)
{
    char folder[FM_PAGE_PATH];
    if (!fm_page_dir_model(folder, s->dir, s->opt.format.model)) return ENAMETOOLONG;
    int bad = fm_disk_make_dirs(&s->disk, folder);
    if (!bad) bad = write_about(s, folder);
    if (fm__store_is_refused(bad) && is_directory(s, s->dir)) {
        fm__store_stop_writing(s, bad);
        return 0;
    }
    return bad && is_directory(s, folder) ? 0 : bad;
}

static void forget(void *store, const fm_stored_page *p)
{
    fm_store *s = store;
    fm_store_forget(s, p->key); /* of another model: then it is not listed */
    pthread_mutex_lock(&s->lock);
    s->stats.n_pruned++;
    pthread_mutex_unlock(&s->lock);
}

static void keep_limit(fm_store *s)
{
    if (!(s->opt.limit > 0)) return;
    pthread_mutex_lock(&s->lock);
    s->written_since = 0;
    pthread_mutex_unlock(&s->lock);
    const fm_prune_options o = {
        .limit = s->opt.limit, .down_to = 0.9 * s->opt.limit, .removed = forget, .ctx = s};
    const int bad = fm_prune(&s->disk, s->dir, &o, NULL);
    if (bad) fm__store_give_up(s, "the directory cannot be listed", bad);
}

/* Pruning reads the size of every file; only processes that write prune. */
static int has_written(fm_store *s)
{
    pthread_mutex_lock(&s->lock);
    const int has = s->written_since > 0;
    pthread_mutex_unlock(&s->lock);
    return has;
}

/* Waits until the keeper is signalled or the next scan is due. */
static int rest(fm_store *s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += LOOK_AGAIN + (time_t)(50 * s->stats.scan_seconds);
    pthread_mutex_lock(&s->lock);
    if (!s->is_closing) pthread_cond_timedwait(&s->keep, &s->lock, &until);
    const int goes_on = !s->is_closing;
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

static void begin(keeper *k)
{
    fm_store *s   = k->s;
    int       bad = prepare(s);
    if (bad)
        fm__store_give_up(s, "the directory cannot be used", bad);
    else if ((bad = scan(k)))
        fm__store_give_up(s, "the directory cannot be listed", bad);
    pthread_mutex_lock(&s->lock);
    s->is_scanned = 1;
    pthread_cond_broadcast(&s->done);
    pthread_mutex_unlock(&s->lock);
}

void *fm__store_keeper(void *store)
{
    fm_store *s = store;
    keeper   *k = calloc(1, sizeof *k);
    if (k) {
        k->s = s;
        begin(k);
        keep_limit(s);
        while (rest(s)) {
            if (!fm_store_is_on(s)) continue;
            scan(k);
            if (has_written(s)) keep_limit(s);
        }
    }
    free(k);
    pthread_mutex_lock(&s->lock);
    s->n_left++;
    pthread_cond_broadcast(&s->done);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}
