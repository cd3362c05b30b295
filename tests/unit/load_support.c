/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "load_support.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void temp_dir_make(temp_dir *d)
{
    snprintf(d->path, sizeof d->path, "/tmp/fathom-load-XXXXXX");
    assert_non_null(mkdtemp(d->path));
}

static int drop(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void temp_dir_remove(const temp_dir *d)
{
    assert_int_equal(nftw(d->path, drop, 8, FTW_DEPTH | FTW_PHYS), 0);
}

void temp_file(const temp_dir *d, const char *name, const void *bytes, size_t n)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", d->path, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    if (n) assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

void temp_text(const temp_dir *d, const char *name, const char *text)
{
    temp_file(d, name, text, strlen(text));
}

void st_add(st_writer *w, const char *name, const char *dtype, const char *shape, const void *bytes,
            size_t n)
{
    fm_str_printf(&w->header,
                  "%s\"%s\": {\"dtype\": \"%s\", \"shape\": %s, \"data_offsets\": [%zu, %zu]}",
                  w->header.len ? ", " : "{", name, dtype, shape, w->data.len, w->data.len + n);
    fm_str_add(&w->data, bytes, n);
}

void st_raw(const temp_dir *d, const char *file, const char *header, const void *data, size_t n)
{
    fm_str         all = {0};
    const uint64_t len = strlen(header);
    fm_str_add(&all, (const char *)&len, sizeof len);
    fm_str_puts(&all, header);
    fm_str_add(&all, data, n);
    temp_file(d, file, all.text, all.len);
    fm_str_fini(&all);
}

void st_save(st_writer *w, const temp_dir *d, const char *file)
{
    fm_str_puts(&w->header, w->header.len ? "}" : "{}");
    st_raw(d, file, w->header.text, w->data.text, w->data.len);
    fm_str_fini(&w->header);
    fm_str_fini(&w->data);
}

void st_open(st_reader *r, const char *path)
{
    uint64_t n;
    FILE    *f = fopen(path, "rb");
    *r         = (st_reader){0};
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    r->size  = (size_t)ftell(f);
    r->bytes = malloc(r->size);
    rewind(f);
    assert_int_equal(fread(r->bytes, 1, r->size, f), r->size);
    fclose(f);
    memcpy(&n, r->bytes, sizeof n);
    r->header  = json_loadb(r->bytes + 8, n, 0, NULL);
    r->data_at = 8 + n;
    assert_non_null(r->header);
}

void st_close(st_reader *r)
{
    json_decref(r->header);
    free(r->bytes);
}

static int64_t nth(const json_t *o, const char *key, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(o, key), i));
}

st_tensor st_find(const st_reader *r, const char *name)
{
    const json_t *o = json_object_get(r->header, name);
    if (!o) fail_msg("the test looked for %s", name);
    st_tensor t     = {.data = r->bytes + r->data_at + nth(o, "data_offsets", 0)};
    char     *shape = json_dumps(json_object_get(o, "shape"), JSON_COMPACT);
    t.bytes         = (size_t)(nth(o, "data_offsets", 1) - nth(o, "data_offsets", 0));
    snprintf(t.dtype, sizeof t.dtype, "%s", json_string_value(json_object_get(o, "dtype")));
    snprintf(t.shape, sizeof t.shape, "%s", shape);
    free(shape);
    return t;
}

static fm_dtype type_of(const char *name)
{
    static const char *const names[] = {
        [FM_F32] = "F32",     [FM_BF16] = "BF16", [FM_F16] = "F16",
        [FM_FP8] = "F8_E4M3", [FM_INT4] = "I32",  [FM_E8M0] = "F8_E8M0"};
    int i = 0;
    while (strcmp(names[i], name) != 0) assert_true(++i <= FM_E8M0);
    return (fm_dtype)i;
}

static void look_up(struct st_recent *x, const st_reader *r, const char *name)
{
    const st_tensor t     = st_find(r, name);
    const json_t   *shape = json_object_get(json_object_get(r->header, name), "shape");
    snprintf(x->name, sizeof x->name, "%s", name);
    x->dtype = type_of(t.dtype);
    x->data  = t.data;
    x->cols  = json_integer_value(json_array_get(shape, json_array_size(shape) - 1));
}

static float element(const struct st_recent *x, int64_t row, int64_t col)
{
    const int64_t i = row * x->cols + col;
    uint16_t      half;
    float         f;
    switch (x->dtype) {
    case FM_F32: return memcpy(&f, x->data + 4 * i, 4), f;
    case FM_BF16: return memcpy(&half, x->data + 2 * i, 2), fm_f32_of_bf16(half);
    case FM_F16: return memcpy(&half, x->data + 2 * i, 2), fm_f32_of_f16(half);
    case FM_FP8: return fm_f32_of_fp8((uint8_t)x->data[i]);
    case FM_INT4:
        return (float)(((uint8_t)x->data[4 * (row * x->cols) + col / 2] >> col % 2 * 4 & 15) - 8);
    case FM_E8M0: return fm_f32_of_e8m0((uint8_t)x->data[i]);
    }
    return 0;
}

/* "X.weight", or "X.weight_packed" where that is what the file has. */
static void look_up_weight(st_reader *r, const char *name)
{
    char packed[176], scale[176];
    snprintf(packed, sizeof packed, "%s_packed", name);
    const int int4 = json_object_get(r->header, packed) != NULL;
    look_up(&r->recent, r, int4 ? packed : name);
    snprintf(r->recent.name, sizeof r->recent.name, "%s", name);
    snprintf(scale, sizeof scale, "%s_scale%s", name, int4 ? "" : "_inv");
    if (int4 || r->recent.dtype == FM_FP8) look_up(&r->scale, r, scale);
}

float st_value(st_reader *r, const char *name, int64_t row, int64_t col)
{
    if (strcmp(r->recent.name, name) != 0) look_up_weight(r, name);
    const float v = element(&r->recent, row, col);
    if (r->recent.dtype == FM_INT4) return v * element(&r->scale, row, col / 32);
    return r->recent.dtype == FM_FP8 ? v * element(&r->scale, row / 128, col / 128) : v;
}
