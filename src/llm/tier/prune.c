/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/tier/prune.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double temporary_lives = 3600; /* seconds: no write takes as long */

typedef struct {
    uint64_t     model;
    fm_page_hash key;
    double       used, bytes;
} page;

typedef struct {
    fm_disk                *disk;
    const char             *dir;
    const fm_prune_options *o;
    double                  now;
    page                   *page;
    size_t                  n, cap;
    fm_pruned               sum;
} pruning;

static int keep_in_mind(pruning *p, const fm_stored_page *is)
{
    if (p->n == p->cap) {
        const size_t cap  = p->cap ? 2 * p->cap : 4096;
        page        *more = realloc(p->page, cap * sizeof *more);
        if (!more) return ENOMEM;
        p->page = more;
        p->cap  = cap;
    }
    p->page[p->n++] = (page){strtoull(is->model, NULL, 16), is->key, is->used, (double)is->bytes};
    p->sum.n_page++;
    p->sum.bytes += (double)is->bytes;
    return 0;
}

static int visit(void *ctx, const fm_stored_page *is)
{
    pruning *p = ctx;
    if (is->key.lo || is->key.hi) return keep_in_mind(p, is);
    if (p->now - is->used > temporary_lives && fm_disk_remove(p->disk, is->path) == 0)
        p->sum.n_temporary++;
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const page *x = a, *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

static void remove_page(pruning *p, const page *is)
{
    char             path[FM_PAGE_PATH];
    const fm_hash128 model = {.hi = is->model};
    fm_stored_page   gone  = {
           .key = is->key, .path = path, .bytes = (int64_t)is->bytes, .used = is->used};
    if (!fm_page_dir_page(path, p->dir, model, is->key)) return;
    const int bad = fm_disk_remove(p->disk, path);
    if (bad && bad != ENOENT) return;
    p->sum.n_removed++;
    p->sum.removed_bytes += is->bytes;
    if (p->o->removed) p->o->removed(p->o->ctx, &gone);
}

static void remove_oldest(pruning *p)
{
    const fm_prune_options *o      = p->o;
    const int               is_big = o->limit >= 0 && p->sum.bytes > o->limit;
    if (p->n) qsort(p->page, p->n, sizeof *p->page, by_age);
    for (size_t i = 0; i < p->n; i++) {
        const int is_old  = o->older > 0 && p->now - p->page[i].used > o->older;
        const int is_over = is_big && p->sum.bytes - p->sum.removed_bytes > o->down_to;
        if (!is_old && !is_over) return;
        remove_page(p, &p->page[i]);
    }
}

int fm_prune(fm_disk *d, const char *dir, const fm_prune_options *o, fm_pruned *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pruning p = {
        .disk = d, .dir = dir, .o = o, .now = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec};
    const int bad = fm_page_dir_walk(d, dir, visit, &p);
    if (!bad) remove_oldest(&p);
    free(p.page);
    if (out) *out = p.sum;
    return bad;
}
