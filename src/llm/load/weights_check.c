/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "llm/load/fill_internal.h"
#include "llm/load/weights_fill.h"

fm_dtype fm_source_dtype_of(void *ctx, const char *tensor)
{
    const fm_source_types *x = ctx;
    fm_tensor              t;
    if (x->act == FM_F32) return FM_F32;
    /* What is missing or unreadable is reported by fm_weights_check. */
    if (!fm_source_has(x->source, tensor) || fm_source_find(x->source, tensor, &t) != FM_OK)
        return FM_BF16;
    return t.dtype == FM_FP8 || t.dtype == FM_INT4 ? t.dtype : FM_BF16;
}

static fm_status check_shape(const fm_source *s, const fm_tensor *t, int64_t rows, int64_t cols)
{
    if (t->rows == rows && t->cols == cols) return FM_OK;
    return fm_fail(FM_E_FORMAT,
                   "%s: tensor %s has shape [%lld, %lld], the config wants [%lld, %lld]",
                   fm_source_where(s, t), t->name, (long long)t->rows, (long long)t->cols,
                   (long long)rows, (long long)cols);
}

static fm_status check_group_scale(const fm_source *s, const fm_tensor *t)
{
    char      name[FM__SCALE_NAME];
    fm_tensor scale;
    fm__scale_name(name, t);
    FM_TRY(fm_source_find(s, name, &scale));
    if (scale.dtype != FM_BF16)
        return fm_fail(FM_E_NOSUP, "%s: tensor %s: scales of INT4 must be BF16",
                       fm_source_where(s, &scale), name);
    return check_shape(s, &scale, t->rows, t->cols / FM_INT4_GROUP);
}

static fm_status check_block_scale(const fm_source *s, const fm_tensor *t)
{
    char      name[FM__SCALE_NAME];
    fm_tensor scale;
    fm__scale_name(name, t);
    FM_TRY(fm_source_find(s, name, &scale));
    if (scale.dtype != FM_F32 && scale.dtype != FM_E8M0)
        return fm_fail(FM_E_NOSUP, "%s: tensor %s: scales must be F32 or F8_E8M0",
                       fm_source_where(s, &scale), name);
    return check_shape(s, &scale, (t->rows + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK,
                       (t->cols + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK);
}

static fm_status check_tensor(fm_tensor *t, const fm_source *s, const char *name, const fm_piece *p)
{
    const int linear = p->kind != FM_PIECE_VECTOR && p->kind != FM_PIECE_TABLE;
    FM_TRY(fm_source_find(s, name, t));
    FM_TRY(check_shape(s, t, p->rows, p->cols));
    if (t->dtype == FM_E8M0 || ((t->dtype == FM_FP8 || t->dtype == FM_INT4) && !linear))
        return fm_fail(FM_E_NOSUP, "%s: tensor %s: a type of 4 or 8 bits is not supported there",
                       fm_source_where(s, t), name);
    if (t->dtype == FM_INT4) return check_group_scale(s, t);
    return t->dtype == FM_FP8 ? check_block_scale(s, t) : FM_OK;
}

static fm_status check_piece(const fm_source *s, const fm_piece *p)
{
    fm_tensor t, t2;
    FM_TRY(check_tensor(&t, s, p->tensor, p));
    if (p->kind == FM_PIECE_GATE_UP) {
        FM_TRY(check_tensor(&t2, s, p->tensor2, p));
        const fm_dtype kept = p->matrix->dtype;
        if ((kept == FM_FP8 || kept == FM_INT4) && t2.dtype != kept)
            return fm_fail(FM_E_NOSUP, "%s: tensor %s is not %s, but %s is",
                           fm_source_where(s, &t2), t2.name, kept == FM_FP8 ? "FP8" : "INT4",
                           t.name);
    }
    return FM_OK;
}

fm_status fm_weights_check(const fm_weights *w, const fm_source *s)
{
    for (int i = 0; i < w->n_piece; i++) FM_TRY(check_piece(s, &w->piece[i]));
    return FM_OK;
}

int fm_source_mtp_layers(const fm_source *s, const fm_model_config *c)
{
    char name[64];
    int  n = 0;
    for (; n < c->n_mtp; n++) {
        snprintf(name, sizeof name, "model.layers.%d.eh_proj.weight", c->n_layer + n);
        if (!fm_source_has(s, name)) break;
    }
    return n;
}
