/* SPDX-License-Identifier: Apache-2.0 */
#include "forward_layout.h"

fm_shard layout_shard(const layout *l, int rank, int n_layer)
{
    const int stage = rank / l->tp, place = rank % l->tp;
    const int attn = l->tp / l->groups, channel = l->tp / l->ep;
    return (fm_shard){.attn    = {place % attn, attn},
                      .group   = {place / attn, l->groups},
                      .expert  = {place / channel, l->ep},
                      .channel = {place % channel, channel},
                      .layer   = {n_layer * stage / l->pp, n_layer * (stage + 1) / l->pp}};
}

fm_placement *layout_placement(const layout *l, fm_world *w, int n_expert)
{
    int32_t       list[128], n_slot[8] = {0};
    int           n = 0;
    fm_placement *p = NULL;
    if (l->ep == 1) return NULL;
    CHECK(w, l->ep <= 8 && 2 * n_expert <= 128);
    for (int q = 0; q < l->ep; q++)
        for (int e = n_expert - 1; e >= 0; e--) {
            const int is_copy = e % 3 == 0 && (e + 1) % l->ep == q;
            if (e % l->ep != q && !is_copy) continue;
            list[n++] = e;
            n_slot[q]++;
        }
    CHECK(w, fm_placement_create(&p, n_expert, l->ep, n_slot, list) == FM_OK);
    return p;
}

static fm_comm *split(fm_world *w, const char *name, int color)
{
    const fm_comm_part wish = {color, fm_world_comm(w)->rank, name, 0};
    fm_comm           *c    = NULL;
    CHECK(w, fm_comm_split(fm_world_comm(w), &wish, &c) == FM_OK);
    return c;
}

fm_ranks layout_ranks(const layout *l, fm_world *w, const fm_shard *shard)
{
    const int first = fm_world_comm(w)->rank / l->tp * l->tp;
    return (fm_ranks){.replica = fm_world_comm(w),
                      .stage   = split(w, "stage", first),
                      .attn    = split(w, "attn", first + shard->group.index),
                      .group   = split(w, "group", first + shard->attn.index),
                      .channel = split(w, "channel", first + shard->expert.index)};
}

void layout_ranks_close(fm_ranks *r)
{
    fm_comm_close(r->stage);
    fm_comm_close(r->attn);
    fm_comm_close(r->group);
    fm_comm_close(r->channel);
}
