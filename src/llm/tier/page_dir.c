/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/tier/page_dir.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MODEL_DIGITS = 16, KEY_DIGITS = 32 };

static int fits(int n) { return n > 0 && n < FM_PAGE_PATH; }

int fm_page_dir_model(char out[FM_PAGE_PATH], const char *dir, fm_hash128 model)
{
    return fits(snprintf(out, FM_PAGE_PATH, "%s/%016llx", dir, (unsigned long long)model.hi));
}

int fm_page_dir_folder(char out[FM_PAGE_PATH], const char *dir, fm_hash128 model, int folder)
{
    return fits(snprintf(out, FM_PAGE_PATH, "%s/%016llx/%02x", dir, (unsigned long long)model.hi,
                         (unsigned)folder));
}

int fm_page_dir_page(char out[FM_PAGE_PATH], const char *dir, fm_hash128 model, fm_page_hash key)
{
    return fits(snprintf(out, FM_PAGE_PATH, "%s/%016llx/%02x/%016llx%016llx.page", dir,
                         (unsigned long long)model.hi, (unsigned)(key.hi >> 56),
                         (unsigned long long)key.hi, (unsigned long long)key.lo));
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 16 digits; 0: they are none. */
static int read_word(const char *text, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < 16; i++) {
        const int x = digit(text[i]);
        if (x < 0) return 0;
        *out = *out << 4 | (uint64_t)x;
    }
    return 1;
}

/* 0: the name is of neither a page nor a temporary file. */
static int read_name(const char *name, fm_page_hash *key)
{
    const size_t n = strlen(name);
    *key           = (fm_page_hash){0, 0};
    if (n == KEY_DIGITS + 5 && !strcmp(name + KEY_DIGITS, ".page"))
        return read_word(name, &key->hi) && read_word(name + 16, &key->lo);
    return n > 4 && !strcmp(name + n - 4, ".tmp");
}

/* 0: it was pruned by another process, or is no file. */
static int add_facts(fm_disk *d, DIR *in, const char *name, fm_stored_page *p)
{
    fm_disk_facts is;
    if (fm_disk_look_in(d, in, name, &is)) return 0;
    p->bytes = (int64_t)is.bytes;
    p->used  = is.changed;
    return is.is_file;
}

typedef struct {
    fm_disk      *disk;
    int           facts; /* sizes and times are wanted */
    fm_page_visit visit;
    void         *ctx;
} walk;

static int visit_name(const walk *w, DIR *in, const char *folder, const char *model,
                      const char *name)
{
    char           path[FM_PAGE_PATH];
    fm_stored_page p = {.path = path};
    if (!read_name(name, &p.key)) return 0;
    if (w->facts && !add_facts(w->disk, in, name, &p)) return 0;
    if (!fits(snprintf(path, sizeof path, "%s/%s", folder, name))) return 0;
    memcpy(p.model, model, strlen(model) + 1);
    return w->visit(w->ctx, &p);
}

static int walk_folder(const walk *w, const char *folder, const char *model)
{
    DIR        *in;
    const char *name;
    int         bad = fm_disk_open_dir(w->disk, folder, &in);
    if (bad) return bad == ENOENT ? 0 : bad;
    while (!(bad = fm_disk_next_name(w->disk, in, &name)) && name)
        if ((bad = visit_name(w, in, folder, model, name))) break;
    closedir(in);
    return bad;
}

int fm_page_dir_walk_folder(fm_disk *d, const char *folder, fm_page_visit visit, void *ctx)
{
    return walk_folder(&(walk){.disk = d, .visit = visit, .ctx = ctx}, folder, "");
}

static int walk_model(const walk *w, const char *dir, const char *model)
{
    char folder[FM_PAGE_PATH];
    int  bad = 0;
    for (int i = 0; !bad && i < FM_PAGE_FOLDERS; i++)
        if (fits(snprintf(folder, sizeof folder, "%s/%s/%02x", dir, model, (unsigned)i)))
            bad = walk_folder(w, folder, model);
    return bad;
}

static int is_model(const char *name)
{
    uint64_t word;
    return strlen(name) == MODEL_DIGITS && read_word(name, &word);
}

int fm_page_dir_walk(fm_disk *d, const char *dir, fm_page_visit visit, void *ctx)
{
    const walk  w = {.disk = d, .facts = 1, .visit = visit, .ctx = ctx};
    DIR        *in;
    const char *name;
    int         bad = fm_disk_open_dir(d, dir, &in);
    if (bad) return bad;
    while (!(bad = fm_disk_next_name(d, in, &name)) && name)
        if (is_model(name) && (bad = walk_model(&w, dir, name))) break;
    closedir(in);
    return bad;
}
