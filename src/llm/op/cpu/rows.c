/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that take one row at a time; rows are divided among the threads. */
#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu/cpu_internal.h"

enum { MAX_ROPE = 1024 };

typedef struct {
    const fm_run *r;
    const fm_cpu *b;
    fm_f32s       x, y;
    fm_act        act;
    const void   *w;
    const int32_t *word; /* [T] rows of w */
    int           layer;
} row_args;

typedef void row_fn(const row_args *a, int i);

static void each_row(row_fn *fn, const row_args *a, int n_row, int width)
{
    if (fm__are_few_numbers(n_row, width)) {
        for (int i = 0; i < n_row; i++) fn(a, i);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(a->b->n_thread)
    for (int i = 0; i < n_row; i++) fn(a, i);
}

static float *row_of(fm_f32s x, int i)
{
    return x.data + (size_t)i * (size_t)x.width;
}

static void embed_row(const row_args *a, int i)
{
    const size_t at = (size_t)a->word[i] * (size_t)a->x.width * a->b->act_bytes;
    fm_row_load(row_of(a->x, i), a->b->act, (const char *)a->w + at, a->x.width);
}

static void norm_row(const row_args *a, int i)
{
    fm_row_rmsnorm(fm__act_at(a->b, a->act, i), a->b->act, row_of(a->x, i), a->w, a->r->config->eps,
                   a->x.width);
}

static void gather_row(const row_args *a, int i)
{
    fm_row_rmsnorm(fm__act_at(a->b, a->act, i), a->b->act, row_of(a->x, a->r->batch->out[i]), a->w,
                   a->r->config->eps, a->x.width);
}

static void add_row(const row_args *a, int i)
{
    fm_row_add(row_of(a->x, i), row_of(a->y, i), a->x.width);
}

static void rotate_query(const row_args *a, int i)
{
    const fm_model_config *c  = a->r->config;
    const fm_cpu          *b  = a->b;
    const size_t           at = (size_t)a->r->batch->pos[i] * (size_t)(c->rope / 2);
    for (int h = 0; h < a->r->weights->n_head; h++) {
        const size_t col  = (size_t)(h * (c->nope + c->rope) + c->nope);
        void        *part = fm__act_at(b, a->act, i) + col * b->act_bytes;
        if (b->act == FM_BF16)
            fm_row_rotate_bf16(part, b->cos + at, b->sin + at, c->rope, c->rope_interleave);
        else fm_row_rotate(part, b->cos + at, b->sin + at, c->rope, c->rope_interleave);
    }
}

/* cache[pos] = RMSNorm(cKV) | RoPE(kR) | zeros up to the width */
static void store_token(const row_args *a, int i)
{
    const fm_model_config *c   = a->r->config;
    const fm_cpu          *b   = a->b;
    const int              pos = a->r->batch->pos[i], used = c->kv_lora + c->rope;
    const size_t           at  = (size_t)pos * (size_t)(c->rope / 2);
    const float           *ckv = row_of(a->x, i);
    char *dst = fm__kv_at(a->r, b, a->layer, &a->r->batch->span[b->row_span[i]], pos);
    float key[MAX_ROPE];
    fm_row_rmsnorm(dst, b->act, ckv, a->w, c->eps, c->kv_lora);
    memcpy(key, ckv + c->kv_lora, (size_t)c->rope * sizeof *key);
    fm_row_rotate(key, b->cos + at, b->sin + at, c->rope, c->rope_interleave);
    fm_row_store(dst + (size_t)c->kv_lora * b->act_bytes, b->act, key, c->rope);
    memset(dst + (size_t)used * b->act_bytes, 0, (size_t)(fm_kv_width(c) - used) * b->act_bytes);
}

void fm__note_spans(fm_run *r)
{
    const fm_batch *batch = r->batch;
    for (int k = 0; k < batch->n_span; k++)
        for (int i = 0; i < batch->span[k].n_row; i++)
            fm__cpu(r)->row_span[batch->span[k].row0 + i] = k;
}

void fm__cpu_embed(fm_run *r, fm_f32s x, const void *table)
{
    row_args a = {.r = r, .b = fm__cpu(r), .x = x, .w = table, .word = fm__words(r)};
    fm__note_spans(r);
    if (r->ranks.attn->n_rank > 1) {
        a.w    = fm__gather_words(r, table, a.word);
        a.word = a.b->exchange.word_at;
    }
    if (r->fault == FM_OK) each_row(embed_row, &a, r->batch->n_row, x.width);
}

void fm__cpu_rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    const row_args a = {.r = r, .b = fm__cpu(r), .x = x, .act = y, .w = w};
    each_row(norm_row, &a, r->batch->n_row, x.width);
}

void fm__cpu_gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    const row_args a = {.r = r, .b = fm__cpu(r), .x = x, .act = y, .w = w};
    fm__await_logits(r); /* the product after this writes logits */
    each_row(gather_row, &a, r->batch->n_out, x.width);
}

void fm__cpu_add(fm_run *r, fm_f32s x, fm_f32s y)
{
    const row_args a = {.r = r, .b = fm__cpu(r), .x = x, .y = y};
    each_row(add_row, &a, r->batch->n_row, x.width);
}

void fm__cpu_rope_q(fm_run *r, fm_act q)
{
    const row_args a = {.r = r, .b = fm__cpu(r), .act = q};
    each_row(rotate_query, &a, r->batch->n_row, q.width);
}

void fm__cpu_store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm)
{
    const row_args a = {.r = r, .b = fm__cpu(r), .x = ckv, .w = norm, .layer = layer};
    each_row(store_token, &a, r->batch->n_row, ckv.width);
}
