/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "llm/convert/convert.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mapped_file.h"
#include "base/number.h"
#include "base/str.h"
#include "json/read.h"
#include "llm/convert/convert_internal.h"
#include "llm/load/config_read.h"

static const char note_name[] = "convert.json", note_draft[] = "convert.json.part";
static const char config_name[] = "config.json";
static const char index_name[] = "model.safetensors.index.json";

enum { PATH_SIZE = 4400 };

static void path_of(char out[PATH_SIZE], const char *dir, const char *name)
{
    snprintf(out, PATH_SIZE, "%s/%s", dir, name);
}

static int is_weights(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && !strcmp(dot, ".safetensors");
}

/* --- small files ---------------------------------------------------------- */

static fm_status write_bytes(const char *dir, const char *name, const void *bytes, size_t n)
{
    char path[PATH_SIZE], draft[PATH_SIZE + 8];
    path_of(path, dir, name);
    snprintf(draft, sizeof draft, "%s.part", path);
    FILE *f      = fopen(draft, "wb");
    int   failed = !f || fwrite(bytes, 1, n, f) != n;
    if (f && (fflush(f) || fsync(fileno(f)))) failed = 1;
    if (f && fclose(f)) failed = 1;
    if (!failed && rename(draft, path) == 0) return FM_OK;
    const int why = errno;
    unlink(draft);
    return fm_fail(FM_E_IO, "%s cannot be written: %s", path, strerror(why));
}

static fm_status write_json(const char *dir, const char *name, const json_t *value)
{
    char *text = json_dumps(value, JSON_INDENT(2));
    if (!text) return fm_fail(FM_E_OOM, "%s", name);
    fm_str s = {0};
    fm_str_puts(&s, text);
    fm_str_puts(&s, "\n");
    const fm_status rc = write_bytes(dir, name, s.text, s.len);
    fm_str_fini(&s);
    free(text);
    return rc;
}

static fm_status copy_file(const fm_convert_request *r, const char *name)
{
    char           path[PATH_SIZE];
    fm_mapped_file f;
    path_of(path, r->model, name);
    FM_TRY(fm_mapped_file_open(&f, path));
    const fm_status rc = write_bytes(r->out, name, f.data, f.size);
    fm_mapped_file_close(&f);
    return rc;
}

/* --- names of a folder ---------------------------------------------------- */

typedef struct {
    char **name; /* sorted */
    int    n;
} folder;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void close_folder(folder *f)
{
    for (int i = 0; i < f->n; i++) free(f->name[i]);
    free(f->name);
}

/* Regular files, links followed; not hidden ones. */
static fm_status list_folder(folder *f, const char *dir)
{
    DIR *d = opendir(dir);
    *f     = (folder){0};
    if (!d) return fm_fail(FM_E_IO, "%s: %s", dir, strerror(errno));
    fm_status rc = FM_OK;
    for (struct dirent *e; rc == FM_OK && (e = readdir(d));) {
        char        path[PATH_SIZE];
        struct stat st;
        path_of(path, dir, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &st) != 0 || !S_ISREG(st.st_mode)) continue;
        char **more = realloc(f->name, (size_t)(f->n + 1) * sizeof *more);
        if (more) f->name = more;
        if (!more || !(f->name[f->n] = strdup(e->d_name)))
            rc = fm_fail(FM_E_OOM, "names of files");
        else
            f->n++;
    }
    closedir(d);
    if (f->n) qsort(f->name, (size_t)f->n, sizeof *f->name, by_name);
    return rc;
}

/* --- where it goes -------------------------------------------------------- */

static json_t *note_of(const fm_convert_request *r)
{
    char   *real = realpath(r->model, NULL);
    json_t *o =
        json_pack("{s:s, s:s, s:b}", "model", real ? real : r->model, "quantize",
                  r->type == FM_CONVERT_INT4 ? "int4" : "fp8", "experts_only", r->experts_only);
    free(real);
    return o;
}

static int same_as_note(const fm_convert_request *r, const json_t *mine)
{
    char    path[PATH_SIZE];
    json_t *theirs = NULL;
    path_of(path, r->out, note_name);
    const int same = fm_json_load(&theirs, path) == FM_OK && json_equal(theirs, (json_t *)mine);
    json_decref(theirs);
    return same;
}

/* Anything but the draft of a note, which a conversion killed in its first moment leaves. */
static int holds_others(const folder *f)
{
    int n = 0;
    for (int i = 0; i < f->n; i++) n += strcmp(f->name[i], note_draft) != 0;
    return n > 0;
}

/* An empty folder, a new one, or one in which the same conversion was begun. */
static fm_status claim_out(const fm_convert_request *r, const json_t *note)
{
    folder f;
    char   path[PATH_SIZE];
    if (mkdir(r->out, 0777) != 0 && errno != EEXIST)
        return fm_fail(FM_E_IO, "%s: %s", r->out, strerror(errno));
    path_of(path, r->out, note_name);
    if (access(path, F_OK) == 0)
        return same_as_note(r, note)
                   ? FM_OK
                   : fm_fail(FM_E_ARG, "%s holds the beginning of another conversion (see %s)",
                             r->out, path);
    FM_TRY(list_folder(&f, r->out));
    const int others = holds_others(&f);
    close_folder(&f);
    if (others) return fm_fail(FM_E_ARG, "%s is not empty; nothing there was changed", r->out);
    return write_json(r->out, note_name, note);
}

/* --- config.json ---------------------------------------------------------- */

static json_t *int4_config(int experts_only)
{
    json_t *weights =
        json_pack("{s:i, s:s, s:b, s:s, s:i, s:b}", "num_bits", 4, "type", "int", "symmetric", 1,
                  "strategy", "group", "group_size", FM_INT4_GROUP, "dynamic", 0);
    json_t *ignore = json_pack("[s,s]", "re:.*mlp\\.gate$", "re:.*eh_proj$");
    if (experts_only) {
        json_array_append_new(ignore, json_string("lm_head"));
        json_array_append_new(ignore, json_string("re:.*self_attn.*"));
        json_array_append_new(ignore, json_string("re:.*shared_experts.*"));
        json_array_append_new(ignore, json_string("re:.*mlp\\.(gate|up|down)_proj$"));
    }
    return json_pack("{s:s, s:s, s:s, s:{s:{s:[s], s:o}}, s:o}", "quant_method",
                     "compressed-tensors", "format", "pack-quantized", "quantization_status",
                     "compressed", "config_groups", "group_0", "targets", "Linear", "weights",
                     weights, "ignore", ignore);
}

static json_t *fp8_config(void)
{
    return json_pack("{s:s, s:s, s:s, s:[i,i]}", "quant_method", "fp8", "fmt", "e4m3",
                     "activation_scheme", "dynamic", "weight_block_size", FM_FP8_BLOCK,
                     FM_FP8_BLOCK);
}

static fm_status write_config(const fm_convert_request *r)
{
    char    path[PATH_SIZE];
    json_t *root = NULL;
    path_of(path, r->model, config_name);
    FM_TRY(fm_json_load(&root, path));
    json_object_set_new(root, "quantization_config",
                        r->type == FM_CONVERT_INT4 ? int4_config(r->experts_only) : fp8_config());
    const fm_status rc = write_json(r->out, config_name, root);
    json_decref(root);
    return rc;
}

/* --- the whole ------------------------------------------------------------ */

static fm_status write_index(const fm__conversion *c)
{
    json_t *o = json_pack("{s:{s:I}, s:O}", "metadata", "total_size", (json_int_t)c->report->bytes,
                          "weight_map", c->map);
    const fm_status rc = write_json(c->request->out, index_name, o);
    json_decref(o);
    return rc;
}

static fm_status convert_files(fm__conversion *c, const folder *f)
{
    int n_file = 0;
    for (int i = 0; i < f->n; i++) {
        if (!is_weights(f->name[i])) continue;
        FM_TRY(fm__convert_file(c, f->name[i]));
        n_file++;
    }
    if (!c->report->n_quantised)
        return fm_fail(FM_E_ARG, "%s: no layer to quantise there", c->request->model);
    if (n_file > 1) FM_TRY(write_index(c));
    for (int i = 0; i < f->n; i++) {
        const char *name = f->name[i];
        if (is_weights(name) || !strcmp(name, index_name) || !strcmp(name, config_name)) continue;
        FM_TRY(copy_file(c->request, name));
    }
    return FM_OK;
}

static double bytes_of(const folder *f, const char *dir)
{
    double sum = 0;
    for (int i = 0; i < f->n; i++) {
        char        path[PATH_SIZE];
        struct stat st;
        path_of(path, dir, f->name[i]);
        if (is_weights(f->name[i]) && stat(path, &st) == 0) sum += (double)st.st_size;
    }
    return sum;
}

static fm_status run(fm__conversion *c)
{
    const fm_convert_request *r = c->request;
    folder                    f;
    char                      path[PATH_SIZE];
    FM_TRY(list_folder(&f, r->model));
    c->bar       = fm_progress_begin("convert", bytes_of(&f, r->model));
    fm_status rc = convert_files(c, &f);
    if (rc == FM_OK) rc = write_config(r);
    close_folder(&f);
    FM_TRY(rc);
    path_of(path, r->out, note_name);
    if (unlink(path) != 0) return fm_fail(FM_E_IO, "%s: %s", path, strerror(errno));
    if (r->show_progress) fm_progress_end(&c->bar, NULL);
    return FM_OK;
}

/* Everything about the model that can be wrong is found before OUT is touched. */
static fm_status check_model(const fm_convert_request *r, fm_source **source)
{
    char            path[PATH_SIZE];
    fm_model_config config;
    path_of(path, r->model, config_name);
    FM_TRY(fm_config_read(&config, path, NULL));
    if (config.int4) return fm_fail(FM_E_ARG, "%s is INT4 already", r->model);
    if (config.fp8 && r->type == FM_CONVERT_FP8)
        return fm_fail(FM_E_ARG, "%s is FP8 already", r->model);
    return fm_source_open_files(source, r->model);
}

fm_status fm_convert(const fm_convert_request *r, fm_convert_report *report)
{
    fm_source *source = NULL;
    *report           = (fm_convert_report){0};
    if (strlen(r->model) > 4096 || strlen(r->out) > 4096)
        return fm_fail(FM_E_ARG, "a path of more than 4096 characters");
    FM_TRY(check_model(r, &source));
    fm__conversion c    = {.request = r, .source = source, .map = json_object(), .report = report};
    json_t        *note = note_of(r);
    fm_status      rc   = c.map && note ? claim_out(r, note) : fm_fail(FM_E_OOM, "conversion");
    if (rc == FM_OK) rc = run(&c);
    json_decref(note);
    json_decref(c.map);
    fm_source_close(source);
    return rc;
}
