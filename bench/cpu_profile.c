/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cpu_profile.h"

#include "base/clock.h"

static const fm_ops *inner;
static fm_profile    spent;

#define TIMED(slot, call)                                                                          \
    do {                                                                                           \
        const double began = fm_now();                                                             \
        inner->call;                                                                               \
        spent.slot += fm_now() - began;                                                            \
    } while (0)

static void embed(fm_run *r, fm_f32s x, const void *table)
{
    TIMED(rows, embed(r, x, table));
}

static void rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    TIMED(rows, rmsnorm(r, y, x, w));
}

static void gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    TIMED(rows, gather_norm(r, y, x, w));
}

static void linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row)
{
    if (w == &r->weights->head) TIMED(part[FM_PART_HEAD], linear_f32(r, y, x, w, n_row));
    else TIMED(part[FM_PART_LINEAR], linear_f32(r, y, x, w, n_row));
}

static void linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row)
{
    TIMED(part[FM_PART_LINEAR], linear_act(r, y, x, w, n_row));
}

static void rope_q(fm_run *r, fm_act q)
{
    TIMED(rows, rope_q(r, q));
}

static void store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm)
{
    TIMED(rows, store_kv(r, layer, ckv, norm));
}

static void attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    TIMED(part[FM_PART_ATTEND], attend(r, o, q, layer, w));
}

static void route(fm_run *r, fm_routing out, fm_f32s score, const float *bias)
{
    TIMED(rows, route(r, out, score, bias));
}

static void mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w)
{
    TIMED(part[FM_PART_MLP], mlp(r, y, h, w));
}

static void experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                    int accumulate)
{
    TIMED(part[FM_PART_EXPERTS], experts(r, y, h, rt, expert, accumulate));
}

static void gather_add(fm_run *r, fm_f32s x, fm_f32s y)
{
    TIMED(rows, gather_add(r, x, y));
}

static fm_ops timed;

void fm_profile_begin(fm_run *r)
{
    inner             = r->ops;
    timed             = *inner;
    timed.name        = "timed";
    timed.embed       = embed;
    timed.rmsnorm     = rmsnorm;
    timed.gather_norm = gather_norm;
    timed.linear_f32  = linear_f32;
    timed.linear_act  = linear_act;
    timed.rope_q      = rope_q;
    timed.store_kv    = store_kv;
    timed.attend      = attend;
    timed.route       = route;
    timed.mlp         = mlp;
    timed.experts     = experts;
    timed.gather_add  = gather_add;
    r->ops            = &timed;
    spent             = (fm_profile){0};
}

fm_profile fm_profile_end(fm_run *r)
{
    r->ops = inner;
    return spent;
}
