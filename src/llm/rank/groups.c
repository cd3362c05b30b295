/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/rank/groups.h"

#include <stdlib.h>

enum { SCRATCH_BYTES = 64 << 10, NO_GROUP = -1 };

static fm_status split(fm_comm *world, const char *name, int color, int key, fm_comm **out)
{
    const fm_comm_part part = {color, key, name, SCRATCH_BYTES};
    return fm_comm_split(world, &part, out);
}

static fm_status split_ranks(fm_groups *g, const fm_layout *l, fm_comm *world)
{
    const fm_rank_sizes *s      = &l->size;
    const fm_shard      *shard  = &l->shard;
    const int            column = l->replica * s->pp + l->stage; /* of the world's stages */
    const int            first  = column * s->tp;                /* colours: a rank of the group */
    fm_ranks            *r      = &g->ranks;
    FM_TRY(split(world, "replica", l->replica, l->stage * s->tp + l->place, &r->replica));
    FM_TRY(split(world, "stage", first, l->place, &r->stage));
    FM_TRY(split(world, "attn", first + shard->group.index * shard->attn.n, shard->attn.index,
                 &r->attn));
    FM_TRY(split(world, "group", first + shard->attn.index, shard->group.index, &r->group));
    return split(world, "channel", first + shard->expert.index * shard->channel.n,
                 shard->channel.index, &r->channel);
}

/* A pair of its own for each replica: neither waits in another's line. */
static fm_status split_pairs(fm_groups *g, const fm_layout *l, fm_comm *world)
{
    if (!(g->replica = calloc((size_t)l->n_replica, sizeof *g->replica)))
        return fm_fail(FM_E_OOM, "groups of ranks");
    g->n_replica = l->n_replica;
    for (int d = 1; d < l->n_replica; d++) {
        const int is_in = l->is_leader && (l->replica == 0 || l->replica == d);
        fm_comm  *pair  = NULL;
        FM_TRY(split(world, "replicas", is_in ? 0 : NO_GROUP, l->replica, &pair));
        if (is_in) g->replica[l->replica == 0 ? d : 0] = pair;
    }
    return FM_OK;
}

fm_status fm_groups_make(fm_groups *out, const fm_layout *l, fm_comm *world)
{
    *out = (fm_groups){0};
    FM_TRY(split_ranks(out, l, world));
    FM_TRY(split(world, "plan", l->replica * l->size.pp + l->stage, l->place, &out->plan));
    FM_TRY(split(world, "heads", l->place == 0 ? l->replica : NO_GROUP, l->stage, &out->heads));
    FM_TRY(split(world, "tiers", l->replica, l->stage * l->size.tp + l->place, &out->tiers));
    return split_pairs(out, l, world);
}

void fm_groups_close(fm_groups *g)
{
    fm_comm *const one[] = {g->ranks.replica, g->ranks.stage,   g->ranks.attn, g->ranks.group,
                            g->ranks.channel, g->plan,          g->heads, g->tiers};
    for (size_t i = 0; i < sizeof one / sizeof *one; i++) fm_comm_close(one[i]);
    for (int d = 0; d < g->n_replica; d++) fm_comm_close(g->replica[d]);
    free(g->replica);
    *g = (fm_groups){0};
}
