/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded weights against the plainest reading of the same file.  Matrices are
 * read back through the kernel, with unit vectors as input, so nothing here
 * knows how panels are laid out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kernel/gemm/gemm.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/load/weights_fill.h"
#include "load_support.h"

/* --- loading -------------------------------------------------------------- */

typedef struct {
    fm_model_config config;
    fm_source      *source;
    fm_weights      w;
    fm_packing      packing;
    char           *slab;
    size_t          bytes;
} model;

static fm_status lay_out_with(model *m, fm_dtype act, int n_mtp)
{
    fm_source_types types = {m->source, act};
    fm_slab         s     = {0};
    const fm_weights_want want = {.packing  = m->packing,
                                  .act      = act,
                                  .n_mtp    = n_mtp,
                                  .dtype_of = fm_source_dtype_of,
                                  .ctx      = &types};
    FM_TRY(fm_weights_layout(&m->w, &m->config, &want, &s));
    fm_weights_fini(&m->w);
    m->bytes = s.used;
    m->slab  = aligned_alloc(64, m->bytes);
    memset(m->slab, 0xa5, m->bytes);
    s = (fm_slab){.base = m->slab, .size = m->bytes};
    return fm_weights_layout(&m->w, &m->config, &want, &s);
}

static fm_status lay_out(model *m, fm_dtype act)
{
    return lay_out_with(m, act, fm_source_mtp_layers(m->source, &m->config));
}

static fm_status load(model *m, fm_dtype act, int n_thread)
{
    FM_TRY(lay_out(m, act));
    return fm_weights_fill(&m->w, m->source, n_thread, 0);
}

static void unload(model *m)
{
    fm_weights_fini(&m->w);
    fm_source_close(m->source);
    free(m->slab);
}

static void read_config(model *m, const char *dir)
{
    char path[600];
    snprintf(path, sizeof path, "%s/config.json", dir);
    *m = (model){0};
    if (fm_config_read(&m->config, path, NULL) != FM_OK) fail_msg("%s", fm_why());
}

/* --- reading back --------------------------------------------------------- */

static float stored(const fm_matrix *m, size_t i)
{
    return m->dtype == FM_F32    ? ((const float *)m->panels)[i]
           : m->dtype == FM_BF16 ? fm_f32_of_bf16(((const fm_bf16 *)m->panels)[i])
                                 : fm_f32_of_fp8(((const fm_fp8 *)m->panels)[i]);
}

/* The same of rows; `pair`: 16 rows of gate, 16 of up. */
static float *expand_rows(const fm_matrix *m, int pair)
{
    const int n_block = (m->k + 127) / 128, n_gate = (m->n / 2 + 127) / 128 * n_block;
    float    *w = calloc((size_t)(m->n + 31) / 32 * 32 * (size_t)m->k, sizeof *w);
    for (int j = 0; j < m->n; j++) {
        const int    row = pair ? j / 32 * 16 + j % 16 : j;
        const float *scale =
            m->scale ? m->scale + (pair && j % 32 >= 16 ? n_gate : 0) + row / 128 * n_block : NULL;
        for (int c = 0; c < m->k; c++) {
            const size_t i = (size_t)j * (size_t)m->k + (size_t)c;
            w[i]           = stored(m, i) * (scale ? scale[c / 128] : 1);
        }
    }
    return w;
}

/* [panels * 32][k]: row j is what output j does to unit vectors. */
static float *expand_panels(const fm_matrix *m)
{
    const int    n = (m->n + 31) / 32 * 32, k = m->k;
    const size_t size = m->dtype == FM_F32 ? 4 : 2;
    char        *unit = calloc((size_t)k * (size_t)k, size);
    const void **x    = malloc((size_t)k * sizeof *x);
    float *c = malloc((size_t)k * 32 * sizeof *c), *w = malloc((size_t)n * (size_t)k * sizeof *w);
    const float    one   = 1;
    const uint16_t one16 = 0x3f80;
    for (int i = 0; i < k; i++) {
        x[i] = unit + (size_t)i * (size_t)k * size;
        memcpy((char *)x[i] + (size_t)i * size, size == 4 ? (const void *)&one : &one16, size);
    }
    for (int p = 0; p < n / 32; p++) {
        const float *scale = m->scale ? m->scale + p * fm_panel_scales(k) : NULL;
        fm_gemm_for(fm_gemm_pick(), m->dtype)(
            c, x, (char *)m->panels + (size_t)p * fm_panel_bytes(m->dtype, k), scale, k, k);
        for (int i = 0; i < k; i++)
            for (int j = 0; j < 32; j++)
                w[(size_t)(p * 32 + j) * (size_t)k + (size_t)i] = c[i * 32 + j];
    }
    free(unit);
    free(x);
    free(c);
    return w;
}

static float *expand(const fm_weights *w, const fm_matrix *m, int pair)
{
    return w->packing == FM_PACK_ROWS ? expand_rows(m, pair) : expand_panels(m);
}

typedef struct {
    float (*value)(void *ctx, const char *tensor, int64_t row, int64_t col);
    void   *ctx;
    int64_t col0; /* of the tensor, where a matrix begins */
} truth;

static float kept(float v, fm_dtype as)
{
    return as == FM_BF16 ? fm_f32_of_bf16(fm_bf16_of_f32(v)) : v;
}

static void expect(float got, float want, fm_dtype as, const char *tensor, int64_t r, int64_t c)
{
    want            = kept(want, as);
    const float tol = as == FM_FP8 ? fabsf(want) * 1e-6f : 0; /* one rounding of value x scale */
    if (!(fabsf(got - want) <= tol))
        fail_msg("%s[%lld, %lld] is %.9g, want %.9g", tensor, (long long)r, (long long)c,
                 (double)got, (double)want);
}

/* rows [row0, row0+n) of the tensor are outputs at(0), at(1), … of the matrix */
static void check_rows(const fm_matrix *m, const float *w, truth t, const char *tensor,
                       int64_t row0, int n, int stride, int offset)
{
    for (int r = 0; r < n; r++) {
        const int out = r / stride * 32 + r % stride + offset;
        for (int c = 0; c < m->k; c++)
            expect(w[(size_t)out * (size_t)m->k + (size_t)c], t.value(t.ctx, tensor, row0 + r, t.col0 + c), m->dtype, tensor, row0 + r,
                   t.col0 + c);
    }
}

static void check_padding(const fm_matrix *m, const float *w)
{
    for (int r = m->n; r < (m->n + 31) / 32 * 32; r++)
        for (int c = 0; c < m->k; c++) assert_true(w[(size_t)r * (size_t)m->k + (size_t)c] == 0);
}

static void check_matrix(const fm_weights *of, const fm_matrix *m, truth t, const char *tensor,
                         int64_t row0)
{
    float *w = expand(of, m, 0);
    check_rows(m, w, t, tensor, row0, m->n, 32, 0);
    check_padding(m, w);
    free(w);
}

static void check_heads(const fm_weights *w, const fm_piece *p, truth t)
{
    const fm_model_config *c = w->config;
    for (int h = 0; h < c->n_head; h++) {
        const int64_t row0 = (int64_t)h * (c->nope + c->v_dim);
        check_matrix(w, &p->attn->k_up[h], t, p->tensor, row0);
        check_matrix(w, &p->attn->v_up[h], t, p->tensor, row0 + c->nope);
        if (w->packing == FM_PACK_ROWS) continue; /* no transposed copy there */
        float *u = expand(w, &p->attn->k_up_t[h], 0);
        for (int l = 0; l < c->kv_lora; l++)
            for (int d = 0; d < c->nope; d++)
                expect(u[l * c->nope + d], t.value(t.ctx, p->tensor, row0 + d, l),
                       p->attn->k_up_t[h].dtype, p->tensor, row0 + d, l);
        free(u);
    }
}

static void check_piece(const fm_weights *w, const fm_piece *p, truth t)
{
    float *m;
    switch (p->kind) {
    case FM_PIECE_VECTOR:
        for (int64_t i = 0; i < p->cols; i++)
            expect(p->vector[i], t.value(t.ctx, p->tensor, 0, i), FM_F32, p->tensor, 0, i);
        break;
    case FM_PIECE_TABLE:
        for (int64_t i = 0; i < p->rows * p->cols; i++) {
            const float got = w->act == FM_F32 ? ((float *)p->table)[i]
                                               : fm_f32_of_bf16(((fm_bf16 *)p->table)[i]);
            expect(got, t.value(t.ctx, p->tensor, i / p->cols, i % p->cols), w->act, p->tensor,
                   i / p->cols, i % p->cols);
        }
        break;
    case FM_PIECE_MATRIX:
        t.col0 = p->col0;
        check_matrix(w, p->matrix, t, p->tensor, 0);
        break;
    case FM_PIECE_GATE_UP:
        m = expand(w, p->matrix, 1);
        check_rows(p->matrix, m, t, p->tensor, 0, (int)p->rows, 16, 0);
        check_rows(p->matrix, m, t, p->tensor2, 0, (int)p->rows, 16, 16);
        check_padding(p->matrix, m);
        free(m);
        break;
    case FM_PIECE_KV_B: check_heads(w, p, t); break;
    }
}

static void check_all(const fm_weights *w, truth t)
{
    for (int i = 0; i < w->n_piece; i++) check_piece(w, &w->piece[i], t);
}

static float in_file(void *ctx, const char *tensor, int64_t row, int64_t col)
{
    return st_value(ctx, tensor, row, col);
}

/* Everything in dir/model.safetensors, in one arithmetic. */
static void check_dir(const char *config_dir, const char *dir, st_reader *file, fm_dtype act,
                      fm_packing packing)
{
    model m;
    read_config(&m, config_dir);
    m.packing = packing;
    if (fm_source_open_files(&m.source, dir) != FM_OK || load(&m, act, 2) != FM_OK)
        fail_msg("%s", fm_why());
    check_all(&m.w, (truth){in_file, file, 0});
    unload(&m);
}

static void check_checkpoint(const char *name)
{
    char      dir[512], path[600];
    st_reader r;
    snprintf(dir, sizeof dir, FM_TEST_DATA "/%s", name);
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    st_open(&r, path);
    for (fm_packing packing = FM_PACK_PANELS; packing <= FM_PACK_ROWS; packing++) {
        check_dir(dir, dir, &r, FM_BF16, packing);
        check_dir(dir, dir, &r, FM_F32, packing);
    }
    st_close(&r);
}

static void checkpoint_v3(void **state)
{
    (void)state;
    check_checkpoint("v3");
}

static void checkpoint_v2lite(void **state)
{
    (void)state;
    check_checkpoint("v2lite");
}

static void checkpoint_fp8(void **state)
{
    (void)state;
    check_checkpoint("v3wide-fp8");
}

static void checkpoint_int4(void **state)
{
    (void)state;
    check_checkpoint("v3-int4");
}

/* INT4 in panels; rows, which the GPU wants, become BF16. */
static void int4_stays_int4_in_panels(void **state)
{
    (void)state;
    for (fm_packing packing = FM_PACK_PANELS; packing <= FM_PACK_ROWS; packing++) {
        model m;
        read_config(&m, FM_TEST_DATA "/v3-int4");
        m.packing = packing;
        assert_int_equal(fm_source_open_files(&m.source, FM_TEST_DATA "/v3-int4"), FM_OK);
        assert_int_equal(load(&m, FM_BF16, 1), FM_OK);
        const fm_layer_weights *l    = &m.w.layer[1];
        const fm_dtype          want = packing == FM_PACK_PANELS ? FM_INT4 : FM_BF16;
        assert_int_equal(l->attn.q_down.dtype, want);
        assert_int_equal(l->ffn.expert[0].gate_up.dtype, want);
        assert_int_equal(l->attn.k_up[0].dtype, FM_BF16);
        assert_int_equal(l->ffn.router.dtype, FM_BF16);
        unload(&m);
    }
}

static void types_follow_the_source(void **state)
{
    (void)state;
    model m;
    read_config(&m, FM_TEST_DATA "/v3wide-fp8");
    assert_int_equal(fm_source_open_files(&m.source, FM_TEST_DATA "/v3wide-fp8"), FM_OK);
    assert_int_equal(load(&m, FM_BF16, 1), FM_OK);
    const fm_layer_weights *l = &m.w.layer[1];
    assert_int_equal(l->attn.q_down.dtype, FM_FP8);
    assert_int_equal(l->ffn.expert[0].gate_up.dtype, FM_FP8);
    assert_int_equal(l->attn.k_up[0].dtype, FM_BF16);
    assert_int_equal(l->ffn.router.dtype, FM_BF16);
    assert_int_equal(m.w.head.dtype, FM_BF16);
    assert_int_equal(m.w.n_mtp, 0); /* announced, but not in the file */
    unload(&m);
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    model a, b;
    read_config(&a, FM_TEST_DATA "/v3");
    read_config(&b, FM_TEST_DATA "/v3");
    assert_int_equal(fm_source_open_files(&a.source, FM_TEST_DATA "/v3"), FM_OK);
    assert_int_equal(fm_source_open_files(&b.source, FM_TEST_DATA "/v3"), FM_OK);
    assert_int_equal(load(&a, FM_BF16, 1), FM_OK);
    assert_int_equal(load(&b, FM_BF16, 5), FM_OK);
    assert_int_equal(a.bytes, b.bytes);
    assert_memory_equal(a.slab, b.slab, a.bytes);
    unload(&a);
    unload(&b);
}

/* --- rewritten checkpoints ------------------------------------------------ */

/* Writes one tensor of `r` into `w`, or not, or changed. */
typedef void rewrite_fn(st_writer *w, const st_reader *r, const char *name, const st_tensor *t);

static void copy(st_writer *w, const char *name, const st_tensor *t)
{
    st_add(w, name, t->dtype, t->shape, t->data, t->bytes);
}

static void rewrite(const temp_dir *d, const char *from, rewrite_fn *fn)
{
    char        path[600];
    st_reader   r;
    st_writer   w = {0};
    const char *name;
    json_t     *v;
    snprintf(path, sizeof path, FM_TEST_DATA "/%s/model.safetensors", from);
    st_open(&r, path);
    json_object_foreach(r.header, name, v)
    {
        if (!strcmp(name, "__metadata__")) continue;
        const st_tensor t = st_find(&r, name);
        fn(&w, &r, name, &t);
    }
    st_save(&w, d, "model.safetensors");
    st_close(&r);
}

static void check_rewritten(const char *from, rewrite_fn *fn)
{
    temp_dir  d;
    st_reader r;
    char      path[300], config_dir[512];
    temp_dir_make(&d);
    rewrite(&d, from, fn);
    snprintf(path, sizeof path, "%s/model.safetensors", d.path);
    snprintf(config_dir, sizeof config_dir, FM_TEST_DATA "/%s", from);
    st_open(&r, path);
    check_dir(config_dir, d.path, &r, FM_BF16, FM_PACK_PANELS);
    check_dir(config_dir, d.path, &r, FM_F32, FM_PACK_PANELS);
    st_close(&r);
    temp_dir_remove(&d);
}

/* Values that BF16 cannot hold, so that rounding shows. */
static void as_f32(st_writer *w, const st_reader *r, const char *name, const st_tensor *t)
{
    (void)r;
    const size_t n = t->bytes / 2;
    float       *f = malloc(n * sizeof *f);
    for (size_t i = 0; i < n; i++) {
        uint16_t b;
        memcpy(&b, t->data + 2 * i, 2);
        f[i] = fm_f32_of_bf16(b) * 1.0037f;
    }
    st_add(w, name, "F32", t->shape, f, n * sizeof *f);
    free(f);
}

/* Any bits are a half, once the exponent is kept small. */
static void as_f16(st_writer *w, const st_reader *r, const char *name, const st_tensor *t)
{
    (void)r;
    uint16_t *h = malloc(t->bytes);
    memcpy(h, t->data, t->bytes);
    for (size_t i = 0; i < t->bytes / 2; i++) h[i] &= 0xbfff;
    st_add(w, name, "F16", t->shape, h, t->bytes);
    free(h);
}

static void as_e8m0(st_writer *w, const st_reader *r, const char *name, const st_tensor *t)
{
    (void)r;
    if (!strstr(name, "_scale_inv")) {
        copy(w, name, t);
        return;
    }
    uint8_t e[64];
    assert_true(t->bytes / 4 <= sizeof e);
    for (size_t i = 0; i < t->bytes / 4; i++) {
        uint32_t u;
        memcpy(&u, t->data + 4 * i, 4);
        e[i] = (uint8_t)(u >> 23);
    }
    st_add(w, name, "F8_E8M0", t->shape, e, t->bytes / 4);
}

/* Tensors of v3wide-fp8 whose shapes change when heads become whole blocks of 128. */
static const struct {
    const char *name;
    int         rows, cols;
} whole_heads[] = {
    {"self_attn.q_b_proj.weight", 4 * (128 + 32), 160},
    {"self_attn.kv_a_proj_with_mqa.weight", 256 + 32, 256},
    {"self_attn.kv_b_proj.weight", 4 * (128 + 128), 256},
    {"self_attn.o_proj.weight", 256, 4 * 128},
};

static void add_random(st_writer *w, const char *name, int rows, int cols, int is_scale)
{
    const size_t n     = (size_t)rows * (size_t)cols;
    uint8_t     *bytes = malloc(n);
    float       *scale = malloc(n * sizeof *scale);
    char         shape[64];
    snprintf(shape, sizeof shape, "[%d, %d]", rows, cols);
    for (size_t i = 0; i < n; i++) {
        const uint32_t u = fm_rng_u32(11, i);
        bytes[i]         = (uint8_t)((u & 0x7f) == 0x7f ? 0 : u);
        scale[i]         = (float)(u >> 8) * 0x1p-24f + 0.5f;
    }
    if (is_scale)
        st_add(w, name, "F32", shape, scale, n * sizeof *scale);
    else
        st_add(w, name, "F8_E4M3", shape, bytes, n);
    free(bytes);
    free(scale);
}

static void with_whole_heads(st_writer *w, const st_reader *r, const char *name, const st_tensor *t)
{
    static const uint16_t zeros[256];
    (void)r;
    if (strstr(name, "kv_a_layernorm")) {
        st_add(w, name, "BF16", "[256]", zeros, sizeof zeros);
        return;
    }
    for (size_t i = 0; i < sizeof whole_heads / sizeof *whole_heads; i++) {
        const int is_scale = strstr(name, "_scale_inv") != NULL;
        const int each     = is_scale ? 128 : 1;
        if (!strstr(name, whole_heads[i].name)) continue;
        add_random(w, name, (whole_heads[i].rows + each - 1) / each,
                   (whole_heads[i].cols + each - 1) / each, is_scale);
        return;
    }
    copy(w, name, t);
}

/* One odd byte in front: no tensor is aligned any more. */
static void misaligned(st_writer *w, const st_reader *r, const char *name, const st_tensor *t)
{
    (void)r;
    if (!w->data.len) st_add(w, "odd", "U8", "[1]", "?", 1);
    copy(w, name, t);
}

/* config.json of v3wide-fp8 with heads as above. */
static void write_whole_heads_config(const temp_dir *d)
{
    json_t *c = json_load_file(FM_TEST_DATA "/v3wide-fp8/config.json", 0, NULL);
    json_object_set_new(c, "qk_nope_head_dim", json_integer(128));
    json_object_set_new(c, "v_head_dim", json_integer(128));
    json_object_set_new(c, "kv_lora_rank", json_integer(256));
    char *text = json_dumps(c, 0);
    temp_text(d, "config.json", text);
    free(text);
    json_decref(c);
}

/* In all three layouts each value of kv_b_proj has its own block's scale. */
static void kv_b_stays_fp8_where_it_can_be_widened(void **state)
{
    temp_dir  d;
    st_reader r;
    model     m;
    char      path[300];
    (void)state;
    temp_dir_make(&d);
    rewrite(&d, "v3wide-fp8", with_whole_heads);
    write_whole_heads_config(&d);
    snprintf(path, sizeof path, "%s/model.safetensors", d.path);
    st_open(&r, path);
    for (fm_packing packing = FM_PACK_PANELS; packing <= FM_PACK_ROWS; packing++)
        check_dir(d.path, d.path, &r, FM_BF16, packing);
    check_dir(d.path, d.path, &r, FM_F32, FM_PACK_PANELS);
    st_close(&r);

    read_config(&m, d.path);
    if (fm_source_open_files(&m.source, d.path) != FM_OK || load(&m, FM_BF16, 1) != FM_OK)
        fail_msg("%s", fm_why());
    assert_int_equal(m.w.layer[0].attn.k_up_t[0].dtype, fm_gemm_pick()->widen ? FM_FP8 : FM_BF16);
    unload(&m);
    temp_dir_remove(&d);
}

static void f32_source(void **state)
{
    (void)state;
    check_rewritten("v2lite", as_f32);
}

static void f16_source(void **state)
{
    (void)state;
    check_rewritten("v3", as_f16);
}

static void e8m0_scales(void **state)
{
    (void)state;
    check_rewritten("v3wide-fp8", as_e8m0);
}

static void misaligned_source(void **state)
{
    (void)state;
    check_rewritten("v3", misaligned);
}

/* Layer 3 serves as the MTP layer 4, too; eh_proj is made of embeddings. */
static void with_mtp(st_writer *w, const st_reader *r, const char *name, const st_tensor *t)
{
    static const char layer[] = "model.layers.3.";
    char              as[128];
    copy(w, name, t);
    if (!strncmp(name, layer, strlen(layer))) {
        snprintf(as, sizeof as, "model.layers.4.%s", name + strlen(layer));
        copy(w, as, t);
    }
    if (strcmp(name, "model.norm.weight") != 0) return;
    copy(w, "model.layers.4.enorm.weight", t);
    copy(w, "model.layers.4.hnorm.weight", t);
    copy(w, "model.layers.4.shared_head.norm.weight", t);
    const st_tensor e = st_find(r, "model.embed_tokens.weight");
    st_add(w, "model.layers.4.eh_proj.weight", "BF16", "[128, 256]", e.data, 128 * 256 * 2);
    copy(w, "model.layers.4.embed_tokens.weight", &e);
}

static void mtp_layer_is_kept(void **state)
{
    (void)state;
    check_rewritten("v3", with_mtp);
    temp_dir d;
    model    m;
    temp_dir_make(&d);
    rewrite(&d, "v3", with_mtp);
    read_config(&m, FM_TEST_DATA "/v3");
    assert_int_equal(fm_source_open_files(&m.source, d.path), FM_OK);
    assert_int_equal(load(&m, FM_BF16, 2), FM_OK);
    assert_int_equal(m.w.n_mtp, 1);
    assert_int_equal(m.w.mtp[0].of_embed.k + m.w.mtp[0].of_state.k, 256);
    unload(&m);
    temp_dir_remove(&d);
}

static void mtp_layer_takes_no_memory_unless_asked_for(void **state)
{
    (void)state;
    temp_dir d;
    model    plain = {0}, m = {0};
    temp_dir_make(&d);
    rewrite(&d, "v3", with_mtp);
    read_config(&plain, FM_TEST_DATA "/v3");
    read_config(&m, FM_TEST_DATA "/v3");
    assert_int_equal(fm_source_open_files(&plain.source, FM_TEST_DATA "/v3"), FM_OK);
    assert_int_equal(fm_source_open_files(&m.source, d.path), FM_OK);
    assert_int_equal(lay_out(&plain, FM_BF16), FM_OK);
    assert_int_equal(lay_out_with(&m, FM_BF16, 0), FM_OK);
    assert_int_equal(fm_source_mtp_layers(m.source, &m.config), 1);
    assert_int_equal(m.bytes, plain.bytes);
    assert_int_equal(m.w.n_piece, plain.w.n_piece);
    assert_int_equal(fm_weights_check(&m.w, m.source), FM_OK);
    assert_int_equal(fm_weights_fill(&m.w, m.source, 1, 0), FM_OK);
    unload(&plain);
    unload(&m);
    temp_dir_remove(&d);
}

/* --- dummy weights -------------------------------------------------------- */

static float in_source(void *ctx, const char *tensor, int64_t row, int64_t col)
{
    char      scale[160];
    fm_tensor t;
    float     v, s = 1;
    assert_int_equal(fm_source_find(ctx, tensor, &t), FM_OK);
    fm_source_read(ctx, &t, row, 1, col, 1, FM_F32, &v);
    if (t.dtype == FM_FP8) {
        snprintf(scale, sizeof scale, "%s_scale_inv", tensor);
        assert_int_equal(fm_source_find(ctx, scale, &t), FM_OK);
        fm_source_read(ctx, &t, row / 128, 1, col / 128, 1, FM_F32, &s);
    }
    return v * s;
}

/* Shapes that fill no panel: 70 words, 16 values a head, 40 rows of kv_down. */
static void dummy_with_ragged_panels(void **state)
{
    (void)state;
    static const char small[] =
        "{\"vocab_size\": 70, \"hidden_size\": 160, \"intermediate_size\": 96, "
        "\"moe_intermediate_size\": 32, \"num_hidden_layers\": 2, \"num_attention_heads\": 4, "
        "\"num_key_value_heads\": 4, \"n_routed_experts\": 4, \"num_experts_per_tok\": 2, "
        "\"n_group\": 2, \"topk_group\": 1, \"q_lora_rank\": 32, \"kv_lora_rank\": 32, "
        "\"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 10, \"v_head_dim\": 16%s}";
    for (int fp8 = 0; fp8 < 2; fp8++) {
        model       m    = {0};
        const char *text = fm_builtin_config("r1-mini");
        char        with[1024];
        snprintf(with, sizeof with, small,
                 fp8 ? ", \"quantization_config\": {\"quant_method\": \"fp8\", "
                       "\"weight_block_size\": [128, 128]}"
                     : "");
        if (fm_config_parse(&m.config, text, strlen(text), "small", with) != FM_OK)
            fail_msg("%s", fm_why());
        assert_int_equal(fm_source_open_dummy(&m.source, &m.config, 5), FM_OK);
        assert_int_equal(load(&m, FM_BF16, 2), FM_OK);
        check_all(&m.w, (truth){in_source, m.source, 0});
        unload(&m);
    }
}

/* --- faults --------------------------------------------------------------- */

static const char fp8_gate[] = "model.layers.1.mlp.experts.2.gate_proj.weight";

static const struct fault {
    const char *name;          /* which tensor */
    const char *dtype, *shape; /* what it becomes; dtype NULL: it is dropped */
    int         bytes;
    fm_status   want;
} faults[] = {
    {"lm_head.weight", NULL, NULL, 0, FM_E_FORMAT},
    {"model.layers.1.mlp.experts.2.up_proj.weight", NULL, NULL, 0, FM_E_FORMAT},
    {"model.layers.0.self_attn.kv_b_proj.weight", NULL, NULL, 0, FM_E_FORMAT},
    {"model.layers.1.mlp.experts.2.gate_proj.weight_scale_inv", NULL, NULL, 0, FM_E_FORMAT},
    {"model.norm.weight", "BF16", "[255]", 510, FM_E_FORMAT},
    {"model.norm.weight", "BF16", "[256, 1]", 512, FM_E_FORMAT},
    {"model.norm.weight", "F64", "[256]", 2048, FM_E_NOSUP},
    {"model.norm.weight", "F8_E4M3", "[256]", 256, FM_E_NOSUP},
    {"model.layers.1.mlp.gate.weight", "BF16", "[256, 8]", 4096, FM_E_FORMAT},
    {"model.layers.1.mlp.gate.weight", "BF16", "[8, 16, 16]", 4096, FM_E_NOSUP},
    {fp8_gate, "F8_E8M0", "[128, 256]", 128 * 256, FM_E_NOSUP},
    {fp8_gate, "F8_E5M2", "[128, 256]", 128 * 256, FM_E_NOSUP},
    {"model.layers.1.mlp.experts.2.up_proj.weight", "BF16", "[128, 256]", 128 * 256 * 2,
     FM_E_NOSUP},
    {"model.layers.1.mlp.experts.2.gate_proj.weight_scale_inv", "F32", "[2, 1]", 8, FM_E_FORMAT},
    {"model.layers.1.mlp.experts.2.gate_proj.weight_scale_inv", "F32", "[1, 1]", 4, FM_E_FORMAT},
    {"model.layers.1.mlp.experts.2.gate_proj.weight_scale_inv", "BF16", "[1, 2]", 4, FM_E_NOSUP},
};

static const struct fault *current;

static void with_fault(st_writer *w, const st_reader *r, const char *name, const st_tensor *t)
{
    static const char zeros[128 * 256 * 2];
    (void)r;
    if (strcmp(name, current->name) != 0)
        copy(w, name, t);
    else if (current->dtype)
        st_add(w, name, current->dtype, current->shape, zeros, (size_t)current->bytes);
}

static void faults_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        temp_dir d;
        model    m;
        current = &faults[i];
        temp_dir_make(&d);
        rewrite(&d, "v3wide-fp8", with_fault);
        read_config(&m, FM_TEST_DATA "/v3wide-fp8");
        if (fm_source_open_files(&m.source, d.path) != FM_OK) fail_msg("%s", fm_why());
        const fm_status rc = load(&m, FM_BF16, 2);
        if (rc != current->want) fail_msg("%s as %s: status %d", current->name, current->shape, rc);
        if (!strstr(fm_why(), current->name) || !strstr(fm_why(), d.path)) fail_msg("%s", fm_why());
        unload(&m);
        temp_dir_remove(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_v3),
        cmocka_unit_test(checkpoint_v2lite),
        cmocka_unit_test(checkpoint_fp8),
        cmocka_unit_test(checkpoint_int4),
        cmocka_unit_test(int4_stays_int4_in_panels),
        cmocka_unit_test(types_follow_the_source),
        cmocka_unit_test(kv_b_stays_fp8_where_it_can_be_widened),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(f32_source),
        cmocka_unit_test(f16_source),
        cmocka_unit_test(e8m0_scales),
        cmocka_unit_test(misaligned_source),
        cmocka_unit_test(mtp_layer_is_kept),
        cmocka_unit_test(mtp_layer_takes_no_memory_unless_asked_for),
        cmocka_unit_test(dummy_with_ragged_panels),
        cmocka_unit_test(faults_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
