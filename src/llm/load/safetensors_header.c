/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/load/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "base/mapped_file.h"
#include "json/read.h"

enum { LENGTH_BYTES = 8, MAX_HEADER = 100 << 20, MAX_DIMS = 16 };

/* clang-format off */
static const struct {
    const char *name;
    int         bytes, readable;
    fm_dtype    dtype;
} types[] = {
    {"BF16",    2, 1, FM_BF16}, {"F16",     2, 1, FM_F16},  {"F32", 4, 1, FM_F32},
    {"F8_E4M3", 1, 1, FM_FP8},  {"F8_E8M0", 1, 1, FM_E8M0}, {"F8_E5M2", 1, 0, 0},
    {"F64", 8, 0, 0}, {"I64", 8, 0, 0}, {"U64", 8, 0, 0}, {"C64",  8, 0, 0},
    {"I32", 4, 0, 0}, {"U32", 4, 0, 0}, {"I16", 2, 0, 0}, {"U16",  2, 0, 0},
    {"I8",  1, 0, 0}, {"U8",  1, 0, 0}, {"BOOL", 1, 0, 0},
};
/* clang-format on */

/* What a complaint needs to name. */
typedef struct {
    const char *file, *tensor;
    uint64_t    data_at, data_bytes; /* where data begins in the file, and how much there is */
} context;

static fm_status read_type(fm_safetensors_entry *e, int *bytes, const json_t *o, const context *x)
{
    const char *name = json_string_value(json_object_get(o, "dtype"));
    if (!name)
        return fm_fail(FM_E_FORMAT, "%s: tensor %s: dtype: expected a string, found %s", x->file,
                       x->tensor, fm_json_kind(json_object_get(o, "dtype")));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i].name)) {
            e->dtype_name = name;
            e->dtype      = types[i].dtype;
            e->readable   = types[i].readable;
            *bytes        = types[i].bytes;
            return FM_OK;
        }
    return fm_fail(FM_E_FORMAT, "%s: tensor %s: dtype %.32s is unknown", x->file, x->tensor, name);
}

/* *count becomes the product of the dimensions; 1 for a scalar. */
static fm_status read_dims(fm_safetensors_entry *e, uint64_t *count, const json_t *o,
                           const context *x)
{
    const json_t *shape         = json_object_get(o, "shape");
    const size_t  n             = json_array_size(shape);
    int64_t       dim[MAX_DIMS] = {1, 1};

    if (!json_is_array(shape))
        return fm_fail(FM_E_FORMAT, "%s: tensor %s: shape: expected an array, found %s", x->file,
                       x->tensor, fm_json_kind(shape));
    if (n > MAX_DIMS)
        return fm_fail(FM_E_FORMAT, "%s: tensor %s: shape has %zu dimensions", x->file, x->tensor,
                       n);
    *count = 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(shape, i);
        dim[i]          = json_integer_value(v);
        if (!json_is_integer(v) || dim[i] < 0 ||
            __builtin_mul_overflow(*count, (uint64_t)dim[i], count))
            return fm_fail(FM_E_FORMAT, "%s: tensor %s: shape[%zu] is not a possible size", x->file,
                           x->tensor, i);
    }
    e->n_dim = (int)n;
    e->rows  = n == 2 ? dim[0] : 1;
    e->cols  = n == 2 ? dim[1] : dim[0];
    return FM_OK;
}

static fm_status read_offsets(fm_safetensors_entry *e, const json_t *o, const context *x)
{
    const json_t *pair = json_object_get(o, "data_offsets");
    const json_t *b = json_array_get(pair, 0), *n = json_array_get(pair, 1);

    if (json_array_size(pair) != 2 || !json_is_integer(b) || !json_is_integer(n) ||
        json_integer_value(b) < 0 || json_integer_value(n) < json_integer_value(b))
        return fm_fail(FM_E_FORMAT, "%s: tensor %s: data_offsets: expected [begin, end], rising",
                       x->file, x->tensor);
    e->begin = (uint64_t)json_integer_value(b);
    e->end   = (uint64_t)json_integer_value(n);
    if (e->end > x->data_bytes)
        return fm_fail(FM_E_FORMAT, "%s: tensor %s ends at byte %llu, the file has %llu", x->file,
                       x->tensor, (unsigned long long)(x->data_at + e->end),
                       (unsigned long long)(x->data_at + x->data_bytes));
    return FM_OK;
}

static fm_status read_entry(fm_safetensors_entry *e, const json_t *o, const context *x)
{
    uint64_t count = 0, need;
    int      bytes = 0;

    if (!json_is_object(o))
        return fm_fail(FM_E_FORMAT, "%s: tensor %s: expected an object, found %s", x->file,
                       x->tensor, fm_json_kind(o));
    e->name = x->tensor;
    FM_TRY(read_type(e, &bytes, o, x));
    FM_TRY(read_dims(e, &count, o, x));
    FM_TRY(read_offsets(e, o, x));
    if (__builtin_mul_overflow(count, (uint64_t)bytes, &need) || need != e->end - e->begin)
        return fm_fail(FM_E_FORMAT,
                       "%s: tensor %s: data_offsets span %llu bytes, its shape and dtype need %llu",
                       x->file, x->tensor, (unsigned long long)(e->end - e->begin),
                       (unsigned long long)need);
    return FM_OK;
}

static int by_offset(const void *a, const void *b)
{
    const fm_safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static fm_status check_overlap(const fm_safetensors_file *f)
{
    for (int32_t i = 1; i < f->n_entry; i++)
        if (f->entry[i].begin < f->entry[i - 1].end)
            return fm_fail(FM_E_FORMAT, "%s: tensors %s and %s overlap", f->path,
                           f->entry[i - 1].name, f->entry[i].name);
    return FM_OK;
}

static fm_status read_entries(fm_safetensors_file *f, const json_t *root, size_t data_at)
{
    context     x = {f->path, NULL, data_at, f->map.size - data_at};
    const char *name;
    json_t     *v;

    if (!json_is_object(root))
        return fm_fail(FM_E_FORMAT, "%s: header: expected an object, found %s", f->path,
                       fm_json_kind(root));
    f->entry = calloc(json_object_size(root) + 1, sizeof *f->entry);
    if (!f->entry) return fm_fail(FM_E_OOM, "%s: no memory for its header", f->path);
    json_object_foreach((json_t *)root, name, v)
    {
        if (!strcmp(name, "__metadata__")) continue;
        fm_safetensors_entry *e = &f->entry[f->n_entry];
        x.tensor                = name;
        FM_TRY(read_entry(e, v, &x));
        e->data = f->map.data + data_at + e->begin;
        f->n_entry++;
    }
    qsort(f->entry, (size_t)f->n_entry, sizeof *f->entry, by_offset);
    return check_overlap(f);
}

static fm_status read_header(fm_safetensors_file *f)
{
    uint64_t n = 0;
    FM_TRY(fm_not_lfs_pointer(f->map.data, f->map.size, f->path));
    if (f->map.size < LENGTH_BYTES)
        return fm_fail(FM_E_FORMAT, "%s: header length: the file has only %zu bytes", f->path,
                       f->map.size);
    for (int i = 0; i < LENGTH_BYTES; i++) n |= (uint64_t)(unsigned char)f->map.data[i] << (8 * i);
    if (n > MAX_HEADER || n > f->map.size - LENGTH_BYTES)
        return fm_fail(FM_E_FORMAT, "%s: header length is %llu, the file has %zu bytes", f->path,
                       (unsigned long long)n, f->map.size);
    json_t *root = NULL;
    FM_TRY(fm_json_parse(&root, f->map.data + LENGTH_BYTES, n, f->path));
    f->header = root;
    return read_entries(f, root, LENGTH_BYTES + n);
}

static fm_safetensors_file *new_file(const char *path)
{
    fm_safetensors_file *f = calloc(1, sizeof *f);
    if (f && !(f->path = strdup(path))) {
        free(f);
        f = NULL;
    }
    if (!f) fm_fail(FM_E_OOM, "no memory to open %s", path);
    return f;
}

fm_status fm_safetensors_open(fm_safetensors_file **out, const char *path)
{
    fm_safetensors_file *f = new_file(path);
    if (!f) return FM_E_OOM;
    fm_status rc = fm_mapped_file_open(&f->map, path);
    if (rc == FM_OK) rc = read_header(f);
    if (rc == FM_OK)
        *out = f;
    else
        fm_safetensors_close(f);
    return rc;
}

fm_status fm_safetensors_parse(fm_safetensors_file **out, const void *bytes, size_t size,
                               const char *name)
{
    fm_safetensors_file *f = new_file(name);
    if (!f) return FM_E_OOM;
    f->map             = (fm_mapped_file){bytes, size};
    f->borrowed        = 1;
    const fm_status rc = read_header(f);
    if (rc == FM_OK)
        *out = f;
    else
        fm_safetensors_close(f);
    return rc;
}

void fm_safetensors_close(fm_safetensors_file *f)
{
    if (!f) return;
    if (!f->borrowed) fm_mapped_file_close(&f->map);
    json_decref(f->header);
    free(f->entry);
    free(f->path);
    free(f);
}
