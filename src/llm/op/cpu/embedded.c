/* SPDX-License-Identifier: Apache-2.0 */
/* x = W RMSNorm(Emb(token)): the part of the MTP layer's input that depends on the token alone.  Where
 * the vocabulary is small, results are remembered by token; a product's rows do not depend on each
 * other, so what is remembered has the bits of what would be computed. */
#include <string.h>

#include "llm/op/cpu/cpu_internal.h"

enum { MOST_BYTES = 8 << 20 };

void fm__carve_embedded(fm_cpu *b, const fm_model_config *c, const fm_shard *shard, fm_slab *s)
{
    const size_t n = (size_t)c->vocab, bytes = n * (size_t)c->hidden * sizeof *b->embedded;
    if (bytes > MOST_BYTES || shard->attn.n > 1) return; /* other ranks have other words */
    b->embedded    = fm_slab_take(s, bytes);
    b->is_embedded = fm_slab_take(s, n * sizeof *b->is_embedded);
}

typedef struct {
    const void      *table;
    const float     *norm;
    const fm_matrix *w;
    fm_act           h; /* room for a row */
} embedding;

static float *row_of_word(const fm_run *r, int32_t word)
{
    const fm_cpu *b = r->backend;
    return b->embedded + (size_t)word * (size_t)r->config->hidden;
}

static void compute_word(fm_run *r, const embedding *e, int32_t word)
{
    fm_cpu       *b    = fm__cpu(r);
    const int     D    = r->config->hidden;
    float        *wide = b->scratch[0].row;
    const fm_f32s to   = {row_of_word(r, word), D};
    fm_row_load(wide, b->act, (const char *)e->table + (size_t)word * (size_t)D * b->act_bytes, D);
    fm_row_rmsnorm(e->h.data, b->act, wide, e->norm, r->config->eps, D);
    fm__cpu_linear_f32(r, to, e->h, e->w, 1);
    b->is_embedded[word] = 1;
}

/* A row lies anywhere in a table larger than L2: it is fetched while the row before it is copied. */
static void copy_rows(const fm_run *r, fm_f32s x, const int32_t *word)
{
    const size_t bytes = (size_t)r->config->hidden * sizeof(float);
    for (int i = 0; i < r->batch->n_row; i++) {
        const char *next = (const char *)row_of_word(r, word[i + 1 < r->batch->n_row ? i + 1 : i]);
        for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch(next + at);
        memcpy(x.data + (size_t)i * (size_t)x.width, row_of_word(r, word[i]), bytes);
    }
}

void fm__cpu_embed_product(fm_run *r, fm_f32s x, fm_act h, const void *table, const float *norm,
                           const fm_matrix *w)
{
    const fm_cpu   *b = fm__cpu(r);
    const embedding e = {table, norm, w, h};
    if (!b->embedded || fm__quantises(r, w)) {
        fm__cpu_embed(r, x, table);
        if (r->fault == FM_OK) fm__cpu_rmsnorm(r, h, x, norm);
        if (r->fault == FM_OK) fm__cpu_linear_f32(r, x, h, w, r->batch->n_row);
        return;
    }
    const int32_t *word = fm__words(r);
    for (int i = 0; i < r->batch->n_row; i++)
        if (!b->is_embedded[word[i]]) compute_word(r, &e, word[i]);
    copy_rows(r, x, word);
}
