/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "ablate_cell.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "early_end.h"
#include "json/read.h"
#include "tune/process.h"

static void add_words(fm_word_list *l, const char *words)
{
    while (*words) {
        const size_t n    = strcspn(words, " ");
        char        *word = strndup(words, n);
        FM_BUG_UNLESS(word != NULL);
        fm_word_add(l, word);
        free(word);
        words += n + (words[n] == ' ');
    }
}

/* Two kinds of drafts are one option with a list. */
static void join_algorithms(fm_word_list *l)
{
    static const char option[] = "--speculative-algorithm=";
    int               first    = -1;
    for (int i = 0; i < l->n; i++) {
        if (strncmp(l->word[i], option, sizeof option - 1)) continue;
        if (first < 0) {
            first = i;
            continue;
        }
        fm_str both = {0};
        fm_str_printf(&both, "%s,%s", l->word[first], l->word[i] + sizeof option - 1);
        free(l->word[first]);
        l->word[first] = both.text;
        free(l->word[i]);
        memmove(&l->word[i], &l->word[i + 1], (size_t)(l->n - i) * sizeof *l->word);
        l->n--;
        i--;
    }
}

void fm_cell_words(fm_word_list *out, const fm_ablation *a, const fm_cell *c, const char *program)
{
    fm_word_add(out, program);
    fm_word_add(out, "bench");
    fm_word_add_all(out, a->given.word, a->given.n);
    add_words(out, fm_ablate_layouts[c->layout].words);
    for (int i = 0; i < a->n_feature; i++) {
        const fm_ablate_feature *f = &fm_ablate_features[a->feature[i]];
        add_words(out, fm_ablate_is_on(a, c, i) ? f->on : f->off);
    }
    join_algorithms(out);
}

/* {dir} becomes a folder of the cell's own. */
static void name_folder(fm_word_list *l, const char *dir)
{
    for (int i = 0; i < l->n; i++) {
        char *at = strstr(l->word[i], "{dir}");
        if (!at) continue;
        fm_str word = {0};
        fm_str_printf(&word, "%.*s%s%s", (int)(at - l->word[i]), l->word[i], dir, at + 5);
        free(l->word[i]);
        l->word[i] = word.text;
    }
}

/* ---- what it leaves ---- */

typedef struct {
    char dir[PATH_MAX / 2];
    char result[PATH_MAX], details[PATH_MAX];
    char stored[PATH_MAX]; /* prefixes, for the cells that keep some */
} files;

static fm_status make_files(files *f)
{
    snprintf(f->dir, sizeof f->dir, "/tmp/fathom-ablate-XXXXXX");
    if (!mkdtemp(f->dir)) return fm_fail(FM_E_IO, "%s: %s", f->dir, strerror(errno));
    snprintf(f->result, sizeof f->result, "%s/result.jsonl", f->dir);
    snprintf(f->details, sizeof f->details, "%s/answers.jsonl", f->dir);
    snprintf(f->stored, sizeof f->stored, "%s/prefixes", f->dir);
    if (mkdir(f->stored, 0700) != 0) return fm_fail(FM_E_IO, "%s: %s", f->stored, strerror(errno));
    return FM_OK;
}

static int remove_entry(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s;
    (void)kind;
    (void)where;
    return remove(path);
}

/* What one run stored, another must not find. */
static void empty_folder(const char *dir)
{
    enum { OPEN = 8 };
    nftw(dir, remove_entry, OPEN, FTW_DEPTH | FTW_PHYS);
}

static void remove_files(const files *f)
{
    empty_folder(f->stored);
    unlink(f->result);
    unlink(f->details);
    rmdir(f->dir);
}

static double member(const json_t *o, const char *a, const char *b)
{
    const json_t *v = json_object_get(o, a);
    return json_number_value(b ? json_object_get(v, b) : v);
}

static fm_status read_result(fm_cell *c, const files *f, int gpu)
{
    json_t *o = NULL;
    FM_TRY(fm_json_load(&o, f->result));
    c->throughput = member(o, "total_throughput", NULL);
    c->ttft_ms    = member(o, "mean_ttft_ms", NULL);
    c->memory     = !gpu ? member(o, "resident_bytes", NULL)
                         : member(o, "plan", "weights_bytes") + member(o, "plan", "workspace_bytes") +
                           member(o, "plan", "kv_bytes");
    json_decref(o);
    return FM_OK;
}

/* FNV-1a over the answers' lines: prompts, tokens, why each ended. */
static fm_status hash_answers(uint64_t *out, const char *path)
{
    FILE *f = fopen(path, "r");
    int   b;
    if (!f) return fm_fail(FM_E_IO, "%s: %s", path, strerror(errno));
    *out = 0xcbf29ce484222325u;
    while ((b = getc(f)) != EOF) *out = (*out ^ (uint64_t)(unsigned char)b) * 0x100000001b3u;
    fclose(f);
    return FM_OK;
}

/* ---- the run ---- */

static void fail(fm_cell *c, const char *why)
{
    c->state = FM_CELL_FAILED;
    snprintf(c->why, sizeof c->why, "%s", why);
}

static void run_once(const fm_ablation *a, fm_cell *c, const files *f, const char *program)
{
    const fm_process_place place = {0, 1, 0};
    fm_word_list           words = {0};
    fm_process             p     = {.fd = -1};
    char                   why[sizeof c->why];
    fm_cell_words(&words, a, c, program);
    name_folder(&words, f->stored);
    fm_word_add(&words, "--quiet");
    fm_word_add(&words, "--result-filename");
    fm_word_add(&words, f->result);
    fm_word_add(&words, "--output-details");
    fm_word_add(&words, f->details);
    if (fm_process_start(&p, words.word, &place, a->options.cell_time_limit) != FM_OK) {
        fail(c, fm_why());
    } else {
        while (!fm_process_step(&p)) {
            fm_process_wait(&p, 1, 0.05);
            if (fm_early_end_why()) fm_process_stop(&p);
        }
        fm_process_why(&p, why, sizeof why);
        c->state = FM_CELL_OK;
        if (*why || p.end != FM_END_NONE) fail(c, why);
    }
    fm_process_fini(&p);
    fm_word_list_fini(&words);
}

static int by_throughput(const void *a, const void *b)
{
    const fm_cell *x = a, *y = b;
    return (x->throughput > y->throughput) - (x->throughput < y->throughput);
}

static void measure(const fm_ablation *a, fm_cell *c, const files *f, const char *program)
{
    empty_folder(f->stored);
    mkdir(f->stored, 0700);
    run_once(a, c, f, program);
    if (c->state != FM_CELL_OK) return;
    if (read_result(c, f, a->n_gpu) != FM_OK || hash_answers(&c->hash, f->details) != FM_OK)
        fail(c, fm_why());
    unlink(f->result); /* it would be appended to */
}

fm_status fm_cell_run(const fm_ablation *a, fm_cell *c)
{
    char    program[PATH_MAX] = "";
    fm_cell run[99];
    int     n = 0;
    files   f;
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0)
        return fm_fail(FM_E_IO, "/proc/self/exe cannot be read");
    FM_TRY(make_files(&f));
    for (int k = 0; k < a->options.repeat; k++) {
        run[n] = *c;
        measure(a, &run[n], &f, program);
        if (run[n].state != FM_CELL_OK || (n && run[n].hash != run[0].hash)) {
            *c = run[n];
            if (c->state == FM_CELL_OK) fail(c, "its answers differ from run to run");
            break;
        }
        n++;
    }
    remove_files(&f);
    if (n < a->options.repeat) return FM_OK;
    qsort(run, (size_t)n, sizeof *run, by_throughput);
    *c = run[n / 2];
    return FM_OK;
}
