/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of what ranks exchange. */
#include "llm/op/cuda/cuda_internal.h"

/* Of known tokens a word each, of the others one from every rank. */
static void carve_words(fm_cuda_exchange *x, const fm_share attn, size_t T, int D, fm_slab *s)
{
    const size_t rows  = T + (size_t)(attn.n - 1) * (size_t)x->fixed_rows;
    const size_t bytes = rows * (size_t)D * sizeof *x->words;
    x->words           = fm_slab_take(s, bytes);
    x->most_bytes      = fm__cuda_most(x->most_bytes, bytes);
}

/* Places of the buffers that are pieces, of what they are gathered in, and of the logits. */
void fm__cuda_carve_exchange(fm_cuda_exchange *x, fm_acts *a, const fm_model_config *c,
                             const fm_shard *shard, const fm_run_limits *lim, fm_slab *s)
{
    const fm_activations *l   = &lim->activations;
    const fm_activation  *in  = fm_activation_find(l, FM_ACT_INPUT, FM_ACT_PIECE);
    const fm_activation  *sum = fm_activation_find(l, FM_ACT_F32, FM_ACT_PIECE);
    const fm_activation  *all = fm_activation_find(l, FM_ACT_INPUT, FM_ACT_GATHERED);
    const fm_activation  *out = fm_activation_find(l, FM_ACT_F32, FM_ACT_LOGITS);
    const size_t          T   = (size_t)lim->max_rows;
    const fm_share        me  = shard->attn;
    const size_t          o   = T * (size_t)all->width * sizeof(uint16_t);
    const size_t          y   = T * (size_t)c->hidden * sizeof(float);
    const size_t          w   = (size_t)lim->max_out * (size_t)out->width * sizeof(float);
    x->o = fm__cuda_pieces(in->columns, sizeof(uint16_t), fm_slab_take(s, o), me.index, T);
    x->y = fm__cuda_pieces(sum->columns, sizeof(float), fm_slab_take(s, y), me.index, T);
    const fm_act own = {x->o.own, in->width, in->width};
    *(fm_act *)fm_activation_at(a, in)  = own;
    *(fm_act *)fm_activation_at(a, all) = own;
    *(fm_f32s *)fm_activation_at(a, sum) = (fm_f32s){(float *)x->y.own, sum->width};
    *(fm_f32s *)fm_activation_at(a, out) = (fm_f32s){fm_slab_take(s, w), out->width};
    x->most_bytes = fm__cuda_most((size_t)shard->group.n * y, o > y ? o : y);
    if (!fm_shard_is_last(shard, c) && me.n > 1)
        x->passed = fm_slab_take(s, T * (size_t)sum->width * sizeof(float));
    if (me.n == 1) return;
    *(fm_act *)fm_activation_at(a, all) = (fm_act){fm_slab_take(s, o), all->width, all->width};
    carve_words(x, me, T, c->hidden, s);
}
