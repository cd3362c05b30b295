/* SPDX-License-Identifier: Apache-2.0 */
/* The dummy source: the tensors a model of some shape asks for, made up on the spot. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "llm/load/config_read.h"
#include "llm/load/dummy_internal.h"
#include "llm/load/source_internal.h"
#include "llm/weights/weights.h"

typedef struct {
    fm_dtype dtype;
    int64_t  rows, cols;
    uint64_t key;
    float    centre, step; /* step 0: the constant `centre`, which is what scales are */
} entry;

typedef struct {
    fm_source source; /* first */
    uint64_t  seed;
    double    fp8_std; /* of the FP8 bytes, unscaled */
    entry    *tensor;  /* [names.n] */
    int32_t   cap;
} dummy;

/* --- values --------------------------------------------------------------- */

static fm__dummy_fn *filler(fm_dtype dtype)
{
    const int wide = fm_cpu_isa() >= FM_ISA_AVX512;
    switch (dtype) {
    case FM_BF16: return wide ? fm__dummy_bf16_avx512 : fm__dummy_bf16_ref;
    case FM_FP8: return wide ? fm__dummy_fp8_avx512 : fm__dummy_fp8_ref;
    case FM_INT4: return fm__dummy_int4_ref;
    default: return fm__dummy_f32_ref;
    }
}

static void read_row(const fm_source *s, const fm_tensor *t, int64_t row, int64_t col0,
                     int64_t n_col, void *dst)
{
    const entry  *e    = &((const dummy *)s)->tensor[t->index];
    fm__dummy_fn *fill = filler(e->dtype);
    char         *out  = dst;
    uint64_t      i = (uint64_t)(row * e->cols + col0), left = (uint64_t)n_col;
    while (left) {
        const uint64_t to_edge = (UINT64_C(1) << 32) - (uint32_t)i; /* the stream changes there */
        const uint32_t n       = (uint32_t)(left < to_edge ? left : to_edge);
        fill(out,
             &(fm__dummy_run){fm__dummy_stream(e->key, i), (uint32_t)i, n, e->centre, e->step});
        out += fm_dtype_row_bytes(e->dtype, n);
        i += n;
        left -= n;
    }
}

/* --- what there is -------------------------------------------------------- */

static fm_status describe(const fm_source *s, int32_t i, fm_tensor *out)
{
    const entry *e = &((const dummy *)s)->tensor[i];
    out->dtype     = e->dtype;
    out->rows      = e->rows;
    out->cols      = e->cols;
    return FM_OK;
}

static const void *no_data(const fm_source *s, const fm_tensor *t)
{
    (void)s, (void)t;
    return NULL;
}

static const char *where(const fm_source *s, int32_t i)
{
    (void)i;
    return s->place;
}

static void close_dummy(fm_source *s)
{
    dummy *d = (dummy *)s;
    fm_name_table_fini(&s->names);
    free(d->tensor);
    free(d);
}

static const fm__source_kind kind = {describe, read_row, no_data, where, close_dummy};

int fm_source_dummy_rule(const fm_source *s, const fm_tensor *t, fm_dummy_rule *out)
{
    if (s->kind != &kind) return 0;
    const entry *e = &((const dummy *)s)->tensor[t->index];
    *out           = (fm_dummy_rule){e->key, e->centre, e->step};
    return 1;
}

static fm_status add(dummy *d, const char *name, entry e)
{
    int32_t i;
    int     is_new;
    if (d->source.names.n == d->cap) {
        const int32_t cap  = d->cap ? d->cap * 2 : 256;
        entry        *more = realloc(d->tensor, (size_t)cap * sizeof *more);
        if (!more) return fm_fail(FM_E_OOM, "no memory for the table of tensors");
        d->tensor = more;
        d->cap    = cap;
    }
    FM_TRY(fm_name_table_add(&d->source.names, name, &i, &is_new));
    FM_BUG_UNLESS(is_new);
    e.key        = fm_rng_key(name, d->seed);
    d->tensor[i] = e;
    return FM_OK;
}

static float step_for(double std) { return (float)(sqrt(3) * std * 0x1p-23); }

/* "X.weight" as "X.weight_packed" and "X.weight_scale". */
static fm_status add_int4(dummy *d, const char *name, entry e, double std)
{
    const double mean_square = (1 + 4 + 9 + 16 + 25 + 36 + 49) * 2 / 15.0;
    char         full[160];
    const entry  scale = {.dtype  = FM_BF16,
                          .rows   = e.rows,
                          .cols   = e.cols / FM_INT4_GROUP,
                          .centre = (float)(std / sqrt(mean_square))};
    e.dtype            = FM_INT4;
    snprintf(full, sizeof full, "%s_packed", name);
    FM_TRY(add(d, full, e));
    snprintf(full, sizeof full, "%s_scale", name);
    return add(d, full, scale);
}

static fm_status add_linear(dummy *d, const char *name, int64_t rows, int64_t cols, fm_dtype type)
{
    const double std = 1 / sqrt((double)cols);
    entry        e   = {.dtype = FM_BF16, .rows = rows, .cols = cols, .step = step_for(std)};
    if (type == FM_INT4) return add_int4(d, name, e, std);
    if (type != FM_FP8) return add(d, name, e);

    char scale_name[160];
    e.dtype = FM_FP8;
    FM_TRY(add(d, name, e));
    snprintf(scale_name, sizeof scale_name, "%s_scale_inv", name);
    return add(d, scale_name,
               (entry){.dtype  = FM_F32,
                       .rows   = (rows + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK,
                       .cols   = (cols + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK,
                       .centre = (float)(std / d->fp8_std)});
}

static fm_status add_vector(dummy *d, const char *name, int64_t n)
{
    const int bias = strstr(name, "e_score_correction_bias") != NULL;
    return add(d, name,
               (entry){.dtype  = bias ? FM_F32 : FM_BF16,
                       .rows   = 1,
                       .cols   = n,
                       .centre = bias ? 0 : 1,
                       .step   = step_for(1.0 / 32)});
}

static fm_dtype quantised(void *ctx, const char *tensor)
{
    const fm_model_config *c = ctx;
    return c->fp8 ? FM_FP8 : fm_config_keeps_int4(c, tensor) ? FM_INT4 : FM_BF16;
}

static fm_status add_piece(dummy *d, const fm_piece *p, const fm_model_config *c)
{
    switch (p->kind) {
    case FM_PIECE_VECTOR: return add_vector(d, p->tensor, p->cols);
    case FM_PIECE_TABLE:
        return add(
            d, p->tensor,
            (entry){.dtype = FM_BF16, .rows = p->rows, .cols = p->cols, .step = step_for(1)});
    case FM_PIECE_MATRIX: return add_linear(d, p->tensor, p->rows, p->cols, p->matrix->dtype);
    case FM_PIECE_GATE_UP:
        FM_TRY(add_linear(d, p->tensor, p->rows, p->cols, p->matrix->dtype));
        return add_linear(d, p->tensor2, p->rows, p->cols, p->matrix->dtype);
    case FM_PIECE_KV_B:
        return add_linear(d, p->tensor, p->rows, p->cols, quantised((void *)c, p->tensor));
    }
    return FM_OK;
}

/* The tensors are those that a model of this shape asks for; one that is asked for in parts is
 * added with the first. */
static fm_status add_all(dummy *d, const fm_model_config *c)
{
    fm_weights w = {0};
    fm_slab    s = {0};
    FM_TRY(fm_weights_layout(
        &w, c, &(fm_weights_want){.act = FM_BF16, .n_mtp = c->n_mtp, .dtype_of = quantised, .ctx = (void *)c},
        &s));
    fm_status rc = FM_OK;
    for (int i = 0; rc == FM_OK && i < w.n_piece; i++)
        if (!w.piece[i].col0) rc = add_piece(d, &w.piece[i], c);
    fm_weights_fini(&w);
    return rc;
}

/* Root mean square of the FP8 rule over all its draws. */
static double fp8_std(void)
{
    double sum = 0;
    for (uint32_t i = 0; i < 1 << 15; i++) {
        const double v = fm_f32_of_fp8(fm_dummy_fp8(i << 17));
        sum += v * v;
    }
    return sqrt(sum / (1 << 15));
}

fm_status fm_source_open_dummy(fm_source **out, const fm_model_config *config, uint64_t seed)
{
    dummy *d = calloc(1, sizeof *d);
    if (!d) return fm_fail(FM_E_OOM, "no memory for dummy weights");
    d->source  = (struct fm_source){.kind = &kind, .place = "dummy weights"};
    d->seed    = seed;
    d->fp8_std = fp8_std();

    const fm_status rc = add_all(d, config);
    if (rc == FM_OK)
        *out = &d->source;
    else
        close_dummy(&d->source);
    return rc;
}
