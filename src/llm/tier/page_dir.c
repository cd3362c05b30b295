/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/tier/page_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

static int add_facts(int at, const char *name, fm_stored_page *p)
{
    struct stat st;
    if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return 0; /* pruned by another process */
    p->bytes = st.st_size;
    p->used  = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
    return S_ISREG(st.st_mode);
}

static int walk_folder(const char *folder, const char model[17], int facts, fm_page_visit visit,
                       void *ctx)
{
    char path[FM_PAGE_PATH];
    DIR *d   = opendir(folder);
    int  bad = 0;
    if (!d) return errno == ENOENT ? 0 : errno;
    for (struct dirent *f; !bad && (f = readdir(d));) {
        fm_stored_page p = {.path = path};
        if (!read_name(f->d_name, &p.key)) continue;
        if (facts && !add_facts(dirfd(d), f->d_name, &p)) continue;
        if (!fits(snprintf(path, sizeof path, "%s/%s", folder, f->d_name))) continue;
        memcpy(p.model, model, sizeof p.model);
        bad = visit(ctx, &p);
    }
    closedir(d);
    return bad;
}

int fm_page_dir_walk_folder(const char *folder, fm_page_visit visit, void *ctx)
{
    return walk_folder(folder, (const char[17]){""}, 0, visit, ctx);
}

static int walk_model(const char *dir, const char *model, fm_page_visit visit, void *ctx)
{
    char folder[FM_PAGE_PATH];
    int  bad = 0;
    for (int i = 0; !bad && i < FM_PAGE_FOLDERS; i++)
        if (fits(snprintf(folder, sizeof folder, "%s/%s/%02x", dir, model, (unsigned)i)))
            bad = walk_folder(folder, model, 1, visit, ctx);
    return bad;
}

int fm_page_dir_walk(const char *dir, fm_page_visit visit, void *ctx)
{
    DIR *d   = opendir(dir);
    int  bad = 0;
    if (!d) return errno;
    for (struct dirent *f; !bad && (f = readdir(d));) {
        uint64_t word;
        char     model[MODEL_DIGITS + 1];
        if (strlen(f->d_name) != MODEL_DIGITS || !read_word(f->d_name, &word)) continue;
        memcpy(model, f->d_name, sizeof model);
        bad = walk_model(dir, model, visit, ctx);
    }
    closedir(d);
    return bad;
}
