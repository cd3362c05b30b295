/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "llm/kernel/gemm/gemm.h"
#include "llm/weights/weights.h"

static const fm_model_config small = {
    .vocab       = 70,
    .hidden      = 64,
    .n_layer     = 3,
    .n_dense     = 1,
    .moe_freq    = 1,
    .n_head      = 2,
    .q_lora      = 32,
    .kv_lora     = 32,
    .nope        = 32,
    .rope        = 8,
    .v_dim       = 16,
    .dense_inter = 96,
    .moe_inter   = 32,
    .n_expert    = 4,
    .n_shared    = 2,
    .top_k       = 2,
    .n_group     = 1,
    .top_group   = 1,
    .route       = FM_ROUTE_NOAUX_TC,
    .score       = FM_SCORE_SIGMOID,
};

static fm_dtype bf16(void *ctx, const char *tensor)
{
    (void)ctx, (void)tensor;
    return FM_BF16;
}

static fm_dtype fp8(void *ctx, const char *tensor)
{
    int *asked = ctx;
    assert_null(strstr(tensor, "mlp.gate.weight"));
    assert_null(strstr(tensor, "kv_b_proj"));
    assert_null(strstr(tensor, "eh_proj"));
    ++*asked;
    return FM_FP8;
}

static const fm_piece *piece_for(const fm_weights *w, const char *tensor)
{
    for (int i = 0; i < w->n_piece; i++)
        if (!strcmp(w->piece[i].tensor, tensor) || !strcmp(w->piece[i].tensor2, tensor))
            return &w->piece[i];
    return NULL;
}

/* All numbers of the model, counted from the tensors it asks for. */
static int64_t tensor_elements(const fm_weights *w)
{
    int64_t n = 0;
    for (int i = 0; i < w->n_piece; i++)
        n += w->piece[i].rows * w->piece[i].cols * (w->piece[i].tensor2[0] ? 2 : 1);
    return n;
}

static void pieces_hold_every_parameter(void **state)
{
    (void)state;
    fm_model_config c = small;
    for (int variant = 0; variant < 4; variant++) {
        c.q_lora   = variant & 1 ? 0 : 32;
        c.n_expert = variant & 2 ? 0 : 4;
        fm_weights w;
        fm_slab    s = {0};
        assert_int_equal(fm_weights_layout(&w, &c, &(fm_weights_want){.act = FM_BF16, .n_mtp = 0, .dtype_of = bf16, .ctx = NULL}, &s), FM_OK);
        assert_int_equal(tensor_elements(&w), fm_param_count(&c));
        fm_weights_fini(&w);
    }
}

static void names_are_the_checkpoints(void **state)
{
    (void)state;
    static const char *const names[] = {
        "model.embed_tokens.weight",
        "model.norm.weight",
        "lm_head.weight",
        "model.layers.0.mlp.up_proj.weight",
        "model.layers.2.mlp.shared_experts.gate_proj.weight",
        "model.layers.1.mlp.experts.3.up_proj.weight",
        "model.layers.1.mlp.experts.3.down_proj.weight",
        "model.layers.2.mlp.gate.weight",
        "model.layers.2.mlp.gate.e_score_correction_bias",
        "model.layers.2.self_attn.q_a_layernorm.weight",
        "model.layers.2.self_attn.q_b_proj.weight",
        "model.layers.0.self_attn.kv_a_proj_with_mqa.weight",
        "model.layers.0.self_attn.kv_b_proj.weight",
        "model.layers.3.eh_proj.weight",
        "model.layers.3.shared_head.norm.weight",
        "model.layers.3.mlp.experts.0.gate_proj.weight",
    };
    fm_weights w;
    fm_slab    s = {0};
    assert_int_equal(fm_weights_layout(&w, &small, &(fm_weights_want){.act = FM_BF16, .n_mtp = 1, .dtype_of = bf16, .ctx = NULL}, &s), FM_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!piece_for(&w, names[i])) fail_msg("nothing asks for %s", names[i]);
    assert_null(piece_for(&w, "model.layers.1.mlp.gate_proj.weight"));
    assert_null(piece_for(&w, "model.layers.0.mlp.gate.weight"));
    assert_null(piece_for(&w, "model.layers.3.embed_tokens.weight"));
    assert_int_equal(w.n_mtp, 1);
    assert_true(w.mtp[0].layer.ffn.is_moe);
    fm_weights_fini(&w);
}

typedef struct {
    uintptr_t begin, end;
} range;

static int by_begin(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void add(range *r, int *n, const void *p, size_t bytes)
{
    assert_int_equal((uintptr_t)p % FM_SLAB_ALIGN, 0);
    r[(*n)++] = (range){(uintptr_t)p, (uintptr_t)p + bytes};
}

static void add_matrix(range *r, int *n, const fm_matrix *m)
{
    const size_t panels = ((size_t)m->n + 31) / 32;
    add(r, n, m->panels, panels * fm_panel_bytes(m->dtype, m->k));
    if (m->dtype == FM_FP8)
        add(r, n, m->scale, panels * (size_t)fm_panel_scales(m->k) * sizeof(float));
}

static int collect(range *r, const fm_weights *w)
{
    int n = 0;
    for (int i = 0; i < w->n_piece; i++) {
        const fm_piece *p = &w->piece[i];
        if (p->kind == FM_PIECE_VECTOR) add(r, &n, p->vector, (size_t)p->cols * sizeof(float));
        if (p->kind == FM_PIECE_TABLE)
            add(r, &n, p->table, (size_t)(p->rows * p->cols) * fm_dtype_bytes(w->act));
        if (p->matrix) add_matrix(r, &n, p->matrix);
        for (int h = 0; p->kind == FM_PIECE_KV_B && h < w->config->n_head; h++) {
            add_matrix(r, &n, &p->attn->k_up[h]);
            add_matrix(r, &n, &p->attn->k_up_t[h]);
            add_matrix(r, &n, &p->attn->v_up[h]);
        }
    }
    return n;
}

/* Measured and placed sizes agree, and no two things share a byte. */
static void check_placing(fm_dtype act, fm_dtype_of_fn *dtype_of)
{
    fm_weights w;
    int        asked = 0;
    fm_slab    s     = {0};
    assert_int_equal(fm_weights_layout(&w, &small, &(fm_weights_want){.act = act, .n_mtp = 1, .dtype_of = dtype_of, .ctx = &asked}, &s), FM_OK);
    assert_null(w.embed);
    fm_weights_fini(&w);

    const size_t bytes = s.used;
    char        *base  = aligned_alloc(64, bytes);
    s                  = (fm_slab){.base = base, .size = bytes};
    assert_int_equal(fm_weights_layout(&w, &small, &(fm_weights_want){.act = act, .n_mtp = 1, .dtype_of = dtype_of, .ctx = &asked}, &s), FM_OK);
    assert_int_equal(s.used, bytes);
    assert_int_equal(w.head.dtype, act); /* INT4 or the activations' type, never FP8 */

    range    *r = calloc((size_t)w.n_piece * 8, sizeof *r);
    const int n = collect(r, &w);
    qsort(r, (size_t)n, sizeof *r, by_begin);
    for (int i = 0; i < n; i++) {
        assert_true(r[i].begin >= (uintptr_t)base && r[i].end <= (uintptr_t)base + bytes);
        if (i) assert_true(r[i].begin >= r[i - 1].end);
    }
    free(r);
    fm_weights_fini(&w);
    free(base);
}

static void nothing_overlaps(void **state)
{
    (void)state;
    check_placing(FM_BF16, bf16);
    check_placing(FM_BF16, fp8);
    check_placing(FM_F32, bf16);
}

static void fini_twice(void **state)
{
    (void)state;
    fm_weights w;
    fm_slab    s = {0};
    assert_int_equal(fm_weights_layout(&w, &small, &(fm_weights_want){.act = FM_BF16, .n_mtp = 0, .dtype_of = bf16, .ctx = NULL}, &s), FM_OK);
    fm_weights_fini(&w);
    fm_weights_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_hold_every_parameter),
        cmocka_unit_test(names_are_the_checkpoints),
        cmocka_unit_test(nothing_overlaps),
        cmocka_unit_test(fini_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
