/* SPDX-License-Identifier: Apache-2.0 */
/* fathom cache DIR: what a directory of stored prefixes has in it, whether it is sound, and
 * less of it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "base/knobs.h"
#include "base/mapped_file.h"
#include "commands.h"
#include "llm/tier/page_dir.h"
#include "llm/tier/page_file.h"
#include "llm/tier/prune.h"

typedef struct {
    int         check, remove_bad;
    double      prune_size, prune_days;
    const char *dir; /* borrowed from the command line */
} cache_options;

#define K(KIND, field, ...) FM_KNOB(cache_options, KIND, field, __VA_ARGS__)

static const fm_knob knobs[] = {
    K(FLAG, check, "check", NULL, 0, 0, NULL, "read every page and compare its checksums"),
    K(FLAG, remove_bad, "remove-bad", NULL, 0, 0, NULL,
      "remove pages that are damaged (implies --check)"),
    K(REAL, prune_size, "prune-size", "-1", -1, 1e9, "GIB",
      "remove least recently used pages until no more is left"),
    K(REAL, prune_days, "prune-days", "0", 0, 1e6, "D",
      "remove pages that were not used for so many days"),
};
enum { N_KNOB = sizeof knobs / sizeof knobs[0] };

static const char about[] =
    "Lists the prefixes that --hicache-storage-backend file has stored in DIR: for each model its "
    "pages, tokens, bytes, and when they were last used."
    "\v"
    "Servers that use DIR may run meanwhile: a page that is removed is computed again.";

/* What is there of one model. */
typedef struct {
    char    model[17];
    int64_t n_page, n_bad, bytes;
    double  oldest, newest; /* use, seconds since 1970 */
} holding;

typedef struct {
    const cache_options *o;
    holding              of[256];
    int                  n;
    int64_t              n_temporary;
} listing;

static holding *holding_of(listing *l, const char *model)
{
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->of[i].model, model)) return &l->of[i];
    if (l->n == (int)(sizeof l->of / sizeof *l->of)) return NULL;
    holding *h = &l->of[l->n++];
    *h         = (holding){.oldest = 1e18};
    memcpy(h->model, model, sizeof h->model);
    return h;
}

/* A page that vanishes meanwhile is not bad. */
static int is_bad(const char *path)
{
    fm_mapped_file f = {0};
    if (access(path, F_OK) != 0) return 0;
    if (fm_mapped_file_open(&f, path) != FM_OK) return 1;
    const fm_page_verdict is = fm_page_file_check(f.data, f.size, NULL, (fm_page_hash){0, 0}, NULL);
    fm_mapped_file_close(&f);
    return is != FM_PAGE_GOOD;
}

static int count_page(void *ctx, const fm_stored_page *p)
{
    listing *l = ctx;
    if (!p->key.lo && !p->key.hi) {
        l->n_temporary++;
        return 0;
    }
    holding *h = holding_of(l, p->model);
    if (!h) return E2BIG;
    h->n_page++;
    h->bytes += p->bytes;
    if (p->used < h->oldest) h->oldest = p->used;
    if (p->used > h->newest) h->newest = p->used;
    if (l->o->check && is_bad(p->path)) {
        h->n_bad++;
        if (!l->o->remove_bad)
            printf("damaged: %s\n", p->path);
        else if (unlink(p->path) == 0)
            printf("damaged: %s, removed\n", p->path);
        else
            printf("damaged: %s, cannot be removed: %s\n", p->path, strerror(errno));
    }
    return 0;
}

/* The value of a line name=value of the file `about`; "?" if it has none. */
static void fact(const char *text, const char *name, char *out, size_t size)
{
    const size_t n = strlen(name);
    snprintf(out, size, "?");
    for (const char *at = text; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (!strncmp(at, name, n) && at[n] == '=')
            snprintf(out, size, "%.*s", (int)strcspn(at + n + 1, "\n"), at + n + 1);
}

static void read_about(const char *dir, const char *model, char *out, size_t size)
{
    char path[FM_PAGE_PATH];
    *out = 0;
    snprintf(path, sizeof path, "%s/%s/about", dir, model);
    FILE *f = fopen(path, "r");
    if (!f) return;
    out[fread(out, 1, size - 1, f)] = 0;
    fclose(f);
}

static void print_age(const char *what, double when)
{
    const double days = (double)(time(NULL) - (time_t)when) / 86400;
    if (days >= 1)
        printf(", %s %.1f days ago", what, days);
    else
        printf(", %s %.1f hours ago", what, 24 * (days > 0 ? days : 0));
}

static void print_holding(const char *dir, const holding *h, int checked)
{
    char text[4096], name[256], page[32], layers[64], cache[32], planes[128], device[64], forms[16];
    read_about(dir, h->model, text, sizeof text);
    fact(text, "model", name, sizeof name);
    fact(text, "page_size", page, sizeof page);
    fact(text, "layers", layers, sizeof layers);
    fact(text, "cache", cache, sizeof cache);
    fact(text, "planes", planes, sizeof planes);
    fact(text, "device", device, sizeof device);
    fact(text, "forms", forms, sizeof forms);
    printf("%s  %s, layers %s, %s, planes %s, %s%s: %lld pages, %lld tokens, %.3f GB", h->model,
           name, layers, cache, planes, device, strcmp(forms, "prompt") ? "" : ", deterministic",
           (long long)h->n_page, (long long)h->n_page * atoi(page), (double)h->bytes * 1e-9);
    print_age("used", h->newest);
    print_age("oldest", h->oldest);
    if (checked) printf(", %lld damaged", (long long)h->n_bad);
    printf("\n");
}

static fm_status list(const cache_options *o, int *n_bad)
{
    static listing l;
    fm_disk        disk = {0};
    l                   = (listing){.o = o};
    const int bad       = fm_page_dir_walk(&disk, o->dir, count_page, &l);
    if (bad) return fm_fail(FM_E_IO, "%s: %s", o->dir, strerror(bad));
    for (int i = 0; i < l.n; i++) {
        print_holding(o->dir, &l.of[i], o->check);
        *n_bad += l.of[i].n_bad > 0;
    }
    if (!l.n) printf("%s holds no pages\n", o->dir);
    if (l.n_temporary)
        printf("%lld files are being written, or were left by killed processes\n",
               (long long)l.n_temporary);
    return FM_OK;
}

static fm_status prune(const cache_options *o)
{
    fm_pruned              sum;
    fm_disk                disk = {0};
    const double           most = o->prune_size * 0x1p30;
    const fm_prune_options p    = {.limit = most, .down_to = most, .older = o->prune_days * 86400};
    if (o->prune_size < 0 && !(o->prune_days > 0)) return FM_OK;
    const int bad = fm_prune(&disk, o->dir, &p, &sum);
    if (bad) return fm_fail(FM_E_IO, "%s: %s", o->dir, strerror(bad));
    printf("removed %lld pages, %.3f GB, and %lld temporary files\n", (long long)sum.n_removed,
           sum.removed_bytes * 1e-9, (long long)sum.n_temporary);
    return FM_OK;
}

static fm_status read_command_line(cache_options *o, int argc, char **argv)
{
    const fm_arg_table table = {"What to do:", knobs, N_KNOB, o};
    fm_args            a     = {.command = "cache", .usage = "DIR", .n_word = 1, .about = about,
                                .table = &table, .n_table = 1};
    FM_TRY(fm_knobs_init(knobs, N_KNOB, o));
    const fm_status rc = fm_args_parse(&a, argc, argv);
    if (rc == FM_OK) o->dir = a.given[0];
    o->check |= o->remove_bad;
    fm_args_fini(&a);
    return rc;
}

int fm_cmd_cache(int argc, char **argv)
{
    cache_options o     = {0};
    int           n_bad = 0;
    fm_status     rc    = read_command_line(&o, argc, argv);
    if (rc == FM_OK) rc = prune(&o);
    if (rc == FM_OK) rc = list(&o, &n_bad);
    fm_knobs_fini(knobs, N_KNOB, &o);
    if (rc != FM_OK) return fm_complain("cache", rc);
    return n_bad ? FM_EXIT_FAILED : FM_EXIT_OK;
}
