/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "llm/load/safetensors.h"
#include "llm/load/source.h"
#include "load_support.h"

static fm_source *open_dir(const char *dir)
{
    fm_source *s = NULL;
    if (fm_source_open_files(&s, dir) != FM_OK) fail_msg("%s", fm_why());
    return s;
}

/* --- values --------------------------------------------------------------- */

/* Every tensor of a reference checkpoint, whole and in the given type. */
static void check_checkpoint(const char *name)
{
    char      dir[512], path[600];
    st_reader r;
    snprintf(dir, sizeof dir, FM_TEST_DATA "/%s", name);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    st_open(&r, path);
    fm_source *s = open_dir(dir);

    const char *key;
    json_t     *v;
    int         n = 0;
    json_object_foreach(r.header, key, v)
    {
        fm_tensor t;
        if (!strcmp(key, "__metadata__")) continue;
        assert_int_equal(fm_source_find(s, key, &t), FM_OK);
        assert_string_equal(fm_source_where(s, &t), path);
        float *f = malloc((size_t)(t.rows * t.cols) * sizeof *f);
        fm_source_read(s, &t, 0, t.rows, 0, t.cols, FM_F32, f);
        for (int64_t i = 0; i < t.rows * t.cols && t.dtype != FM_FP8; i++)
            if (f[i] != st_value(&r, key, i / t.cols, i % t.cols))
                fail_msg("%s: element %lld", key, (long long)i);
        free(f);
        n++;
    }
    assert_true(n > 100);
    fm_source_close(s);
    st_close(&r);
}

static void reference_checkpoints(void **state)
{
    (void)state;
    check_checkpoint("v3");
    check_checkpoint("v2lite");
    check_checkpoint("v3wide-fp8");
}

/* Each readable type, with values chosen for being awkward. */
static void every_type(void **state)
{
    (void)state;
    const float    f32[]  = {1.5f, -0.0f, 3e38f, 1e-40f, -7, 0.1f};
    const uint16_t bf16[] = {0x3fc0, 0x8000, 0x7f80, 0x0001, 0xc0e0, 0x3dcd};
    const uint16_t f16[]  = {0x3e00, 0x8000, 0x7bff, 0x0001, 0xc700, 0x2e66};
    const uint8_t fp8[] = {0x38, 0x80, 0x7e, 0x01, 0xc6, 0x08}, e8m0[] = {127, 0, 254, 1, 128, 100};
    const double  want[5][6] = {
         {1.5, 0, 3e38f, 1e-40f, -7, 0.1f},
         {1.5, 0, INFINITY, 0x1p-133, -7, 0.10009765625},
         {1.5, 0, 65504, 0x1p-24, -7, 0.0999755859375},
         {1, 0, 448, 0x1p-9, -3.5, 0x1p-6},
         {1, 0x1p-127, 0x1p127, 0x1p-126, 2, 0x1p-27},
    };
    static const char *const name[] = {"a", "b", "c", "d", "e"};

    temp_dir  d;
    st_writer w = {0};
    temp_dir_make(&d);
    st_add(&w, "e", "F8_E8M0", "[2, 3]", e8m0, sizeof e8m0);
    st_add(&w, "d", "F8_E4M3", "[2, 3]", fp8, sizeof fp8);
    st_add(&w, "x", "U8", "[1]", "?", 1); /* everything behind it is misaligned */
    st_add(&w, "c", "F16", "[2, 3]", f16, sizeof f16);
    st_add(&w, "b", "BF16", "[2, 3]", bf16, sizeof bf16);
    st_add(&w, "a", "F32", "[2, 3]", f32, sizeof f32);
    st_save(&w, &d, "model.safetensors");

    fm_source *s = open_dir(d.path);
    for (int i = 0; i < 5; i++) {
        fm_tensor t;
        float     got[6];
        assert_int_equal(fm_source_find(s, name[i], &t), FM_OK);
        assert_int_equal(t.rows, 2);
        assert_int_equal(t.cols, 3);
        fm_source_read(s, &t, 0, 2, 0, 3, FM_F32, got);
        for (int j = 0; j < 6; j++)
            if (got[j] != want[i][j]) fail_msg("%s[%d] is %g", name[i], j, (double)got[j]);
        const uintptr_t p = (uintptr_t)fm_source_data(s, &t);
        assert_int_equal(p % fm_dtype_bytes(t.dtype), 0);
    }
    fm_source_close(s);
    temp_dir_remove(&d);
}

static void save_packed(const temp_dir *d, const int64_t shape[2])
{
    uint8_t   packed[32]; /* two rows of 32 values: 0 ... 15, 0 ... 15 in the first */
    st_writer w = {0};
    for (int i = 0; i < 32; i++) packed[i] = i < 16 ? (uint8_t)(i % 8 * 0x22 + 0x10) : 0x88;
    st_add(&w, "x.weight_packed", "I32", "[2, 4]", packed, sizeof packed);
    st_add(&w, "x.weight_shape", "I64", "[2]", shape, 16);
    st_save(&w, d, "model.safetensors");
}

/* A weight that lies packed is found under its plain name, too. */
static void packed_weights_are_int4(void **state)
{
    (void)state;
    static const int64_t right[2] = {2, 32}, wrong[2] = {2, 30};
    temp_dir             d;
    fm_tensor            t;
    float                row[32];
    temp_dir_make(&d);
    save_packed(&d, right);
    fm_source *s = open_dir(d.path);
    assert_true(fm_source_has(s, "x.weight") && !fm_source_has(s, "y.weight"));
    assert_int_equal(fm_source_find(s, "x.weight", &t), FM_OK);
    assert_true(t.dtype == FM_INT4 && t.rows == 2 && t.cols == 32);
    fm_source_read(s, &t, 0, 1, 0, 32, FM_F32, row);
    for (int i = 0; i < 32; i++) assert_true(row[i] == (float)(i % 16 - 8));
    fm_source_read(s, &t, 1, 1, 4, 28, FM_F32, row);
    for (int i = 0; i < 28; i++) assert_true(row[i] == 0);
    fm_source_close(s);

    save_packed(&d, wrong);
    s = open_dir(d.path);
    assert_int_equal(fm_source_find(s, "x.weight", &t), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "[2, 30]"));
    fm_source_close(s);
    temp_dir_remove(&d);
}

static void parts_of_a_tensor(void **state)
{
    (void)state;
    uint16_t  v[5 * 7], got[6];
    temp_dir  d;
    st_writer w = {0};
    fm_tensor t;
    for (int i = 0; i < 35; i++) v[i] = (uint16_t)(i * 1000);
    temp_dir_make(&d);
    st_add(&w, "t", "BF16", "[5, 7]", v, sizeof v);
    st_add(&w, "line", "BF16", "[4]", v, 8);
    st_add(&w, "point", "BF16", "[]", v, 2);
    st_add(&w, "nothing", "BF16", "[0, 7]", v, 0);
    st_save(&w, &d, "model.safetensors");
    fm_source *s = open_dir(d.path);

    assert_int_equal(fm_source_find(s, "t", &t), FM_OK);
    fm_source_read(s, &t, 2, 3, 4, 2, FM_BF16, got);
    for (int i = 0; i < 6; i++) assert_int_equal(got[i], v[(2 + i / 2) * 7 + 4 + i % 2]);
    fm_source_prefetch(s, &t, 1, 3);

    assert_int_equal(fm_source_find(s, "line", &t), FM_OK);
    assert_int_equal(t.rows, 1);
    assert_int_equal(t.cols, 4);
    assert_int_equal(fm_source_find(s, "point", &t), FM_OK);
    assert_int_equal(t.rows * t.cols, 1);
    assert_int_equal(fm_source_find(s, "nothing", &t), FM_OK);
    assert_int_equal(t.rows, 0);
    assert_int_equal(fm_source_find(s, "absent", &t), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "absent"));
    assert_non_null(strstr(fm_why(), d.path));
    assert_false(fm_source_has(s, "absent"));
    fm_source_close(s);
    temp_dir_remove(&d);
}

/* Tensors that the model does not use may have any shape and type. */
static void unused_oddities_are_ignored(void **state)
{
    (void)state;
    temp_dir  d;
    st_writer w     = {0};
    char      z[64] = {0};
    fm_tensor t;
    temp_dir_make(&d);
    st_add(&w, "cube", "BF16", "[2, 2, 2]", z, 16);
    st_add(&w, "rotary_emb.inv_freq", "F64", "[4]", z, 32);
    st_add(&w, "fine", "BF16", "[2]", z, 4);
    st_save(&w, &d, "model.safetensors");
    fm_source *s = open_dir(d.path);
    assert_int_equal(fm_source_find(s, "fine", &t), FM_OK);
    assert_int_equal(fm_source_find(s, "cube", &t), FM_E_NOSUP);
    assert_non_null(strstr(fm_why(), "cube has 3 dimensions"));
    assert_int_equal(fm_source_find(s, "rotary_emb.inv_freq", &t), FM_E_NOSUP);
    assert_non_null(strstr(fm_why(), "F64"));
    fm_source_close(s);
    temp_dir_remove(&d);
}

/* --- many files ----------------------------------------------------------- */

static void two_files(const temp_dir *d)
{
    const uint16_t v[] = {1, 2, 3, 4};
    st_writer      w   = {0};
    st_add(&w, "a", "BF16", "[2]", v, 4);
    st_save(&w, d, "model-00001-of-00002.safetensors");
    st_add(&w, "b", "BF16", "[2]", v + 2, 4);
    st_save(&w, d, "model-00002-of-00002.safetensors");
}

static void expect_b(const fm_source *s)
{
    fm_tensor t;
    uint16_t  got[2];
    assert_int_equal(fm_source_find(s, "b", &t), FM_OK);
    assert_non_null(strstr(fm_source_where(s, &t), "model-00002"));
    fm_source_read(s, &t, 0, 1, 0, 2, FM_BF16, got);
    assert_int_equal(got[0], 3);
    assert_int_equal(got[1], 4);
}

static void files_with_and_without_index(void **state)
{
    (void)state;
    temp_dir d;
    temp_dir_make(&d);
    two_files(&d);
    temp_text(&d, "notes.txt", "not a tensor");
    fm_source *s = open_dir(d.path);
    expect_b(s);
    fm_source_close(s);

    temp_text(&d, "broken.safetensors", "the index does not name this one");
    temp_text(&d, "model.safetensors.index.json",
              "{\"metadata\": {\"total_size\": 8}, \"weight_map\": {"
              "\"a\": \"model-00001-of-00002.safetensors\","
              "\"b\": \"model-00002-of-00002.safetensors\"}}");
    s = open_dir(d.path);
    expect_b(s);
    fm_source_close(s);
    temp_dir_remove(&d);
}

static void index_faults(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        fm_status   want;
    } faults[] = {
        {"{\"weight_map\": {\"a\": \"gone.safetensors\"}}", "gone.safetensors", FM_E_IO},
        {"{\"weight_map\": {\"a\": \"../x.safetensors\"}}", "weight_map.a", FM_E_FORMAT},
        {"{\"weight_map\": {\"a\": 3}}", "weight_map.a", FM_E_FORMAT},
        {"{\"weight_map\": {\"a\": \"\"}}", "weight_map.a", FM_E_FORMAT},
        {"{\"weight_map\": {\"c\": \"model-00001-of-00002.safetensors\"}}", "weight_map.c",
         FM_E_FORMAT},
        {"{\"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\", "
         "\"a2\": \"model-00002-of-00002.safetensors\"}}",
         "weight_map.a2", FM_E_FORMAT},
        {"{\"weight_map\": {}}", "weight_map", FM_E_FORMAT},
        {"{\"weight_map\": []}", "weight_map", FM_E_FORMAT},
        {"{}", "weight_map", FM_E_FORMAT},
        {"[]", "weight_map", FM_E_FORMAT},
        {"{\"weight_map\"", "not valid JSON", FM_E_FORMAT},
    };
    temp_dir d;
    temp_dir_make(&d);
    two_files(&d);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fm_source *s = NULL;
        temp_text(&d, "model.safetensors.index.json", faults[i].text);
        assert_int_equal(fm_source_open_files(&s, d.path), faults[i].want);
        assert_null(s);
        if (!strstr(fm_why(), faults[i].says)) fail_msg("%s: %s", faults[i].text, fm_why());
        assert_non_null(strstr(fm_why(), d.path));
    }
    temp_dir_remove(&d);
}

static void directory_faults(void **state)
{
    (void)state;
    temp_dir   d;
    st_writer  w = {0};
    fm_source *s = NULL;
    temp_dir_make(&d);
    assert_int_equal(fm_source_open_files(&s, d.path), FM_E_IO);
    assert_non_null(strstr(fm_why(), "no *.safetensors"));

    two_files(&d);
    st_add(&w, "b", "BF16", "[1]", "xx", 2);
    st_save(&w, &d, "zzz.safetensors");
    assert_int_equal(fm_source_open_files(&s, d.path), FM_E_FORMAT);
    assert_non_null(strstr(fm_why(), "zzz.safetensors: tensor b is already in"));
    temp_dir_remove(&d);
    assert_int_equal(fm_source_open_files(&s, d.path), FM_E_IO);
}

/* --- broken headers ------------------------------------------------------- */

typedef struct {
    const char *header, *says; /* over 16 bytes of data */
} fault;

static const fault faults[] = {
    {"", "JSON"},
    {"{", "JSON"},
    {"[]", "expected an object"},
    {"null", "JSON"},
    {"{\"t\": 3}", "tensor t: expected an object"},
    {"{\"t\": {}}", "tensor t: dtype"},
    {"{\"t\": {\"dtype\": 7}}", "tensor t: dtype"},
    {"{\"t\": {\"dtype\": \"BF17\", \"shape\": [8], \"data_offsets\": [0, 16]}}",
     "tensor t: dtype BF17"},
    {"{\"t\": {\"dtype\": \"BF16\", \"data_offsets\": [0, 16]}}", "tensor t: shape"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": 8, \"data_offsets\": [0, 16]}}", "tensor t: shape"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [-8], \"data_offsets\": [0, 16]}}",
     "tensor t: shape[0]"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [2, 4.0], \"data_offsets\": [0, 16]}}",
     "tensor t: shape[1]"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [\"8\"], \"data_offsets\": [0, 16]}}",
     "tensor t: shape[0]"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [4611686018427387904, 8], \"data_offsets\": [0, "
     "16]}}",
     "tensor t: shape[1]"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [4294967296, 2147483648], \"data_offsets\": [0, "
     "0]}}",
     "tensor t: data_offsets"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], "
     "\"data_offsets\": [0, 2]}}",
     "tensor t: shape"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [8]}}", "tensor t: data_offsets"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [8], \"data_offsets\": [0]}}",
     "tensor t: data_offsets"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [8], \"data_offsets\": [0, 16, 32]}}",
     "tensor t: data_offsets"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [8], \"data_offsets\": [16, 0]}}",
     "tensor t: data_offsets"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [8], \"data_offsets\": [-16, 0]}}",
     "tensor t: data_offsets"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [7], \"data_offsets\": [0, 16]}}",
     "span 16 bytes, its shape and dtype need 14"},
    {"{\"t\": {\"dtype\": \"F32\", \"shape\": [8], \"data_offsets\": [0, 16]}}",
     "span 16 bytes, its shape and dtype need 32"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [9], \"data_offsets\": [0, 18]}}",
     "tensor t ends at byte"},
    {"{\"t\": {\"dtype\": \"U8\", \"shape\": [9223372036854775807], "
     "\"data_offsets\": [0, 9223372036854775807]}}",
     "tensor t ends at byte"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [4], \"data_offsets\": [0, 8]}, "
     "\"u\": {\"dtype\": \"BF16\", \"shape\": [4], \"data_offsets\": [6, 14]}}",
     "tensors t and u overlap"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [8], \"data_offsets\": [0, 16]}, "
     "\"u\": {\"dtype\": \"BF16\", \"shape\": [1], \"data_offsets\": [2, 4]}}",
     "tensors t and u overlap"},
    {"{\"t\": {\"dtype\": \"BF16\", \"shape\": [4], \"data_offsets\": [0, 8]}, "
     "\"t\": {\"dtype\": \"BF16\", \"shape\": [4], \"data_offsets\": [8, 16]}}",
     "duplicate"},
    {"{\"t\\u0000\": {\"dtype\": \"BF16\", \"shape\": [8], \"data_offsets\": [0, 16]}}", "JSON"},
};

static void expect_refusal(const temp_dir *d, const char *says)
{
    fm_source      *s  = NULL;
    const fm_status rc = fm_source_open_files(&s, d->path);
    if (rc != FM_E_FORMAT) fail_msg("%s: status %d", says, rc);
    if (!strstr(fm_why(), says)) fail_msg("wanted \"%s\", got: %s", says, fm_why());
    assert_non_null(strstr(fm_why(), "model.safetensors"));
}

static void broken_headers(void **state)
{
    (void)state;
    static const char data[16];
    temp_dir          d;
    temp_dir_make(&d);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        st_raw(&d, "model.safetensors", faults[i].header, data, sizeof data);
        expect_refusal(&d, faults[i].says);
    }
    temp_dir_remove(&d);
}

static void lengths_that_lie(void **state)
{
    (void)state;
    static const uint64_t lie[] = {3,         100, 1 << 20, 200 << 20, UINT64_MAX, UINT64_MAX - 7,
                                   1ull << 63};
    temp_dir              d;
    temp_dir_make(&d);
    temp_file(&d, "model.safetensors", "", 0);
    expect_refusal(&d, "header length");
    temp_file(&d, "model.safetensors", "\2\0\0\0\0\0\0", 7);
    expect_refusal(&d, "header length");
    for (size_t i = 0; i < sizeof lie / sizeof *lie; i++) {
        char file[10];
        memcpy(file, &lie[i], 8);
        memcpy(file + 8, "{}", 2);
        temp_file(&d, "model.safetensors", file, sizeof file);
        expect_refusal(&d, "header length");
    }
    temp_dir_remove(&d);
}

/* A checkpoint cut at any length is refused or, if no tensor is lost, read. */
static void cut_anywhere(void **state)
{
    (void)state;
    static const char header[] =
        "{\"t\": {\"dtype\": \"U8\", \"shape\": [4], \"data_offsets\": [0, 4]}}";
    char           file[128];
    const uint64_t n     = sizeof header - 1;
    const size_t   whole = 8 + sizeof header - 1 + 4;
    memcpy(file, &n, 8);
    memcpy(file + 8, header, n);
    memcpy(file + 8 + n, "data", 4);
    for (size_t size = 0; size <= whole; size++) {
        fm_safetensors_file *f    = NULL;
        char                *copy = malloc(size + 1); /* so that a sanitizer sees the end */
        memcpy(copy, file, size);
        const fm_status rc = fm_safetensors_parse(&f, copy, size, "cut.safetensors");
        assert_int_equal(rc, size == whole ? FM_OK : FM_E_FORMAT);
        if (rc == FM_OK) assert_memory_equal(f->entry[0].data, "data", 4);
        fm_safetensors_close(f);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_checkpoints),
        cmocka_unit_test(every_type),
        cmocka_unit_test(packed_weights_are_int4),
        cmocka_unit_test(parts_of_a_tensor),
        cmocka_unit_test(unused_oddities_are_ignored),
        cmocka_unit_test(files_with_and_without_index),
        cmocka_unit_test(index_faults),
        cmocka_unit_test(directory_faults),
        cmocka_unit_test(broken_headers),
        cmocka_unit_test(lengths_that_lie),
        cmocka_unit_test(cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
