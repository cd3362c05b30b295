/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/open/agree.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mapped_file.h"
#include "base/rng.h"
#include "fathom/fathom.h"

enum { WHY_BYTES = 600, HEADER_BYTES = 64 << 10, SAMPLES = 16, SAMPLE_BYTES = 512 };

static uint64_t hash_bytes(const char *p, size_t n, uint64_t seed)
{
    uint64_t h = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ (uint8_t)p[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static fm_status hash_file(const char *path, size_t most, uint64_t *hash, size_t *size)
{
    fm_mapped_file f = {0};
    FM_TRY(fm_mapped_file_open(&f, path));
    *size = f.size;
    *hash = hash_bytes(f.data, f.size < most ? f.size : most, f.size);
    for (size_t i = 1; f.size > most && i <= SAMPLES; i++) /* the same shapes, other weights */
        *hash = hash_bytes(f.data + f.size / SAMPLES * i - SAMPLE_BYTES, SAMPLE_BYTES, *hash);
    fm_mapped_file_close(&f);
    return FM_OK;
}

/* --- the program ----------------------------------------------------------- */

static fm_status agree_program(fm_world *w)
{
    char          text[96], path[4200];
    uint64_t      hash = 0;
    size_t        size = 0;
    const ssize_t n    = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > 0) path[n] = 0;
    if (n <= 0 || hash_file(path, SIZE_MAX, &hash, &size) != FM_OK) hash = size = 0;
    snprintf(text, sizeof text, "fathom " FM_VERSION ", %zu bytes, %016llx", size,
             (unsigned long long)hash);
    return fm_world_agree(w, "the program", fm_rng_key(text, 0), text);
}

/* --- options --------------------------------------------------------------- */

static int may_differ(const char *name)
{
    static const char *const own[] = {"model-path",
                                      "tokenizer-path",
                                      "threads",
                                      "cpu-bind",
                                      "quiet",
                                      "max-total-tokens",
                                      "mem-fraction-static",
                                      "skip-tokenizer-init"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i], name)) return 1;
    return 0;
}

/* Its path may differ, but all ranks have one or none has. */
static int is_directory(const fm_knob *k) { return !strcmp(k->name, "hicache-storage-dir"); }

static void put_value(fm_str *out, const fm_knob *k, const void *base)
{
    const char *at   = (const char *)base + k->offset;
    const char *word = k->kind == FM_KNOB_WORD ? *(char *const *)at : NULL;
    switch (k->kind) {
    case FM_KNOB_INT: fm_str_printf(out, "%lld", (long long)*(const int64_t *)at); break;
    case FM_KNOB_REAL: fm_str_printf(out, "%g", *(const double *)at); break;
    case FM_KNOB_FLAG: fm_str_puts(out, *(const int *)at ? "true" : "false"); break;
    case FM_KNOB_WORD:
        fm_str_puts(out, !word ? "not given" : is_directory(k) && *word ? "given" : word);
        break;
    }
}

/* All at once; only if they differ, one by one, to name the one. */
static fm_status agree_options(fm_world *w, const fm_options *o)
{
    fm_str all = {0};
    for (int i = 0; i < fm_n_engine_knob; i++)
        if (!may_differ(fm_engine_knobs[i].name)) put_value(&all, &fm_engine_knobs[i], o);
    fm_status rc = fm_world_agree(w, "an option", fm_rng_key(all.text, 0), "");
    for (int i = 0; rc != FM_OK && i < fm_n_engine_knob; i++) {
        char name[64];
        if (may_differ(fm_engine_knobs[i].name)) continue;
        fm_str_clear(&all);
        put_value(&all, &fm_engine_knobs[i], o);
        snprintf(name, sizeof name, "--%s", fm_engine_knobs[i].name);
        if (fm_world_agree(w, name, fm_rng_key(all.text, 0), all.text) != FM_OK) break;
    }
    fm_str_fini(&all);
    return rc;
}

/* --- the model ------------------------------------------------------------- */

static fm_status agree_config(fm_world *w, const fm_model_path *path)
{
    char     file[4200], text[320];
    uint64_t hash = 0;
    size_t   size = 0;
    if (path->builtin) {
        size = strlen(path->builtin);
        hash = hash_bytes(path->builtin, size, 0);
    } else {
        snprintf(file, sizeof file, "%s/config.json", path->dir);
        if (hash_file(file, SIZE_MAX, &hash, &size) != FM_OK) size = 0; /* was read before */
    }
    snprintf(text, sizeof text, "%s, %zu bytes, %016llx", path->name, size,
             (unsigned long long)hash);
    return fm_world_agree(w, "config.json", hash ^ size, text);
}

fm_status fm__agree_start(fm_world *w, const fm_options *o, const fm_model_path *path)
{
    if (fm_world_comm(w)->n_rank == 1) return FM_OK;
    FM_TRY(agree_program(w));
    FM_TRY(agree_options(w, o));
    return agree_config(w, path);
}

static uint64_t hash_tokenizer(const char *dir)
{
    static const char *const name[] = {"tokenizer.json", "tiktoken.model", "tokenizer_config.json"};
    uint64_t                 print  = 0;
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        char     path[4400];
        uint64_t hash = 0;
        size_t   size = 0;
        snprintf(path, sizeof path, "%s/%s", dir, name[i]);
        if (access(path, F_OK) == 0 && hash_file(path, SIZE_MAX, &hash, &size) == FM_OK)
            print += fm_rng_key(name[i], hash);
    }
    return print;
}

fm_status fm__agree_tokenizer(fm_world *w, const char *dir, int uses_it)
{
    char     text[96] = "none";
    uint64_t print    = uses_it && dir ? hash_tokenizer(dir) : 0;
    uint64_t first    = print;
    FM_TRY(fm_broadcast(fm_world_comm(w), &first, sizeof first, 0));
    if (uses_it && dir) snprintf(text, sizeof text, "%016llx", (unsigned long long)print);
    return fm_world_agree(w, "the tokenizer", uses_it ? print : first, text);
}

static int is_checkpoint_file(const char *name)
{
    const size_t n = strlen(name), tail = strlen(".safetensors");
    return n > tail && !strcmp(name + n - tail, ".safetensors");
}

/* Sums do not depend on the order in which a directory lists its files. */
static fm_status add_files(const char *dir, uint64_t *print, int64_t *bytes, int *n_file)
{
    DIR *d = opendir(dir);
    if (!d) return fm_fail(FM_E_IO, "cannot list %s", dir);
    fm_status rc = FM_OK;
    for (struct dirent *f; rc == FM_OK && (f = readdir(d));) {
        char     path[4400];
        uint64_t hash = 0;
        size_t   size = 0;
        if (!is_checkpoint_file(f->d_name)) continue;
        snprintf(path, sizeof path, "%s/%s", dir, f->d_name);
        rc = hash_file(path, HEADER_BYTES, &hash, &size);
        *print += fm_rng_key(f->d_name, hash);
        *bytes += (int64_t)size;
        ++*n_file;
    }
    closedir(d);
    return rc;
}

fm_status fm__agree_checkpoint(fm_world *w, const fm_model_path *path, uint64_t *print)
{
    char    text[96];
    int64_t bytes = 0;
    int     n     = 0;
    *print        = 0;
    if (path->builtin || fm_world_comm(w)->n_rank == 1) return FM_OK;
    const fm_status mine = add_files(path->dir, print, &bytes, &n);
    FM_TRY(fm__agree_all_well(w, mine));
    snprintf(text, sizeof text, "%d files, %lld bytes, %016llx", n, (long long)bytes,
             (unsigned long long)*print);
    return fm_world_agree(w, "the checkpoint", *print, text);
}

/* --- did all succeed? ------------------------------------------------------ */

typedef struct {
    int32_t status;
    char    why[WHY_BYTES];
} outcome;

/* Waits without a time limit: another rank may take long for what it is doing. */
static fm_status gather(fm_world *w, void *all, const void *mine, size_t bytes)
{
    fm_comm *c = fm_world_comm(w);
    size_t   each[c->n_rank];
    for (int i = 0; i < c->n_rank; i++) each[i] = bytes;
    fm_comm_job job;
    FM_TRY(fm_comm_start(c, &job, fm_call_all_gather(all, mine, each)));
    return fm_comm_wait_idle(&job);
}

static fm_status first_failure(fm_world *w, const outcome *all)
{
    const int n = fm_world_comm(w)->n_rank, me = fm_world_comm(w)->rank;
    int       bad = 0;
    while (bad < n && all[bad].status == FM_OK) bad++;
    if (bad == n) return FM_OK;
    const fm_status why = (fm_status)all[bad].status;
    if (me > 0) return fm_fail(why, "%s", "");
    if (bad == 0) return fm_fail(why, "%s", all[0].why);
    return fm_fail(why, "rank %d on %s: %s", bad, fm_world_host(w, bad), all[bad].why);
}

fm_status fm__agree_all_well(fm_world *w, fm_status mine)
{
    const int n = fm_world_comm(w)->n_rank;
    if (n == 1) return mine;
    outcome own = {.status = mine}, *all = calloc((size_t)n, sizeof *all);
    if (!all) fm_world_abort(w, "out of memory at start");
    if (mine != FM_OK) snprintf(own.why, sizeof own.why, "%s", fm_why());
    fm_status rc = gather(w, all, &own, sizeof own);
    if (rc == FM_OK) rc = first_failure(w, all);
    free(all);
    return rc;
}

fm_status fm__agree_least(fm_world *w, int64_t *n)
{
    int64_t all[fm_world_comm(w)->n_rank];
    if (fm_world_comm(w)->n_rank == 1) return FM_OK;
    const int64_t mine = *n;
    FM_TRY(gather(w, all, &mine, sizeof mine));
    for (int i = 0; i < fm_world_comm(w)->n_rank; i++)
        if (all[i] < *n) *n = all[i];
    return FM_OK;
}
