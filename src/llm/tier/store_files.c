/* SPDX-License-Identifier: Apache-2.0 */
/* One page of the file tier, read or written by one of its threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "llm/tier/store_internal.h"

/* Counts a miss, and logs the first of its kind. */
static void count_miss(fm_store *s, int64_t *counter, const char *path, const char *what)
{
    pthread_mutex_lock(&s->lock);
    const int is_first = (*counter)++ == 0;
    pthread_mutex_unlock(&s->lock);
    if (is_first)
        FM_WARN("tier", "%s is %s: such pages are computed again and counted, not logged", path,
                what);
}

static void miss(fm_store *s, const char *path, int err)
{
    switch (err) {
    case ENOENT: count_miss(s, &s->stats.n_gone, path, "gone"); break;
    case EPROTO: count_miss(s, &s->stats.n_short, path, "of another length than a page has"); break;
    default: count_miss(s, &s->stats.n_unreadable, path, strerror(err)); break;
    }
}

static void judge(fm_store *s, const char *path, fm_page_verdict is)
{
    switch (is) {
    case FM_PAGE_SHORT: count_miss(s, &s->stats.n_short, path, "too short"); break;
    case FM_PAGE_FOREIGN:
        count_miss(s, &s->stats.n_foreign, path, "not the page its name says");
        break;
    case FM_PAGE_ALTERED:
        count_miss(s, &s->stats.n_altered, path, "altered (its checksum differs)");
        break;
    case FM_PAGE_GOOD: break;
    }
}

/* The pages of a prefix are of use only from the first on: the later ones count as older, so that
 * they are pruned first.  A directory that is read-only keeps the times of writing. */
static void mark_used(fm_store *s, const fm__job *j, const char *path)
{
    static const double per_page = 0.001; /* seconds */
    fm_disk_touch(&s->disk, path, per_page * j->depth);
}

fm_slot_state fm__store_read_file(fm_store *s, int job)
{
    const fm__job  *j    = &s->job[job];
    char *const     file = fm__store_file(s, job);
    char            path[FM_PAGE_PATH];
    fm_page_verdict is = FM_PAGE_FOREIGN;
    int bad = fm_page_dir_page(path, s->dir, s->opt.format.model, j->key) ? 0 : ENAMETOOLONG;
    if (!bad) bad = fm_disk_read(&s->disk, path, file, s->file_bytes);
    if (bad)
        miss(s, path, bad);
    else
        judge(s, path,
              is = fm_page_file_check(file, s->file_bytes, &s->opt.format, j->key, j->token));
    if (is != FM_PAGE_GOOD) {
        fm_store_forget(s, j->key);
        return FM_SLOT_FAILED;
    }
    mark_used(s, j, path);
    pthread_mutex_lock(&s->lock);
    s->stats.n_read++;
    s->stats.read_bytes += (double)s->file_bytes;
    pthread_mutex_unlock(&s->lock);
    return FM_SLOT_READY;
}

/* Two writes of one process never have the same temporary name. */
static int temporary_name(char out[FM_PAGE_PATH], const fm_store *s, const char *folder, int job)
{
    const int n =
        snprintf(out, FM_PAGE_PATH, "%s/%016llx-%d.tmp", folder, (unsigned long long)s->nonce, job);
    return n > 0 && n < FM_PAGE_PATH;
}

static int write_page(fm_store *s, int job)
{
    const fm__job *j      = &s->job[job];
    const int      number = (int)(j->key.hi >> 56);
    char           folder[FM_PAGE_PATH], temporary[FM_PAGE_PATH], path[FM_PAGE_PATH];
    if (!fm_page_dir_folder(folder, s->dir, s->opt.format.model, number) ||
        !fm_page_dir_page(path, s->dir, s->opt.format.model, j->key) ||
        !temporary_name(temporary, s, folder, job))
        return ENAMETOOLONG;
    if (!s->has_folder[number]) {
        const int bad = fm_disk_make_dir(&s->disk, folder);
        if (bad) return bad;
        s->has_folder[number] = 1; /* two threads may both make it */
    }
    const int bad = fm_disk_write(&s->disk, temporary, path, fm__store_file(s, job), s->file_bytes);
    if (!bad) mark_used(s, j, path);
    return bad;
}

static void count_written(fm_store *s, fm_page_hash key)
{
    pthread_mutex_lock(&s->lock);
    fm_key_set_add(&s->listed, key);
    s->stats.n_written++;
    s->stats.written_bytes += (double)s->file_bytes;
    s->written_since += (double)s->file_bytes;
    if (s->opt.limit > 0 && s->written_since > s->opt.limit / 20) pthread_cond_signal(&s->keep);
    pthread_mutex_unlock(&s->lock);
}

static void count_failed(fm_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->stats.n_failed++;
    pthread_mutex_unlock(&s->lock);
}

void fm__store_write_file(fm_store *s, int job)
{
    const fm__job *j = &s->job[job];
    char *const    file = fm__store_file(s, job);
    if (!fm_store_can_write(s)) return;
    if (j->from)
        memcpy(fm_page_file_image(file), j->from,
               fm_planes_page_bytes(&s->opt.format.planes, s->opt.format.page_size));
    const fm_hash128 sum =
        fm_page_file_seal(file, &s->opt.format, j->key, j->token);
    if (j->has_sum && !fm_hash_equal(sum, j->sum)) { /* altered in host memory, or of another page */
        count_failed(s);
        return;
    }
    const int bad = write_page(s, job);
    if (!bad) {
        count_written(s, j->key);
        return;
    }
    count_failed(s);
    if (fm__store_is_refused(bad))
        fm__store_stop_writing(s, bad);
    else
        fm__store_give_up(s, "a page cannot be written", bad);
}
