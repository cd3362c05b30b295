/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/rank/layout.h"

static int attention_ranks(const fm_rank_sizes *s)
{
    return s->dp_attention ? s->tp / s->dp : s->tp;
}

static long ranks_needed(const fm_rank_sizes *s)
{
    return (long)s->tp * s->pp * (s->dp_attention ? 1 : s->dp);
}

static fm_status check_divisions(const fm_rank_sizes *s)
{
    if (s->dp_attention && s->tp % s->dp)
        return fm_fail(FM_E_ARG,
                       "with --enable-dp-attention, --dp-size %d must divide --tp-size %d: each "
                       "attention group has tp/dp ranks",
                       s->dp, s->tp);
    if (s->tp % s->ep)
        return fm_fail(FM_E_ARG,
                       "--ep-size %d must divide --tp-size %d: each set of experts has tp/ep ranks",
                       s->ep, s->tp);
    return FM_OK;
}

static fm_status check_model(const fm_rank_sizes *s, const fm_model_config *c)
{
    const int attn = attention_ranks(s);
    if (c->n_head % attn)
        return fm_fail(FM_E_ARG,
                       "%d ranks divide attention (%s), and %d does not divide the model's %d "
                       "heads",
                       attn, s->dp_attention ? "--tp-size / --dp-size" : "--tp-size", attn,
                       c->n_head);
    if (s->ep > 1 && !c->n_expert)
        return fm_fail(FM_E_ARG, "--ep-size %d: this model has no experts", s->ep);
    if (s->ep > 1 && c->n_expert % s->ep)
        return fm_fail(FM_E_ARG, "--ep-size %d must divide the model's %d experts", s->ep,
                       c->n_expert);
    if (s->pp > c->n_layer)
        return fm_fail(FM_E_ARG, "--pp-size %d: the model has only %d layers", s->pp, c->n_layer);
    return FM_OK;
}

static fm_status check_world(const fm_rank_sizes *s, int world_size)
{
    const long  need    = ranks_needed(s);
    const char *product = s->dp_attention ? "--tp-size x --pp-size"
                                          : "--tp-size x --pp-size x --dp-size";
    if (world_size == need) return FM_OK;
    if (world_size == 1)
        return fm_fail(FM_E_ARG,
                       "%s is %ld, and this is one rank: start it as\n  mpirun -np %ld fathom ... "
                       "--tp-size %d --pp-size %d --dp-size %d",
                       product, need, need, s->tp, s->pp, s->dp);
    if (need % world_size)
        return fm_fail(FM_E_ARG,
                       "%d ranks were started, but %s is %ld: give sizes whose product is %d, or "
                       "start %ld",
                       world_size, product, need, world_size, need);
    return fm_fail(
        FM_E_ARG,
        "%d ranks were started, but %s is %ld: start %ld, one for each GPU or NUMA node. "
        "If one was started per node: ppr:1:node becomes ppr:%ld:node (Open MPI), "
        "--ntasks-per-node=1 becomes %ld (Slurm), -ppn 1 becomes %ld (MPICH, Intel, PALS)",
        world_size, product, need, need, need / world_size, need / world_size, need / world_size);
}

fm_status fm_layout_make(fm_layout *out, const fm_rank_sizes *size, const fm_model_config *c,
                         int world_rank, int world_size)
{
    const fm_rank_sizes *s = size;
    FM_BUG_UNLESS(s->tp > 0 && s->pp > 0 && s->dp > 0 && s->ep > 0);
    FM_TRY(check_divisions(s));
    FM_TRY(check_world(s, world_size));
    FM_TRY(check_model(s, c));

    const int place = world_rank % s->tp, stage = world_rank / s->tp % s->pp;
    const int n_attn = attention_ranks(s), n_channel = s->tp / s->ep;
    *out             = (fm_layout){.size      = *s,
                                   .replica   = world_rank / (s->tp * s->pp),
                                   .n_replica = s->dp_attention ? 1 : s->dp,
                                   .stage     = stage,
                                   .place     = place,
                                   .n_group   = s->tp / n_attn,
                                   .is_leader = place == 0 && stage == 0};
    out->shard       = (fm_shard){.attn    = {place % n_attn, n_attn},
                                  .group   = {place / n_attn, s->tp / n_attn},
                                  .expert  = {place / n_channel, s->ep},
                                  .channel = {place % n_channel, n_channel},
                                  .layer   = {0, c->n_layer}};
    return FM_OK;
}

static void print_share(fm_str *out, const char *what, int n, int all)
{
    if (n == all) fm_str_printf(out, "  %s all %d", what, all);
    else fm_str_printf(out, "  %s %d of %d", what, n, all);
}

void fm_layout_print(const fm_layout *l, const fm_range *stage, const fm_model_config *c,
                     fm_str *out)
{
    const fm_rank_sizes *s = &l->size;
    fm_str_printf(out, "layout  tp %d  pp %d  dp %d%s  ep %d\n", s->tp, s->pp, s->dp,
                  s->dp_attention ? " (attention)" : "", s->ep);
    for (int d = 0; d < l->n_replica; d++)
        for (int p = 0; p < s->pp; p++) {
            const int first = (d * s->pp + p) * s->tp;
            fm_str_printf(out, "  ranks %d-%d", first, first + s->tp - 1);
            if (l->n_replica > 1) fm_str_printf(out, "  replica %d", d);
            fm_str_printf(out, "  layers %d-%d\n", stage[p].begin, stage[p].end - 1);
        }
    fm_str_puts(out, "  each rank has");
    print_share(out, "heads", fm_range_len(fm_shard_heads(&l->shard, c)), c->n_head);
    if (c->n_expert) print_share(out, "experts", fm_shard_n_expert(&l->shard, c), c->n_expert);
    if (c->n_expert && l->shard.channel.n > 1)
        fm_str_printf(out, "  of each 1/%d", l->shard.channel.n);
    if (l->n_group > 1)
        fm_str_printf(out, "  in one of %d attention groups", l->n_group);
    fm_str_puts(out, "\n");
}
