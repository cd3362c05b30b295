/* SPDX-License-Identifier: Apache-2.0 */
/* Routed experts as a grouped product.
 *
 *     (row, slot) pairs of own experts ──sorted by expert──> blocks of up to 512 pairs
 *     phase 1   middle[pair]   = silu(W1 h[row]) * W3 h[row]     unit: block x a few panels
 *     phase 2   pair_out[pair] = W2 middle[pair]                 unit: block x panel
 *     phase 3   y[row]       (+)= sum over slots, in slot order, of weight * pair_out
 *
 * A pair's output does not depend on how many pairs its expert received.
 *
 * Ranks of a set divide channels and outputs of its experts and gather the
 * middle; the rows are those of all groups, and phase 2 writes the outputs in
 * the order in which they are sent (experts_combine.c). */
#include <omp.h>

#include "llm/op/cpu/experts_internal.h"

enum { TILE = 16 }; /* rows an AMX tile has */

/* --- memory ---------------------------------------------------------------- */

/* `rows`: of a pass, own ones and all. */
static void carve_combine(fm_cpu_exchange *x, const fm_model_config *c, const fm_shard *shard,
                         size_t own_rows, size_t rows, fm_slab *s)
{
    const size_t n = (size_t)(shard->attn.n * shard->group.n), k = (size_t)c->top_k;
    const size_t D_mine = (size_t)fm_range_len(fm_shard_outputs(shard->channel, c->hidden));
    const size_t D_want = (size_t)fm_range_len(fm_shard_outputs(shard->attn, c->hidden));
    const int    pairs  = x->way == FM_COMBINE_PAIRS;
    const size_t items  = pairs ? own_rows * k : own_rows;
    x->received   = fm_slab_take(s, items * D_want * sizeof(float));
    x->row_sum = pairs ? NULL : fm_slab_take(s, rows * D_mine * sizeof(float));
    x->slot_item  = fm_slab_take(s, items * sizeof *x->slot_item);
    x->set_items  = fm_slab_take(s, (size_t)shard->expert.n * sizeof *x->set_items);
    x->send_bytes = fm_slab_take(s, n * sizeof *x->send_bytes);
    x->recv_bytes = fm_slab_take(s, n * sizeof *x->recv_bytes);
    x->from       = fm_slab_take(s, n * sizeof *x->from);
    x->seen       = fm_slab_take(s, (size_t)shard->channel.n * sizeof *x->seen);
}

/* Bytes between rows of the middle.  Ranks that divide its channels gather it without gaps. */
static size_t middle_stride(const fm_cpu *b, const fm_shard *s, int inter)
{
    const int gaps = fm__moves_rows(b) && s->channel.n == 1;
    return gaps ? fm__row_stride(b, inter) : (size_t)inter * b->act_bytes;
}

void fm__carve_experts(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                       const fm_run_limits *lim, fm_slab *s)
{
    fm_cpu_exchange     *x        = &b->exchange;
    const int        E        = fm_shard_n_expert(shard, c);
    const size_t     groups   = (size_t)shard->group.n, T = (size_t)lim->max_rows;
    const size_t     own_rows = T < FM_PASS_ROWS ? T : FM_PASS_ROWS;
    const size_t     rows     = T * groups < FM_PASS_ROWS ? T * groups : FM_PASS_ROWS;
    const size_t     pairs    = rows * (size_t)fm__min(c->top_k, E);
    const size_t     D        = (size_t)fm_range_len(fm_shard_outputs(shard->channel, c->hidden));
    const fm_columns channel  = fm__channels_by(shard->channel, c->moe_inter);
    const size_t     middle   = pairs * middle_stride(b, shard, c->moe_inter);
    const size_t     block    = (size_t)fm__rows_at_once(b, c->hidden);

    x->way         = fm__combine_of(shard);
    x->middle      = fm__pieces_of(channel, b->act_bytes, s);
    x->middle_room = shard->channel.n > 1 ? fm_slab_take(s, middle) : NULL;
    x->first_item  = fm_slab_take(s, (groups + 1) * sizeof *x->first_item);
    b->middle      = fm_slab_take(s, middle);
    b->pair_out    = fm_slab_take(s, pairs * D * sizeof(float));
    b->pair        = fm_slab_take(s, pairs * sizeof *b->pair);
    b->count       = fm_slab_take(s, ((size_t)E + 1) * sizeof *b->count);
    b->block       = fm_slab_take(s, (pairs / block + (size_t)E) * sizeof *b->block);
    if (x->way != FM_COMBINE_HERE) carve_combine(x, c, shard, own_rows, rows, s);
}

/* --- pairs ----------------------------------------------------------------- */

static int clamp(int i, int most)
{
    return i < 0 ? 0 : fm__min(i, most);
}

fm_range fm__rows_in_pass(const fm_expert_pass *p, int group)
{
    int first = -p->row0;
    for (int g = 0; g < group; g++) first += fm__rows_of_group(p->r->batch, g);
    const int end = first + fm__rows_of_group(p->r->batch, group);
    return (fm_range){clamp(first, p->n_row), clamp(end, p->n_row)};
}

/* Slot of pair i's expert on this rank; -1: another set computes it. */
static int own_slot(const fm_expert_pass *p, int i)
{
    const fm_expert_copy c = fm__copy_of(p, i);
    return c.set == p->set ? c.slot : -1;
}

static void count_pairs(fm_expert_pass *p)
{
    fm_cpu   *b = p->b;
    const int E = fm_placement_slots(p->where, p->set), n = p->n_row * p->r->config->top_k;
    const int most = fm__rows_at_once(b, p->r->config->hidden);
    memset(b->count, 0, ((size_t)E + 1) * sizeof *b->count);
    for (int i = 0; i < n; i++) {
        const int slot = own_slot(p, i);
        if (slot >= 0) b->count[slot + 1]++;
    }
    p->n_block = 0;
    for (int s = 0; s < E; s++) {
        const int m = b->count[s + 1], first = b->count[s], per = fm__even_block(m, most);
        for (int at = 0; at < m; at += per)
            b->block[p->n_block++] = (fm_expert_block){fm_placement_expert(p->where, p->set, s),
                                                       first + at, fm__min(m - at, per)};
        b->count[s + 1] += first;
    }
    p->n_pair = b->count[E];
}

/* Counting sort of the pass's pairs by expert.  Where pairs are sent, they are sorted
 * by group first; otherwise all are one group's. */
static void sort_pairs(fm_expert_pass *p)
{
    fm_cpu   *b       = p->b;
    const int k       = p->r->config->top_k;
    const int n_group = b->exchange.way == FM_COMBINE_PAIRS ? p->r->weights->shard.group.n : 1;
    int32_t   place   = 0;
    count_pairs(p);
    for (int g = 0; g < n_group; g++) {
        const fm_range rows = n_group > 1 ? fm__rows_in_pass(p, g) : (fm_range){0, p->n_row};
        b->exchange.first_item[g] = place;
        for (int i = rows.begin * k; i < rows.end * k; i++) {
            const int slot = own_slot(p, i);
            if (slot >= 0) b->pair[b->count[slot]++] = (fm_pair){i / k, place++, g};
        }
    }
    b->exchange.first_item[n_group] = place;
}

/* --- products -------------------------------------------------------------- */

/* The rows of a block, side by side if that helps, and their scales if they have some. */
static void collect_rows(const fm_expert_pass *p, const fm_expert_block *k, const void **x,
                         const float **x_scale)
{
    const fm_cpu *b     = p->b;
    const size_t  bytes = (size_t)p->h.width * b->act_bytes;
    const int     move  = fm__moves_rows(b) && k->n > 1;
    char         *to    = b->scratch[omp_get_thread_num()].rows;
    for (int i = 0; i < k->n; i++) {
        const int row = b->pair[k->pair0 + i].row;
        x[i]          = p->x.data + (size_t)row * p->x.stride;
        if (p->x.scale) x_scale[i] = fm__scale_of_row(p->x.scale, p->h.width, row);
        if (!move) continue;
        x[i] = memcpy(to, x[i], bytes);
        to += fm__row_stride(b, p->h.width);
    }
}

typedef struct {
    const fm_cpu *b;
    size_t        ld; /* of the middle */
    fm_outlet     out;
} expert_unit;

static void gate_rows(void *ctx, int from, int n)
{
    const expert_unit *u = ctx;
    const fm_outlet   *o = &u->out;
    fm__expect_rows(o, from + o->ahead, n);
    fm_tile_swiglu(o->to[from], u->b->act, u->ld, o->tile + from * FM_PANEL, n);
}

static void gate_up_unit(const fm_expert_pass *p, const fm_expert_block *k, fm_range panel,
                         char *out)
{
    const fm_cpu         *b = p->b;
    const fm_mlp_weights *w = &p->expert[k->expert];
    const size_t          stride = middle_stride(b, &p->r->weights->shard, w->gate_up.n / 2);
    const int             together = fm__panels_together(b, &w->gate_up, k->n);
    float                 tile[FM_TILE_ROWS * FM_PANEL] __attribute__((aligned(64)));
    const void           *x[FM_TILE_ROWS];
    const float          *x_scale[FM_TILE_ROWS];
    expert_unit           u;
    u.b = b, u.ld = stride / b->act_bytes;
    u.out.bytes = FM_PANEL / 2 * b->act_bytes, u.out.m = k->n, u.out.far = 0;
    collect_rows(p, k, x, x_scale);
    for (int first = panel.begin; first < panel.end; first += together) {
        const int n       = fm__min(together, panel.end - first);
        const int is_made = fm__multiply_few(b, tile, x, &w->gate_up, first, n, k->n);
        for (int i = 0; i < n; i++) {
            char *to = out + (size_t)k->pair0 * stride + (size_t)(first + i) * u.out.bytes;
            for (int r = 0; r < k->n; r++) u.out.to[r] = to + (size_t)r * stride;
            if (is_made)
                fm__put_tile(&u.out, tile + i * k->n * FM_PANEL, gate_rows, &u);
            else
                fm__panel_to(b, &u.out, tile, x, p->x.scale ? x_scale : NULL, &w->gate_up,
                             first + i, gate_rows, &u);
        }
    }
}

/* A panel of outputs goes to one rank of each group: both divide by 32. */
static fm_range home_of(const fm_expert_pass *p, int panel)
{
    if (p->b->exchange.way != FM_COMBINE_PAIRS) return (fm_range){0, fm_range_len(p->col)};
    return fm__wanted(p, fm__part_of(p->b->exchange.y.col, p->col.begin + panel * FM_PANEL));
}

static void put_outputs(void *ctx, int from, int n)
{
    const fm_outlet *o = ctx;
    fm__expect_rows(o, from + o->ahead, n);
    fm__put_f32(o, from, n);
}

/* Where a block's outputs of a panel go. */
static void aim_at(fm_outlet *o, const fm_expert_pass *p, const fm_expert_block *k, int panel)
{
    const int32_t *first = p->b->exchange.first_item;
    const fm_range seg   = home_of(p, panel);
    for (int i = 0; i < k->n; i++) {
        const fm_pair q = p->b->pair[k->pair0 + i];
        o->to[i] = fm__item_at(p->b->pair_out, fm_range_len(p->col), first[q.group],
                               first[q.group + 1] - first[q.group], seg, q.place) +
                   panel * FM_PANEL - seg.begin;
    }
}

static void down_unit(const fm_expert_pass *p, const fm_expert_block *k, fm_range panel)
{
    const fm_cpu         *b = p->b;
    const fm_mlp_weights *w = &p->expert[k->expert];
    const int             together = fm__panels_together(b, &w->down, k->n);
    float                 tile[FM_TILE_ROWS * FM_PANEL] __attribute__((aligned(64)));
    const size_t          all = (size_t)p->n_pair * (size_t)w->down.n * sizeof(float);
    const size_t          stride = middle_stride(b, &p->r->weights->shard, w->inter);
    const void           *x[FM_TILE_ROWS];
    const float          *x_scale[FM_TILE_ROWS];
    fm_outlet             o;
    o.bytes = FM_PANEL * sizeof(float), o.m = k->n, o.far = fm__is_far(b, all);
    for (int i = 0; i < k->n; i++) {
        x[i] = (char *)b->middle + (size_t)(k->pair0 + i) * stride;
        if (p->quantises) x_scale[i] = fm__scale_of_row(b->middle_scale, w->down.k, k->pair0 + i);
    }
    for (int first = panel.begin; first < panel.end; first += together) {
        const int n       = fm__min(together, panel.end - first);
        const int is_made = fm__multiply_few(b, tile, x, &w->down, first, n, k->n);
        for (int i = 0; i < n; i++) {
            aim_at(&o, p, k, first + i);
            if (is_made)
                fm__put_tile(&o, tile + i * k->n * FM_PANEL, put_outputs, &o);
            else
                fm__panel_to(b, &o, tile, x, p->quantises ? x_scale : NULL, &w->down, first + i,
                             put_outputs, &o);
        }
    }
}

static int meets_few_rows(const fm_expert_pass *p)
{
    return p->n_pair <= TILE * p->n_block;
}

/* Panels of a unit: many where rows are copied for them, as long as every thread has
 * several units. */
static int panels_of_unit(const fm_expert_pass *p, const fm_matrix *w)
{
    const int n_panel = fm__panels(w);
    int       n       = n_panel;
    if (!n || !fm__moves_rows(p->b)) return 2; /* a rank may have none */
    while (n > 2 && p->n_block * (n_panel / n) < 8 * p->b->n_thread) n /= 2;
    return n;
}

/* Panels of all blocks, one after the other; out: of the first product, NULL: it is the second. */
static void run_panels(const fm_expert_pass *p, int n_panel, fm_range all, char *out)
{
    for (int n; all.begin < all.end; all.begin += n) {
        const fm_expert_block *k     = &p->b->block[all.begin / n_panel];
        const int              first = all.begin % n_panel;
        n = fm__min(n_panel - first, all.end - all.begin);
        if (out) gate_up_unit(p, k, (fm_range){first, first + n}, out);
        else down_unit(p, k, (fm_range){first, first + n});
    }
}

/* These three by all threads of a team. */
static void few_rows_phase(const fm_expert_pass *p, const fm_matrix *w, char *out)
{
    const int n = fm__panels(w), all = n * p->n_block, n_thread = p->b->n_thread;
    const int n_piece = fm__n_piece(all, n_thread);
#pragma omp for schedule(dynamic)
    for (int i = 0; i < n_piece; i++) run_panels(p, n, fm__piece(all, n_thread, i), out);
}

static void gate_up_phase(const fm_expert_pass *p, char *out)
{
    if (!p->n_block) return;
    const fm_matrix *w = &p->expert[p->b->block->expert].gate_up; /* all have its shape */
    if (meets_few_rows(p)) {
        few_rows_phase(p, w, out);
        return;
    }
    const int        n = fm__panels(w), per = panels_of_unit(p, w), n_part = (n + per - 1) / per;
#pragma omp for schedule(dynamic)
    for (int u = 0; u < p->n_block * n_part; u++) {
        const int first = u % n_part * per;
        gate_up_unit(p, &p->b->block[u / n_part], (fm_range){first, fm__min(first + per, n)}, out);
    }
}

static void quantise_middle(const fm_expert_pass *p, const fm_matrix *down, int pair)
{
    const fm_cpu *b   = p->b;
    fm_bf16      *row = (fm_bf16 *)((char *)b->middle +
                               (size_t)pair * middle_stride(b, &p->r->weights->shard, down->k));
    fm_row_quantise(row, b->middle_scale + (size_t)pair * (size_t)fm__blocks(down->k), row, down->k);
}

static void quantise_phase(const fm_expert_pass *p, const fm_matrix *down)
{
#pragma omp for schedule(static)
    for (int i = 0; i < p->n_pair; i++) quantise_middle(p, down, i);
}

static void down_phase(const fm_expert_pass *p)
{
    if (!p->n_block) return;
    const fm_matrix *w = &p->expert[p->b->block->expert].down;
    const int        n = fm__panels(w), n_part = (n + 1) / 2;
    if (p->quantises) quantise_phase(p, w);
    if (meets_few_rows(p)) {
        few_rows_phase(p, w, NULL);
        return;
    }
#pragma omp for schedule(dynamic)
    for (int u = 0; u < p->n_block * n_part; u++) {
        const int first = u % n_part * 2;
        down_unit(p, &p->b->block[u / n_part], (fm_range){first, fm__min(first + 2, n)});
    }
}

/* Where there are several experts for each thread, one thread computes both products of an expert whose weights
 * fit L2 and which has at most TILES tiles of rows: the middle rows stay in L2, and no barrier is needed. */
static int takes_whole_experts(const fm_expert_pass *p)
{
    enum { SMALL = 256 << 10, EACH = 4, TILES = 16 };
    if (p->n_block < EACH * p->b->n_thread || p->n_pair > TILES * TILE * p->n_block) return 0;
    const fm_mlp_weights *w = &p->expert[p->b->block->expert];
    const size_t panel = fm_panel_bytes(w->gate_up.dtype, w->gate_up.k);
    return (size_t)fm__panels(&w->gate_up) * panel <= SMALL;
}

static void whole_experts(const fm_expert_pass *p)
{
#pragma omp for schedule(dynamic)
    for (int i = 0; i < p->n_block; i++) {
        const fm_expert_block *k = &p->b->block[i];
        const fm_mlp_weights  *w = &p->expert[k->expert];
        gate_up_unit(p, k, (fm_range){0, fm__panels(&w->gate_up)}, p->b->middle);
        for (int j = 0; p->quantises && j < k->n; j++) quantise_middle(p, &w->down, k->pair0 + j);
        down_unit(p, k, (fm_range){0, fm__panels(&w->down)});
    }
}

/* --- passes ---------------------------------------------------------------- */

/* All experts have weights of the same type. */
static void find_rows(fm_expert_pass *p)
{
    if (!p->n_block) return;
    const fm_mlp_weights *w = &p->expert[p->b->block->expert];
    p->x                    = fm__rows_for(p->r, p->h, &w->gate_up, p->row0, p->n_row);
    p->quantises            = fm__quantises(p->r, &w->down);
}

static void pass_here(const fm_expert_pass *p, fm_f32s y, int accumulate)
{
    const int whole = takes_whole_experts(p);
#pragma omp parallel num_threads(p->b->n_thread)
    {
        if (whole) {
            whole_experts(p);
        } else {
            gate_up_phase(p, p->b->middle);
            down_phase(p);
        }
        fm__sum_here(p, y, accumulate);
    }
}

/* The shared expert ends while the middle is on its way. */
static int gathered_middle(const fm_expert_pass *p)
{
    fm_run      *r       = p->r;
    fm_cpu_exchange *x       = &p->b->exchange;
    fm_comm     *channel = r->ranks.channel;
    const int    divided = channel->n_rank > 1;
    char        *own     = p->b->middle;
    if (divided) own = fm__own_piece(&x->middle, x->middle_room, channel->rank, p->n_pair);
#pragma omp parallel num_threads(p->b->n_thread)
    gate_up_phase(p, own);
    if (divided) fm__start_gather(r, &x->middle, channel, own, p->n_pair);
    fm__finish_mlp(r);
    return divided ? fm__finish_gather(r, &x->middle, p->b->middle) : r->fault == FM_OK;
}

static void pass_among_ranks(const fm_expert_pass *p, fm_f32s y, int accumulate)
{
    const int stay = p->b->exchange.way == FM_COMBINE_HERE;
    if (!gathered_middle(p)) return;
#pragma omp parallel num_threads(p->b->n_thread)
    {
        down_phase(p);
        if (stay) fm__sum_here(p, y, accumulate);
    }
    if (!stay) fm__send_home(p, y, accumulate);
}

void fm__cpu_experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                     int accumulate)
{
    const fm_shard *s = &r->weights->shard;
    const int       n = fm__rows_of_all(r), is_alone = r->ranks.stage->n_rank == 1;
    fm__finish_dispatch(r, rt);
    const int most = fm__even_block(n, FM_PASS_ROWS);
    for (int row = 0; r->fault == FM_OK && row < n; row += most) {
        const size_t   at = (size_t)row * (size_t)r->config->top_k;
        fm_expert_pass p  = {.r      = r,
                             .b      = fm__cpu(r),
                             .h      = h,
                             .chosen = rt.expert + at,
                             .weight = rt.weight + at,
                             .expert = expert,
                             .row0   = row,
                             .n_row  = fm__min(n - row, most),
                             .where  = s->placement,
                             .set    = s->expert.index,
                             .col    = fm_shard_outputs(s->channel, r->config->hidden)};
        sort_pairs(&p);
        find_rows(&p);
        if (is_alone) pass_here(&p, y, accumulate);
        else pass_among_ranks(&p, y, accumulate);
    }
}
