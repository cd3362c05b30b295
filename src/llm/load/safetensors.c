/* SPDX-License-Identifier: Apache-2.0 */
/* A directory of safetensors files: which files there are, their mappings, and
 * one table of tensors over all of them.  One file's header is read in
 * safetensors_header.c. */
#define _POSIX_C_SOURCE 200809L
#include "llm/load/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/read.h"
#include "llm/load/source_internal.h"

typedef struct {
    fm_source             source; /* first */
    char                 *dir;
    fm_safetensors_file **file; /* [n_file], ordered by name */
    int                   n_file, cap_file;
    struct place {
        int32_t file, entry;
    } * tensor; /* [names.n] */
    int32_t cap_tensor;
} files;

static int has_suffix(const char *name, const char *suffix)
{
    const size_t n = strlen(name), k = strlen(suffix);
    return n > k && !strcmp(name + n - k, suffix);
}

static const fm_safetensors_entry *entry_of(const fm_source *s, int32_t i)
{
    const files *f = (const files *)s;
    return &f->file[f->tensor[i].file]->entry[f->tensor[i].entry];
}

static const char *where(const fm_source *s, int32_t i)
{
    const files *f = (const files *)s;
    return f->file[f->tensor[i].file]->path;
}

/* Eight INT4 in an I32, of a row side by side. */
static int is_packed(const fm_safetensors_entry *e)
{
    return has_suffix(e->name, ".weight_packed") && !strcmp(e->dtype_name, "I32");
}

/* The two numbers of X.weight_shape, or 0. */
static int read_shape(const fm_safetensors_entry *e, int64_t shape[2])
{
    const size_t each = !strcmp(e->dtype_name, "I64") ? 8 : !strcmp(e->dtype_name, "I32") ? 4 : 0;
    if (!each || e->end - e->begin != 2 * each) return 0;
    for (int d = 0; d < 2; d++) {
        int32_t narrow;
        if (each == 8)
            memcpy(&shape[d], (const char *)e->data + d * 8, 8);
        else
            memcpy(&narrow, (const char *)e->data + d * 4, 4), shape[d] = narrow;
    }
    return 1;
}

static fm_status describe_packed(const fm_source *s, int32_t i, fm_tensor *out)
{
    const fm_safetensors_entry *e = entry_of(s, i);
    char                        name[200];
    int64_t                     shape[2] = {e->rows, e->cols * 8};
    const int     n  = snprintf(name, sizeof name, "%.*sshape", (int)strlen(e->name) - 6, e->name);
    const int32_t at = n < (int)sizeof name ? fm_name_table_find(&s->names, name) : -1;
    *out             = (fm_tensor){.name  = out->name,
                                   .index = out->index,
                                   .dtype = FM_INT4,
                                   .rows  = e->rows,
                                   .cols  = e->cols * 8};
    if (at >= 0 && !read_shape(entry_of(s, at), shape))
        return fm_fail(FM_E_FORMAT, "%s: tensor %s: expected two integers", where(s, at), name);
    if (shape[0] != out->rows || shape[1] != out->cols || out->cols % FM_INT4_GROUP)
        return fm_fail(
            FM_E_FORMAT,
            "%s: tensor %s holds [%lld, %lld] values, its shape is [%lld, %lld]; columns "
            "must be a multiple of %d",
            where(s, i), e->name, (long long)out->rows, (long long)out->cols, (long long)shape[0],
            (long long)shape[1], FM_INT4_GROUP);
    return FM_OK;
}

static fm_status describe(const fm_source *s, int32_t i, fm_tensor *out)
{
    const fm_safetensors_entry *e = entry_of(s, i);
    if (e->n_dim > 2)
        return fm_fail(FM_E_NOSUP, "%s: tensor %s has %d dimensions, at most 2 are supported",
                       where(s, i), out->name, e->n_dim);
    if (is_packed(e)) return describe_packed(s, i, out);
    if (!e->readable)
        return fm_fail(FM_E_NOSUP, "%s: tensor %s has dtype %s, which is not supported",
                       where(s, i), out->name, e->dtype_name);
    out->dtype = e->dtype;
    out->rows  = e->rows;
    out->cols  = e->cols;
    return FM_OK;
}

static const void *data(const fm_source *s, const fm_tensor *t)
{
    return entry_of(s, (int32_t)t->index)->data;
}

static void read_row(const fm_source *s, const fm_tensor *t, int64_t row, int64_t col0,
                     int64_t n_col, void *dst)
{
    const char *from = data(s, t);
    memcpy(dst, from + fm_dtype_row_bytes(t->dtype, (size_t)(row * t->cols + col0)),
           fm_dtype_row_bytes(t->dtype, (size_t)n_col));
}

static void close_files(fm_source *s)
{
    files *f = (files *)s;
    for (int i = 0; i < f->n_file; i++) fm_safetensors_close(f->file[i]);
    fm_name_table_fini(&s->names);
    free(f->file);
    free(f->tensor);
    free(f->dir);
    free(f);
}

static const fm__source_kind kind = {describe, read_row, data, where, close_files};

/* --- filling the table ---------------------------------------------------- */

static fm_status grow(void **array, int need, int *cap, size_t size)
{
    if (need <= *cap) return FM_OK;
    const int more = need * 2 + 16;
    void     *p    = realloc(*array, (size_t)more * size);
    if (!p) return fm_fail(FM_E_OOM, "no memory for the table of tensors");
    *array = p;
    *cap   = more;
    return FM_OK;
}

static fm_status add_tensors(files *f, int i_file)
{
    const fm_safetensors_file *file = f->file[i_file];
    for (int32_t e = 0; e < file->n_entry; e++) {
        const char *name = file->entry[e].name;
        int32_t     i;
        int         is_new;
        FM_TRY(grow((void **)&f->tensor, f->source.names.n + 1, &f->cap_tensor, sizeof *f->tensor));
        FM_TRY(fm_name_table_add(&f->source.names, name, &i, &is_new));
        if (!is_new)
            return fm_fail(FM_E_FORMAT, "%s: tensor %s is already in %s", file->path, name,
                           where(&f->source, i));
        f->tensor[i] = (struct place){i_file, e};
    }
    return FM_OK;
}

static fm_status add_file(files *f, const char *name)
{
    const size_t size = strlen(f->dir) + strlen(name) + 2;
    char        *path = malloc(size);
    fm_status    rc   = path ? FM_OK : fm_fail(FM_E_OOM, "no memory for a path");

    if (rc == FM_OK) rc = grow((void **)&f->file, f->n_file + 1, &f->cap_file, sizeof *f->file);
    if (rc == FM_OK) {
        snprintf(path, size, "%s/%s", f->dir, name);
        rc = fm_safetensors_open(&f->file[f->n_file], path);
    }
    free(path);
    if (rc != FM_OK) return rc;
    return add_tensors(f, f->n_file++);
}

/* --- which files ---------------------------------------------------------- */

static const char index_name[] = "model.safetensors.index.json";

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted, so that files and messages do not depend on the directory's order. */
static fm_status add_sorted(files *f, const char **name, int n)
{
    fm_status rc = FM_OK;
    qsort(name, (size_t)n, sizeof *name, by_name);
    for (int i = 0; rc == FM_OK && i < n; i++) rc = add_file(f, name[i]);
    return rc;
}

static fm_status list_directory(char ***out, int *n, const char *dir)
{
    char **name = NULL;
    int    cap  = 0;
    DIR   *d    = opendir(dir);
    if (!d) return fm_fail(FM_E_IO, "%s: %s", dir, strerror(errno));

    fm_status rc = FM_OK;
    *n           = 0;
    for (struct dirent *e; rc == FM_OK && (e = readdir(d));) {
        if (!has_suffix(e->d_name, ".safetensors")) continue;
        rc = grow((void **)&name, *n + 1, &cap, sizeof *name);
        if (rc == FM_OK && !(name[*n] = strdup(e->d_name)))
            rc = fm_fail(FM_E_OOM, "no memory for a file name");
        if (rc == FM_OK) ++*n;
    }
    closedir(d);
    *out = name;
    return rc;
}

static fm_status add_directory(files *f)
{
    char    **name = NULL;
    int       n    = 0;
    fm_status rc   = list_directory(&name, &n, f->dir);
    if (rc == FM_OK && n == 0) rc = fm_fail(FM_E_IO, "%s: no *.safetensors file there", f->dir);
    if (rc == FM_OK) rc = add_sorted(f, (const char **)name, n);
    for (int i = 0; i < n; i++) free(name[i]);
    free(name);
    return rc;
}

/* The files a weight_map names, each once; `seen` keeps their names. */
static fm_status collect_indexed(fm_name_table *seen, const json_t *map, const char *path)
{
    const char *tensor;
    json_t     *v;
    json_object_foreach((json_t *)map, tensor, v)
    {
        const char *file = json_string_value(v);
        int32_t     i;
        int         is_new;
        if (!file || !*file || strchr(file, '/') || strlen(file) != json_string_length(v))
            return fm_fail(FM_E_FORMAT, "%s: weight_map.%s: expected the name of a file beside it",
                           path, tensor);
        FM_TRY(fm_name_table_add(seen, file, &i, &is_new));
    }
    if (!seen->n) return fm_fail(FM_E_FORMAT, "%s: weight_map is empty", path);
    return FM_OK;
}

static fm_status check_indexed(const files *f, const json_t *map, const char *path)
{
    const char *tensor;
    json_t     *v;
    json_object_foreach((json_t *)map, tensor, v)
    {
        const int32_t i = fm_name_table_find(&f->source.names, tensor);
        if (i < 0 || strcmp(strrchr(where(&f->source, i), '/') + 1, json_string_value(v)) != 0)
            return fm_fail(FM_E_FORMAT, "%s: weight_map.%s names %s, which does not hold it", path,
                           tensor, json_string_value(v));
    }
    return FM_OK;
}

static fm_status add_from_map(files *f, const json_t *map, const char *path)
{
    fm_name_table seen = {0};
    fm_status     rc   = collect_indexed(&seen, map, path);
    const char  **name = rc == FM_OK ? malloc((size_t)seen.n * sizeof *name) : NULL;
    if (rc == FM_OK && !name) rc = fm_fail(FM_E_OOM, "no memory for the list of files");
    for (int32_t i = 0; name && i < seen.n; i++) name[i] = fm_name_table_name(&seen, i);
    if (rc == FM_OK) rc = add_sorted(f, name, seen.n);
    if (rc == FM_OK) rc = check_indexed(f, map, path);
    free(name);
    fm_name_table_fini(&seen);
    return rc;
}

static fm_status add_indexed(files *f, const char *path)
{
    json_t *root = NULL;
    FM_TRY(fm_json_load(&root, path));
    const json_t   *map = json_object_get(root, "weight_map");
    const fm_status rc  = json_is_object(map)
                              ? add_from_map(f, map, path)
                              : fm_fail(FM_E_FORMAT, "%s: weight_map: expected an object, found %s",
                                        path, fm_json_kind(map));
    json_decref(root);
    return rc;
}

static fm_status add_all(files *f)
{
    const size_t size = strlen(f->dir) + sizeof index_name + 1;
    char        *path = malloc(size);
    if (!path) return fm_fail(FM_E_OOM, "no memory for a path");
    snprintf(path, size, "%s/%s", f->dir, index_name);
    const fm_status rc = access(path, F_OK) == 0 ? add_indexed(f, path) : add_directory(f);
    free(path);
    return rc;
}

fm_status fm_source_open_files(fm_source **out, const char *dir)
{
    files *f = calloc(1, sizeof *f);
    if (!f) return fm_fail(FM_E_OOM, "no memory to open %s", dir);
    f->source.kind = &kind;

    fm_status rc = (f->dir = strdup(dir)) ? FM_OK : fm_fail(FM_E_OOM, "no memory to open %s", dir);
    f->source.place = f->dir;
    if (rc == FM_OK) rc = add_all(f);
    if (rc == FM_OK) {
        *out = &f->source;
        f    = NULL;
    }
    if (f) close_files(&f->source);
    return rc;
}
