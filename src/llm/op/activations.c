/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/op/activations.h"

const fm_activation *fm_activation_find(const fm_activations *l, fm_act_type type, fm_act_use use)
{
    for (int i = 0; i < l->n; i++)
        if (l->buffer[i].type == type && l->buffer[i].use == use) return &l->buffer[i];
    return NULL;
}

static size_t rows_of(const fm_activation *b, const fm_shard *s, const fm_act_layout *how)
{
    if (b->use == FM_ACT_OUT) return (size_t)how->max_out;
    return (size_t)how->max_rows * (size_t)(b->use == FM_ACT_RECEIVED ? s->group.n : 1);
}

/* Ranks exchange rows without padding. */
static int is_exchanged(const fm_activation *b, const fm_shard *s)
{
    return (b->use == FM_ACT_SENT || b->use == FM_ACT_RECEIVED) && s->group.n > 1;
}

static void take(void *record, const fm_activation *b, const fm_shard *s, const fm_act_layout *how,
                 fm_slab *slab)
{
    const size_t n = rows_of(b, s, how), width = (size_t)b->width;
    const int    stride = b->width + (is_exchanged(b, s) ? 0 : how->padding);
    if (b->type == FM_ACT_F32)
        *(fm_f32s *)record = (fm_f32s){fm_slab_take(slab, n * width * sizeof(float)), b->width};
    else if (b->type == FM_ACT_INPUT)
        *(fm_act *)record = (fm_act){fm_slab_take(slab, n * (size_t)stride * how->element), b->width,
                                     stride};
    else
        *(fm_routing *)record = (fm_routing){fm_slab_take(slab, n * width * sizeof(int32_t)),
                                             fm_slab_take(slab, n * width * sizeof(float))};
}

/* With one group, what is received is what was sent. */
static void share(fm_acts *a, const fm_activations *l, const fm_activation *b)
{
    const fm_activation *sent = fm_activation_find(l, b->type, FM_ACT_SENT);
    if (b->type == FM_ACT_INPUT)
        *(fm_act *)fm_activation_at(a, b) = *(fm_act *)fm_activation_at(a, sent);
    else
        *(fm_routing *)fm_activation_at(a, b) = *(fm_routing *)fm_activation_at(a, sent);
}

void fm_activations_carve(fm_acts *a, const fm_activations *l, const fm_shard *s,
                          const fm_act_layout *how, fm_slab *slab)
{
    for (int i = 0; i < l->n; i++) {
        const fm_activation *b = &l->buffer[i];
        if (b->use == FM_ACT_RECEIVED && s->group.n == 1) share(a, l, b);
        else if (b->use <= FM_ACT_RECEIVED) take(fm_activation_at(a, b), b, s, how, slab);
    }
}
