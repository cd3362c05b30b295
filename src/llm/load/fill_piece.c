/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "llm/load/fill_internal.h"

/* A tensor with its block scales, if it has any. */
typedef struct {
    fm_tensor t, scale;
    int       scaled;
} operand;

void fm__scale_name(char out[FM__SCALE_NAME], const fm_tensor *t)
{
    const int packed = (int)strlen(t->name) - (int)strlen("_packed");
    if (t->dtype == FM_INT4)
        snprintf(out, FM__SCALE_NAME, "%.*s_scale", packed, t->name);
    else
        snprintf(out, FM__SCALE_NAME, "%s_scale_inv", t->name);
}

/* Everything was found once by fm_weights_check. */
static operand find(const fm__fill *f, const char *tensor)
{
    operand x = {0};
    FM_BUG_UNLESS(fm_source_find(f->source, tensor, &x.t) == FM_OK);
    x.scaled = x.t.dtype == FM_FP8 || x.t.dtype == FM_INT4;
    if (x.scaled) {
        char name[FM__SCALE_NAME];
        fm__scale_name(name, &x.t);
        FM_BUG_UNLESS(fm_source_find(f->source, name, &x.scale) == FM_OK);
    }
    return x;
}

void fm__prefetch(const fm__fill *f, const char *tensor, int64_t row0, int64_t row1)
{
    const operand x = find(f, tensor);
    if (row1 > x.t.rows) row1 = x.t.rows;
    if (row0 < row1) fm_source_prefetch(f->source, &x.t, row0, row1 - row0);
}

/* --- rows ----------------------------------------------------------------- */

static void apply_scales(const fm__fill *f, const operand *x, int64_t row, int64_t col0, int64_t k)
{
    const int     fp8  = x->t.dtype == FM_FP8;
    const int64_t each = fp8 ? FM_FP8_BLOCK : FM_INT4_GROUP;
    const int64_t b0 = col0 / each, b1 = (col0 + k - 1) / each + 1;
    float        *s = f->scale;
    fm_source_read(f->source, &x->scale, fp8 ? row / each : row, 1, b0, b1 - b0, FM_F32, s);
    for (int64_t i = 0; i < k; i++) f->wide[i] *= s[(col0 + i) / each - b0];
}

/* One row's part in the type `kept`: bytes where the types agree, otherwise converted
 * through f32, with the scales of FP8 and INT4 applied. */
static void read_row(const fm__fill *f, const operand *x, int64_t row, int64_t col0, int64_t k,
                     fm_dtype kept, void *dst)
{
    if (x->t.dtype == kept) {
        fm_source_read(f->source, &x->t, row, 1, col0, k, kept, dst);
        return;
    }
    fm_source_read(f->source, &x->t, row, 1, col0, k, FM_F32, f->wide);
    if (x->scaled) apply_scales(f, x, row, col0, k);
    if (kept == FM_F32)
        memcpy(dst, f->wide, (size_t)k * sizeof(float));
    else
        for (int64_t i = 0; i < k; i++) ((fm_bf16 *)dst)[i] = fm_bf16_of_f32(f->wide[i]);
}

/* Pointers to rows [row0, row0 + n): into the mapped file if that is possible,
 * otherwise into scratch from its row `at` on. */
static void gather(const fm__fill *f, const operand *x, int64_t row0, int n, int64_t col0,
                   int64_t k, fm_dtype kept, int at, const void **row)
{
    const char *data = x->t.dtype == kept ? fm_source_data(f->source, &x->t) : NULL;
    for (int i = 0; i < n; i++) {
        char *mine = (char *)f->rows + fm_dtype_row_bytes(kept, (size_t)((at + i) * k));
        if (!data) read_row(f, x, row0 + i, col0, k, kept, mine);
        row[i] =
            data ? data + fm_dtype_row_bytes(kept, (size_t)((row0 + i) * x->t.cols + col0)) : mine;
    }
}

static int at_most(int64_t n, int most) { return n < 0 ? 0 : n < most ? (int)n : most; }

/* --- INT4 scales of rows --------------------------------------------------- */

/* To scratch from its row `at` on. */
static void gather_scales(const fm__fill *f, const operand *x, int64_t row0, int n,
                          const fm_piece *p, int at, const fm_bf16 **scale)
{
    const int64_t each = p->k / FM_INT4_GROUP;
    FM_BUG_UNLESS(p->col0 % FM_INT4_GROUP == 0 && p->k % FM_INT4_GROUP == 0);
    for (int i = 0; i < n; i++) {
        fm_bf16 *mine = (fm_bf16 *)f->scale + (at + i) * each;
        fm_source_read(f->source, &x->scale, row0 + i, 1, p->col0 / FM_INT4_GROUP, each, FM_BF16,
                       mine);
        scale[i] = mine;
    }
}

/* --- FP8 scales of a panel ------------------------------------------------ */

/* scale[block][half] of outputs whose first row is `row`. */
static void half_scales(const fm__fill *f, const operand *x, int64_t row, const fm_piece *p,
                        float *panel_scale, int half)
{
    const int64_t n_block = (p->k + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK;
    /* So that a half never straddles two blocks. */
    FM_BUG_UNLESS(row % (FM_PANEL / 2) == 0 && p->col0 % FM_FP8_BLOCK == 0);
    if (row >= x->t.rows) row = x->t.rows - 1; /* a half that is only padding */
    float *s = f->scale;
    fm_source_read(f->source, &x->scale, row / FM_FP8_BLOCK, 1, p->col0 / FM_FP8_BLOCK, n_block,
                   FM_F32, s);
    for (int64_t b = 0; b < n_block; b++) panel_scale[2 * b + half] = s[b];
}

static float *panel_scale(const fm_matrix *m, int panel)
{
    return m->scale + (size_t)panel * (size_t)fm_panel_scales(m->k);
}

static void *panel_at(const fm_matrix *m, int panel)
{
    return (char *)m->panels + (size_t)panel * fm_panel_bytes(m->dtype, m->k);
}

/* --- rows, not panels ----------------------------------------------------- */

static void put(const fm__fill *f, void *dst, const void *src, size_t bytes)
{
    if (f->sink)
        f->sink->put(f->sink->ctx, f->thread, dst, src, bytes);
    else
        memcpy(dst, src, bytes);
}

/* The 32 rows that would be panel i. */
static void put_rows(const fm__fill *f, const fm_matrix *m, int i, const void *const row[FM_PANEL])
{
    const size_t bytes = (size_t)m->k * fm_dtype_bytes(m->dtype);
    int          n     = 0;
    for (; n < FM_PANEL && row[n]; n++)
        memcpy((char *)f->staged + (size_t)n * bytes, row[n], bytes);
    put(f, panel_at(m, i), f->staged, (size_t)n * bytes);
}

/* Scales of all of a piece's rows; it may begin within a block. */
static int64_t scale_rows(const fm_piece *p)
{
    return (p->row0 % FM_FP8_BLOCK + p->n + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK;
}

static void put_scales(const fm__fill *f, const operand *x, const fm_piece *p, float *to)
{
    const int64_t n_col = (p->k + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK;
    for (int64_t r = 0; p->n && r < scale_rows(p); r++) {
        fm_source_read(f->source, &x->scale, p->row0 / FM_FP8_BLOCK + r, 1, 0, n_col, FM_F32,
                       f->scale);
        put(f, to + r * n_col, f->scale, (size_t)n_col * sizeof *to);
    }
}

static int is_rows(const fm__fill *f) { return f->w->packing == FM_PACK_ROWS; }

/* --- pieces --------------------------------------------------------------- */

void fm__fill_vector(fm__fill *f, const fm_piece *p)
{
    const operand x = find(f, p->tensor);
    fm_source_read(f->source, &x.t, 0, 1, p->col0, p->k, FM_F32, f->wide);
    put(f, p->vector, f->wide, (size_t)p->k * sizeof(float));
}

void fm__fill_table(fm__fill *f, const fm_piece *p, int begin, int end)
{
    const operand x     = find(f, p->tensor);
    const size_t  bytes = (size_t)p->k * fm_dtype_bytes(f->w->act);
    for (int i = begin; i < end; i++) {
        read_row(f, &x, p->row0 + i, p->col0, p->k, f->w->act, f->staged);
        put(f, (char *)p->table + (size_t)i * bytes, f->staged, bytes);
    }
}

void fm__fill_matrix(fm__fill *f, const fm_piece *p, int begin, int end)
{
    const fm_matrix *m = p->matrix;
    const operand    x = find(f, p->tensor);
    if (is_rows(f) && m->scale && begin == 0) put_scales(f, &x, p, m->scale);
    for (int i = begin; i < end; i++) {
        const void   *row[FM_PANEL] = {0};
        const int64_t first         = p->row0 + (int64_t)i * FM_PANEL;
        const int     n             = at_most(p->row0 + p->n - first, FM_PANEL);
        gather(f, &x, first, n, p->col0, p->k, m->dtype, 0, row);
        if (is_rows(f)) {
            put_rows(f, m, i, row);
            continue;
        }
        if (m->dtype == FM_INT4) {
            const fm_bf16 *scale[FM_PANEL] = {0};
            gather_scales(f, &x, first, n, p, 0, scale);
            fm_pack_int4(panel_at(m, i), (const uint8_t *const *)row, scale, m->k);
            continue;
        }
        fm_pack_panel(panel_at(m, i), row, m->dtype, m->k);
        for (int half = 0; m->scale && half < 2; half++)
            half_scales(f, &x, first + half * (FM_PANEL / 2), p, panel_scale(m, i), half);
    }
}

void fm__fill_gate_up(fm__fill *f, const fm_piece *p, int begin, int end)
{
    enum { HALF = FM_PANEL / 2 };
    const fm_matrix *m       = p->matrix;
    const operand    x[2]    = {find(f, p->tensor), find(f, p->tensor2)};
    const int        panels  = !is_rows(f);
    const int64_t    n_scale = scale_rows(p) * ((p->k + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK);
    for (int half = 0; !panels && m->scale && begin == 0 && half < 2; half++)
        put_scales(f, &x[half], p, m->scale + half * n_scale);
    for (int i = begin; i < end; i++) {
        const void    *row[FM_PANEL]   = {0};
        const fm_bf16 *scale[FM_PANEL] = {0};
        const int64_t  first           = p->row0 + (int64_t)i * HALF;
        const int      n               = at_most(p->row0 + p->n - first, HALF);
        for (int half = 0; half < 2; half++) {
            gather(f, &x[half], first, n, p->col0, p->k, m->dtype, half * HALF, row + half * HALF);
            if (m->dtype == FM_INT4)
                gather_scales(f, &x[half], first, n, p, half * HALF, scale + half * HALF);
            if (panels && m->scale) half_scales(f, &x[half], first, p, panel_scale(m, i), half);
        }
        if (m->dtype == FM_INT4)
            fm_pack_int4(panel_at(m, i), (const uint8_t *const *)row, scale, m->k);
        else if (panels)
            fm_pack_panel(panel_at(m, i), row, m->dtype, m->k);
        else
            put_rows(f, m, i, row);
    }
}

static void pack_rows(const fm_matrix *m, const char *rows)
{
    const size_t bytes = (size_t)m->k * fm_dtype_bytes(m->dtype);
    for (int i = 0; i * FM_PANEL < m->n; i++) {
        const void *row[FM_PANEL] = {0};
        for (int j = 0; j < FM_PANEL && i * FM_PANEL + j < m->n; j++)
            row[j] = rows + (size_t)(i * FM_PANEL + j) * bytes;
        fm_pack_panel(panel_at(m, i), row, m->dtype, m->k);
    }
}

/* out[c, r] = in[r, c] */
static void transpose(void *out, const void *in, int n_row, int n_col, fm_dtype type)
{
    const size_t size = fm_dtype_bytes(type);
    for (int r = 0; r < n_row; r++)
        for (int c = 0; c < n_col; c++)
            memcpy((char *)out + ((size_t)c * (size_t)n_row + (size_t)r) * size,
                   (const char *)in + ((size_t)r * (size_t)n_col + (size_t)c) * size, size);
}

/* FP8 scales of a head's panels; a head has whole blocks. */
static void kv_b_scales(const fm__fill *f, const operand *x, int64_t row0, const fm_attn_weights *a,
                        int h)
{
    const fm_matrix *up[3] = {&a->k_up[h], &a->v_up[h], &a->k_up_t[h]};
    for (int i = 0; i < 3; i++) {
        const int transposed = i == 2, v_up = i == 1;
        for (int q = 0; q < up[i]->n / FM_PANEL; q++)
            for (int s = 0; s < up[i]->k / FM_FP8_BLOCK; s++) {
                const int     n = q * FM_PANEL, k = s * FM_FP8_BLOCK;
                const int64_t row = row0 + (v_up ? a->k_up[h].n : 0) + (transposed ? k : n);
                float        *to  = panel_scale(up[i], q) + 2 * s;
                fm_source_read(f->source, &x->scale, row / FM_FP8_BLOCK, 1,
                               (transposed ? n : k) / FM_FP8_BLOCK, 1, FM_F32, to);
                to[1] = to[0];
            }
    }
}

void fm__fill_kv_b(fm__fill *f, const fm_piece *p, int begin, int end)
{
    const fm_model_config *c         = f->w->config;
    const operand          x         = find(f, p->tensor);
    const int              rows      = c->nope + c->v_dim;
    const fm_dtype         type      = p->attn->v_up[0].dtype;
    const size_t           row_bytes = (size_t)c->kv_lora * fm_dtype_bytes(type);

    for (int h = begin; h < end; h++) {
        const int64_t row0 = p->row0 + (int64_t)h * rows;
        char         *head = f->rows;
        for (int r = 0; r < rows; r++)
            read_row(f, &x, row0 + r, 0, c->kv_lora, type, head + (size_t)r * row_bytes);
        if (is_rows(f)) {
            put(f, p->attn->k_up[h].panels, head, (size_t)rows * row_bytes);
            continue;
        }
        pack_rows(&p->attn->k_up[h], head);
        pack_rows(&p->attn->v_up[h], head + (size_t)c->nope * row_bytes);
        transpose(f->transposed, head, c->nope, c->kv_lora, type);
        pack_rows(&p->attn->k_up_t[h], f->transposed);
        if (type == FM_FP8) kv_b_scales(f, &x, row0, p->attn, h);
    }
}

/* --- scratch -------------------------------------------------------------- */

fm_status fm__fill_init(fm__fill *f, const fm_weights *w, const fm_source *source)
{
    const fm_model_config *c    = w->config;
    size_t                 cols = (size_t)c->kv_lora, rows;
    for (int i = 0; i < w->n_piece; i++)
        if ((size_t)w->piece[i].k > cols) cols = (size_t)w->piece[i].k;
    rows              = FM_PANEL * cols;
    const size_t head = (size_t)(c->nope + c->v_dim) * (size_t)c->kv_lora;
    if (head > rows) rows = head;

    *f        = (fm__fill){.w = w, .source = source};
    f->rows   = malloc(rows * sizeof(float));
    f->wide   = malloc(cols * sizeof(float));
    f->scale  = malloc((cols + 2) * sizeof(float)); /* 32 rows of cols/32 in bf16, or one in f32 */
    f->transposed = malloc((size_t)c->nope * (size_t)c->kv_lora * sizeof(float));
    f->staged = malloc(FM_PANEL * cols * sizeof(float));
    if (f->rows && f->wide && f->scale && f->transposed && f->staged) return FM_OK;
    fm__fill_fini(f);
    return fm_fail(FM_E_OOM, "no memory to load weights");
}

void fm__fill_fini(fm__fill *f)
{
    free(f->rows);
    free(f->wide);
    free(f->scale);
    free(f->transposed);
    free(f->staged);
    *f = (fm__fill){0};
}
