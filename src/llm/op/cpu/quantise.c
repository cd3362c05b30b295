/* SPDX-License-Identifier: Apache-2.0 */
/* Activations of FP8 weights, quantised to E4M3 where the checkpoint wants it (W8A8).  Values stay
 * bf16, which holds E4M3 exactly, so that the same kernels multiply them; scales lie beside. */
#include "llm/op/cpu/cpu_internal.h"

static int widest(const fm_model_config *c)
{
    const int o = c->n_head * c->v_dim, most = o > c->hidden ? o : c->hidden;
    return most > c->q_lora ? most : c->q_lora;
}

void fm__carve_quantised(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                         const fm_run_limits *lim, fm_slab *s)
{
    const size_t groups = (size_t)shard->group.n, T = (size_t)lim->max_rows;
    const size_t rows  = (size_t)fm__min(lim->max_rows, FM_PASS_ROWS);
    const size_t all   = T * groups < FM_PASS_ROWS ? T * groups : FM_PASS_ROWS;
    const size_t pairs = all * (size_t)fm__min(c->top_k, fm_shard_n_expert(shard, c));
    const size_t most  = all > T ? all : T;
    b->quant.data      = fm_slab_take(s, most * fm__row_stride(b, widest(c)));
    b->quant.scale = fm_slab_take(s, most * (size_t)fm__blocks(widest(c)) * sizeof *b->quant.scale);
    b->mlp_scale   = fm_slab_take(s, rows * (size_t)fm__blocks(fm_shard_widest_mlp(shard, c)) *
                                         sizeof *b->mlp_scale);
    b->middle_scale =
        fm_slab_take(s, pairs * (size_t)fm__blocks(c->moe_inter) * sizeof *b->middle_scale);
}

int fm__quantises(const fm_run *r, const fm_matrix *w)
{
    return r->config->fp8_activations && w->dtype == FM_FP8;
}

static void quantise(const fm_cpu *b, fm_quantised to, fm_quantised from, int k, int n_row)
{
#pragma omp parallel for schedule(static) num_threads(b->n_thread) if (n_row > 1)
    for (int i = 0; i < n_row; i++)
        fm_row_quantise((fm_bf16 *)(to.data + (size_t)i * to.stride),
                        to.scale + (size_t)i * (size_t)fm__blocks(k),
                        (const fm_bf16 *)(from.data + (size_t)i * from.stride), k);
}

/* Rows row0 .. row0 + n_row of x for a product with w: a quantised copy, or themselves. */
fm_quantised fm__rows_for(fm_run *r, fm_act x, const fm_matrix *w, int row0, int n_row)
{
    fm_cpu            *b    = fm__cpu(r);
    const fm_quantised from = {fm__act_at(b, x, row0), (size_t)x.stride * b->act_bytes, NULL};
    fm_quantised       to   = b->quant;
    FM_BUG_UNLESS(x.width == w->k);
    if (!fm__quantises(r, w)) return from;
    to.stride = fm__row_stride(b, w->k);
    quantise(b, to, from, w->k, n_row);
    return to;
}

/* The same for rows that no other op reads: they become their quantised values. */
fm_quantised fm__rows_in_place(fm_run *r, fm_act x, float *scale, const fm_matrix *w, int n_row)
{
    fm_cpu      *b    = fm__cpu(r);
    fm_quantised rows = {x.data, (size_t)x.stride * b->act_bytes, NULL};
    FM_BUG_UNLESS(x.width == w->k);
    if (!fm__quantises(r, w)) return rows;
    rows.scale = scale;
    quantise(b, rows, rows, w->k, n_row);
    return rows;
}
