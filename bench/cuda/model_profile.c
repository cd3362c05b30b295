/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda/model_profile.h"

#include "bench/cuda/model_stand.h"
#include "bench/cuda/stand.h"

static const fm_ops *inner;
static fm_ops        marked;
static fm_kind       kind_of[STAND_MARKS]; /* what ran before a mark; the first has nothing */
static int           n_mark;

static const struct {
    const char *name;
    int         part;
} kinds[FM_N_KIND] = {
    [FM_KIND_EMBED]   = {"embed", -1},
    [FM_KIND_NORM]    = {"norms", -1},
    [FM_KIND_LINEAR]  = {"linear", FM_PART_LINEAR},
    [FM_KIND_ROPE]    = {"rope", -1},
    [FM_KIND_STORE]   = {"store kv", -1},
    [FM_KIND_ATTEND]  = {"attend", FM_PART_ATTEND},
    [FM_KIND_ROUTE]   = {"route", -1},
    [FM_KIND_MLP]     = {"mlp, shared expert", FM_PART_MLP},
    [FM_KIND_EXPERTS] = {"experts", FM_PART_EXPERTS},
    [FM_KIND_ADD]     = {"add", -1},
    [FM_KIND_HEAD]    = {"head", FM_PART_HEAD},
};

const char *fm_kind_name(fm_kind k) { return kinds[k].name; }

int fm_kind_part(fm_kind k) { return kinds[k].part; }

static void mark(const fm_run *r, fm_kind k)
{
    n_mark              = stand_mark(fm_gpu_stream(r)) + 1;
    kind_of[n_mark - 1] = k;
}

#define MARKED(kind, call)                                                                         \
    do {                                                                                           \
        inner->call;                                                                               \
        mark(r, kind);                                                                             \
    } while (0)

static void embed(fm_run *r, fm_f32s x, const void *table)
{
    mark(r, FM_KIND_EMBED); /* where the pass begins */
    MARKED(FM_KIND_EMBED, embed(r, x, table));
}

static void rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    MARKED(FM_KIND_NORM, rmsnorm(r, y, x, w));
}

static void gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    MARKED(FM_KIND_NORM, gather_norm(r, y, x, w));
}

static void linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row)
{
    const fm_kind k = y.data == r->act.logits.data ? FM_KIND_HEAD : FM_KIND_LINEAR;
    MARKED(k, linear_f32(r, y, x, w, n_row));
}

static void linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row)
{
    MARKED(FM_KIND_LINEAR, linear_act(r, y, x, w, n_row));
}

static void rope_q(fm_run *r, fm_act q) { MARKED(FM_KIND_ROPE, rope_q(r, q)); }

static void store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm)
{
    MARKED(FM_KIND_STORE, store_kv(r, layer, ckv, norm));
}

static void attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    MARKED(FM_KIND_ATTEND, attend(r, o, q, layer, w));
}

static void route(fm_run *r, fm_routing out, fm_f32s score, const float *bias)
{
    MARKED(FM_KIND_ROUTE, route(r, out, score, bias));
}

static void mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w)
{
    MARKED(FM_KIND_MLP, mlp(r, y, h, w));
}

static void experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                    int accumulate)
{
    MARKED(FM_KIND_EXPERTS, experts(r, y, h, rt, expert, accumulate));
}

static void gather_add(fm_run *r, fm_f32s x, fm_f32s y)
{
    MARKED(FM_KIND_ADD, gather_add(r, x, y));
}

void fm_gpu_profile_begin(fm_run *r)
{
    inner              = r->ops;
    marked             = *inner;
    marked.name        = "marked";
    marked.embed       = embed;
    marked.rmsnorm     = rmsnorm;
    marked.gather_norm = gather_norm;
    marked.linear_f32  = linear_f32;
    marked.linear_act  = linear_act;
    marked.rope_q      = rope_q;
    marked.store_kv    = store_kv;
    marked.attend      = attend;
    marked.route       = route;
    marked.mlp         = mlp;
    marked.experts     = experts;
    marked.gather_add  = gather_add;
    r->ops             = &marked;
    n_mark             = 0;
    stand_marks_reset();
}

void fm_gpu_profile_take(double us[FM_N_KIND])
{
    for (int k = 0; k < FM_N_KIND; k++) us[k] = 0;
    for (int i = 1; i < n_mark; i++) us[kind_of[i]] += stand_between(i - 1, i);
    n_mark = 0;
    stand_marks_reset();
}

void fm_gpu_profile_end(fm_run *r) { r->ops = inner; }
