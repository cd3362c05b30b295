/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of what ranks exchange. */
#include "llm/op/cpu/cpu_internal.h"

/* Pieces of an act or y buffer of `width` a row, the own one being the buffer itself. */
static void *carve_pieces(fm_pieces *p, fm_columns col, size_t element, fm_share me, size_t rows,
                          int width, fm_slab *s)
{
    *p = fm__pieces_of(col, element, s);
    return fm__own_piece(p, fm_slab_take(s, rows * (size_t)width * element), me.index, (int)rows);
}

static void carve_dispatch(fm_cpu_exchange *x, const fm_model_config *c, const fm_shard *shard,
                           size_t rows, fm_slab *s)
{
    const size_t n = (size_t)shard->group.n;
    if (n == 1) return;
    x->rows_bytes  = fm_slab_take(s, n * sizeof *x->rows_bytes);
    x->route_bytes = fm_slab_take(s, n * sizeof *x->route_bytes);
    x->route_room  = fm_slab_take(s, 2 * n * rows * (size_t)c->top_k * sizeof *x->route_room);
}

/* Places of the buffers that are pieces, and of what they are gathered in. */
void fm__carve_exchange(fm_cpu *b, fm_acts *a, const fm_model_config *c, const fm_shard *shard,
                        const fm_run_limits *lim, fm_slab *s)
{
    const fm_activation *in  = fm_activation_find(&lim->activations, FM_ACT_INPUT, FM_ACT_PIECE);
    const fm_activation *sum = fm_activation_find(&lim->activations, FM_ACT_F32, FM_ACT_PIECE);
    const fm_activation *all = fm_activation_find(&lim->activations, FM_ACT_INPUT, FM_ACT_GATHERED);
    fm_cpu_exchange     *x   = &b->exchange;
    const fm_share       me  = shard->attn;
    const size_t         T   = (size_t)lim->max_rows;
    const int            wide = fm__act_stride(b, all->width, me.n == 1);
    fm_act              *o    = fm_activation_at(a, in), *o_all = fm_activation_at(a, all);
    fm_f32s             *y    = fm_activation_at(a, sum);
    *o = (fm_act){carve_pieces(&x->o, in->columns, b->act_bytes, me, T, wide, s), in->width,
                  me.n == 1 ? wide : in->width};
    *y = (fm_f32s){carve_pieces(&x->y, sum->columns, sizeof(float), me, T, c->hidden, s),
                   sum->width};
    *o_all = *o;
    carve_dispatch(x, c, shard, T, s);
    if (me.n == 1) return;
    *o_all     = (fm_act){fm_slab_take(s, T * (size_t)wide * b->act_bytes), wide, wide};
    x->word_at = fm_slab_take(s, T * sizeof *x->word_at);
}

static void end_job(fm_comm_job *job)
{
    if (job->comm && !job->is_done && !job->comm->is_broken) (void)fm_comm_wait(job);
}

/* Groups are closed after the run: no job of theirs may be left.  One that
 * fails here has broken its group, and closing the group reports that. */
void fm__exchange_fini(fm_cpu *b)
{
    fm_cpu_exchange *x = &b->exchange;
    end_job(&x->mlp.job);
    end_job(&x->middle.job);
    end_job(&x->route_job);
    end_job(&x->rows_job);
    end_job(&x->pass_job);
    for (int i = 0; i < FM_LOGITS_IN_FLIGHT; i++) end_job(&x->logit_job[i]);
}
