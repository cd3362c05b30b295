/* SPDX-License-Identifier: Apache-2.0 */
/* One safetensors file: what becomes of each tensor is decided first, which gives the header;
 * then the values follow in that order. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "llm/convert/convert_internal.h"
#include "llm/convert/quantise.h"
#include "llm/load/safetensors.h"

enum { ROWS = FM_FP8_BLOCK, HEADER_ALIGN = 64 };

typedef enum { DROP, COPY, TO_BF16, TO_INT4, TO_FP8 } action;

/* --- what becomes of a tensor --------------------------------------------- */

static int ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), k = strlen(end);
    return n > k && !strcmp(s + n - k, end);
}

static int is_linear(const char *name)
{
    static const char *const layer[] = {
        ".q_proj.weight",  ".q_a_proj.weight",  ".q_b_proj.weight",
        ".o_proj.weight",  ".kv_b_proj.weight", ".kv_a_proj_with_mqa.weight",
        ".up_proj.weight", ".gate_proj.weight", ".down_proj.weight",
    };
    for (size_t i = 0; i < sizeof layer / sizeof *layer; i++)
        if (ends_with(name, layer[i])) return 1;
    return 0;
}

/* The head is among all linear layers in INT4; FP8 checkpoints have it in BF16. */
static int is_wanted(const fm_convert_request *r, const char *name)
{
    if (r->experts_only) return is_linear(name) && strstr(name, ".mlp.experts.");
    return is_linear(name) || (r->type == FM_CONVERT_INT4 && !strcmp(name, "lm_head.weight"));
}

/* A scale goes where its weight goes, whichever file that is in. */
static int is_scale_of_fp8(const fm__conversion *c, const char *name)
{
    char      weight[200];
    fm_tensor t;
    if (!ends_with(name, ".weight_scale_inv") || strlen(name) >= sizeof weight) return 0;
    snprintf(weight, sizeof weight, "%.*s", (int)(strlen(name) - strlen("_scale_inv")), name);
    return fm_source_has(c->source, weight) && fm_source_find(c->source, weight, &t) == FM_OK &&
           t.dtype == FM_FP8;
}

static fm_status action_of(action *out, const fm__conversion *c, const fm_safetensors_entry *e,
                           const char *path)
{
    const int fp8 = c->request->type == FM_CONVERT_FP8, is_fp8 = e->readable && e->dtype == FM_FP8;
    if (ends_with(e->name, ".weight_packed"))
        return fm_fail(FM_E_NOSUP, "%s: tensor %s is INT4 already", path, e->name);
    if (is_scale_of_fp8(c, e->name))
        *out = DROP;
    else if (is_wanted(c->request, e->name))
        *out = fp8 ? TO_FP8 : TO_INT4;
    else
        *out = is_fp8 ? TO_BF16 : COPY;
    if (*out == COPY || *out == DROP) return FM_OK;
    if (!e->readable || e->n_dim != 2)
        return fm_fail(FM_E_NOSUP, "%s: tensor %s is not a matrix of a type we read", path,
                       e->name);
    if (*out == TO_INT4 && e->cols % FM_INT4_GROUP)
        return fm_fail(FM_E_NOSUP, "%s: tensor %s has %lld columns, not a multiple of %d", path,
                       e->name, (long long)e->cols, FM_INT4_GROUP);
    return FM_OK;
}

/* --- the header ----------------------------------------------------------- */

typedef struct {
    fm__conversion      *c;
    const char          *name; /* of the file */
    fm_safetensors_file *in;
    action              *action; /* [in->n_entry] */
    json_t              *header; /* of the output */
    uint64_t             bytes;  /* of its data */
    FILE                *to;
    char                 draft[4300];
} shard;

static void declare(shard *s, const char *name, const char *dtype, json_t *shape, uint64_t bytes)
{
    json_t *o = json_pack("{s:s, s:o, s:[I,I]}", "dtype", dtype, "shape", shape, "data_offsets",
                          (json_int_t)s->bytes, (json_int_t)(s->bytes + bytes));
    json_object_set_new(s->header, name, o);
    json_object_set_new(s->c->map, name, json_string(s->name));
    s->bytes += bytes;
}

static json_t *pair(int64_t a, int64_t b)
{
    return json_pack("[I,I]", (json_int_t)a, (json_int_t)b);
}

static void declare_int4(shard *s, const fm_safetensors_entry *e)
{
    const uint64_t n    = (uint64_t)(e->rows * e->cols);
    fm_str         name = {0};
    fm_str_printf(&name, "%s_packed", e->name);
    declare(s, name.text, "I32", pair(e->rows, e->cols / 8), n / 2);
    fm_str_clear(&name);
    fm_str_printf(&name, "%s_scale", e->name);
    declare(s, name.text, "BF16", pair(e->rows, e->cols / FM_INT4_GROUP), n / FM_INT4_GROUP * 2);
    fm_str_clear(&name);
    fm_str_printf(&name, "%s_shape", e->name);
    declare(s, name.text, "I64", json_pack("[i]", 2), 16);
    fm_str_fini(&name);
}

static int64_t blocks(int64_t n) { return (n + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK; }

static void declare_fp8(shard *s, const fm_safetensors_entry *e)
{
    fm_str name = {0};
    declare(s, e->name, "F8_E4M3", pair(e->rows, e->cols), (uint64_t)(e->rows * e->cols));
    fm_str_printf(&name, "%s_scale_inv", e->name);
    declare(s, name.text, "F32", pair(blocks(e->rows), blocks(e->cols)),
            (uint64_t)(blocks(e->rows) * blocks(e->cols)) * 4);
    fm_str_fini(&name);
}

static void declare_copy(shard *s, const fm_safetensors_entry *e)
{
    json_t *shape = json_object_get(json_object_get(s->in->header, e->name), "shape");
    declare(s, e->name, e->dtype_name, json_deep_copy(shape), e->end - e->begin);
}

static fm_status decide(shard *s)
{
    for (int32_t i = 0; i < s->in->n_entry; i++) {
        const fm_safetensors_entry *e = &s->in->entry[i];
        FM_TRY(action_of(&s->action[i], s->c, e, s->in->path));
        s->c->report->n_quantised += s->action[i] == TO_INT4 || s->action[i] == TO_FP8;
        switch (s->action[i]) {
        case DROP: break;
        case COPY: declare_copy(s, e); break;
        case TO_BF16:
            declare(s, e->name, "BF16", pair(e->rows, e->cols), (uint64_t)(e->rows * e->cols) * 2);
            break;
        case TO_INT4: declare_int4(s, e); break;
        case TO_FP8: declare_fp8(s, e); break;
        }
    }
    return FM_OK;
}

/* The header with spaces behind it, so that data begins at a multiple of 64. */
static void header_text(const shard *s, fm_str *out)
{
    char *text = json_dumps(s->header, JSON_COMPACT);
    FM_BUG_UNLESS(text != NULL);
    fm_str_puts(out, text);
    while ((out->len + 8) % HEADER_ALIGN) fm_str_puts(out, " ");
    free(text);
}

/* --- values --------------------------------------------------------------- */

static fm_status put(shard *s, const void *bytes, size_t n)
{
    if (fwrite(bytes, 1, n, s->to) == n) return FM_OK;
    return fm_fail(FM_E_IO, "%s cannot be written: %s", s->draft, strerror(errno));
}

/* A matrix of the model and room for a stretch of its rows. */
typedef struct {
    fm_tensor t, factor; /* factor: of FP8 */
    float    *rows;      /* [ROWS, cols] */
    char     *out;       /* the stretch in its new type */
    char     *scale;     /* of the whole matrix */
} matrix;

static fm_status open_matrix(matrix *m, const fm_source *src, const fm_safetensors_entry *e)
{
    char name[220];
    *m = (matrix){0};
    FM_TRY(fm_source_find(src, e->name, &m->t));
    snprintf(name, sizeof name, "%s_scale_inv", e->name);
    if (m->t.dtype == FM_FP8) FM_TRY(fm_source_find(src, name, &m->factor));
    if (m->t.dtype == FM_FP8 &&
        (m->factor.rows != blocks(e->rows) || m->factor.cols != blocks(e->cols)))
        return fm_fail(FM_E_FORMAT, "%s: tensor %s has not a scale for each 128 x 128",
                       fm_source_where(src, &m->factor), name);
    m->rows  = malloc((size_t)(ROWS * e->cols) * sizeof(float));
    m->out   = malloc((size_t)(ROWS * e->cols) * 2);
    m->scale = malloc((size_t)(e->rows * (e->cols / FM_INT4_GROUP + 1)) * 2 +
                      (size_t)(blocks(e->rows) * blocks(e->cols)) * 4);
    return m->rows && m->out && m->scale ? FM_OK : fm_fail(FM_E_OOM, "tensor %s", e->name);
}

static void close_matrix(matrix *m)
{
    free(m->rows);
    free(m->out);
    free(m->scale);
}

static void read_row(const fm_source *src, matrix *m, int64_t row0, int64_t i)
{
    const int64_t k  = m->t.cols;
    float        *to = m->rows + i * k;
    fm_source_read(src, &m->t, row0 + i, 1, 0, k, FM_F32, to);
    for (int64_t b = 0; m->t.dtype == FM_FP8 && b * FM_FP8_BLOCK < k; b++) {
        float factor;
        fm_source_read(src, &m->factor, (row0 + i) / FM_FP8_BLOCK, 1, b, 1, FM_F32, &factor);
        for (int64_t c = b * FM_FP8_BLOCK; c < k && c < (b + 1) * FM_FP8_BLOCK; c++)
            to[c] *= factor;
    }
}

static void change_row(matrix *m, action a, int64_t row0, int64_t i)
{
    const int64_t k = m->t.cols, groups = k / FM_INT4_GROUP;
    const float  *row = m->rows + i * k;
    if (a == TO_INT4)
        fm_quantise_int4((uint8_t *)m->out + i * k / 2, (fm_bf16 *)m->scale + (row0 + i) * groups,
                         row, k);
    for (int64_t c = 0; a == TO_BF16 && c < k; c++)
        ((fm_bf16 *)m->out)[i * k + c] = fm_bf16_of_f32(row[c]);
}

static int is_finite(const float *row, int64_t k)
{
    float sum = 0; /* stays 0 unless one is not */
    for (int64_t c = 0; c < k; c++) sum += row[c] * 0;
    return sum == 0;
}

static fm_status change_rows(shard *s, matrix *m, action a, int64_t row0, int64_t n)
{
    const int64_t k   = m->t.cols;
    int           bad = 0;
#pragma omp parallel for reduction(| : bad)
    for (int64_t i = 0; i < n; i++) {
        read_row(s->c->source, m, row0, i);
        bad |= !is_finite(m->rows + i * k, k);
        change_row(m, a, row0, i);
    }
    if (bad)
        return fm_fail(FM_E_FORMAT, "%s: tensor %s has a value that is not finite", s->in->path,
                       m->t.name);
    if (a == TO_FP8)
        fm_quantise_fp8((fm_fp8 *)m->out, (float *)m->scale + row0 / ROWS * blocks(k), m->rows,
                        (int)n, k);
    return put(s, m->out, (size_t)(n * k) * 2 / (a == TO_INT4 ? 4 : a == TO_FP8 ? 2 : 1));
}

static fm_status put_scales(shard *s, const matrix *m, action a)
{
    const int64_t shape[2] = {m->t.rows, m->t.cols};
    if (a == TO_FP8) return put(s, m->scale, (size_t)(blocks(shape[0]) * blocks(shape[1])) * 4);
    if (a != TO_INT4) return FM_OK;
    FM_TRY(put(s, m->scale, (size_t)(shape[0] * (shape[1] / FM_INT4_GROUP)) * 2));
    return put(s, shape, sizeof shape);
}

static fm_status change_matrix(shard *s, const fm_safetensors_entry *e, action a)
{
    matrix    m;
    fm_status rc = open_matrix(&m, s->c->source, e);
    for (int64_t r = 0; rc == FM_OK && r < e->rows; r += ROWS)
        rc = change_rows(s, &m, a, r, e->rows - r < ROWS ? e->rows - r : ROWS);
    if (rc == FM_OK) rc = put_scales(s, &m, a);
    close_matrix(&m);
    return rc;
}

static fm_status put_all(shard *s, const fm_str *header)
{
    const uint64_t n = header->len;
    unsigned char  length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(n >> (8 * i));
    FM_TRY(put(s, length, sizeof length));
    FM_TRY(put(s, header->text, header->len));
    for (int32_t i = 0; i < s->in->n_entry; i++) {
        const fm_safetensors_entry *e = &s->in->entry[i];
        if (s->action[i] == COPY)
            FM_TRY(put(s, e->data, e->end - e->begin));
        else if (s->action[i] != DROP)
            FM_TRY(change_matrix(s, e, s->action[i]));
        s->c->report->bytes_in += (long long)(e->end - e->begin);
        if (s->c->request->show_progress)
            fm_progress_show(&s->c->bar, (double)s->c->report->bytes_in, NULL);
    }
    return FM_OK;
}

/* --- the file ------------------------------------------------------------- */

static fm_status write_draft(shard *s, const fm_str *header)
{
    if (!(s->to = fopen(s->draft, "wb")))
        return fm_fail(FM_E_IO, "%s cannot be written: %s", s->draft, strerror(errno));
    fm_status rc = put_all(s, header);
    if (rc == FM_OK && (fflush(s->to) || fsync(fileno(s->to))))
        rc = fm_fail(FM_E_IO, "%s cannot be written: %s", s->draft, strerror(errno));
    if (fclose(s->to) && rc == FM_OK)
        rc = fm_fail(FM_E_IO, "%s cannot be written: %s", s->draft, strerror(errno));
    return rc;
}

static fm_status write_file(shard *s, const char *path)
{
    fm_str      header = {0};
    struct stat st;
    header_text(s, &header);
    const uint64_t size = 8 + header.len + s->bytes;
    fm_status      rc   = FM_OK;
    if (stat(path, &st) == 0 && (uint64_t)st.st_size == size) {
        s->c->report->n_resumed++;
    } else {
        rc = write_draft(s, &header);
        if (rc == FM_OK && rename(s->draft, path) != 0)
            rc = fm_fail(FM_E_IO, "%s cannot be written: %s", path, strerror(errno));
        if (rc != FM_OK) unlink(s->draft);
    }
    fm_str_fini(&header);
    return rc;
}

fm_status fm__convert_file(fm__conversion *c, const char *name)
{
    shard s = {.c = c, .name = name, .header = json_object()};
    char  path[4200];
    snprintf(path, sizeof path, "%s/%s", c->request->model, name);
    fm_status rc = fm_safetensors_open(&s.in, path);
    if (rc == FM_OK && !(s.action = calloc((size_t)s.in->n_entry + 1, sizeof *s.action)))
        rc = fm_fail(FM_E_OOM, "%s: no memory for its tensors", path);
    if (rc == FM_OK) rc = decide(&s);
    snprintf(path, sizeof path, "%s/%s", c->request->out, name);
    snprintf(s.draft, sizeof s.draft, "%s.part", path);
    if (rc == FM_OK) rc = write_file(&s, path);
    c->report->bytes += (long long)s.bytes;
    json_decref(s.header);
    free(s.action);
    fm_safetensors_close(s.in);
    return rc;
}
