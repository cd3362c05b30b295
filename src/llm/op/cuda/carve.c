/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU back end's memory, carved once; on a counting slab this is the plan. */
#include "llm/op/cuda/cuda_internal.h"

/* More than a slab promises. */
static void *take_aligned(fm_slab *s, size_t bytes, size_t align)
{
    char *p = fm_slab_take(s, bytes + align);
    return p ? p + (align - (uintptr_t)p % align) % align : NULL;
}

static size_t heads(const fm_model_config *c, const fm_shard *shard)
{
    return (size_t)fm_range_len(fm_shard_heads(shard, c));
}

void fm__cuda_carve_lists(fm_cuda_lists *l, const fm_cuda_list_sizes *n, const fm_shard *shard,
                          fm_slab *s)
{
    const size_t one = sizeof(int32_t), row = (size_t)n->row * one;
    l->token      = fm_slab_take(s, row);
    l->pos        = fm_slab_take(s, row);
    l->table      = fm_slab_take(s, row);
    l->out        = fm_slab_take(s, (size_t)n->out * one);
    l->gen_keys   = fm_slab_take(s, row);
    l->gen_table  = fm_slab_take(s, row);
    l->before     = fm_slab_take(s, n->has_states ? row : 0);
    l->keep       = fm_slab_take(s, n->has_states ? row : 0);
    l->n_live     = fm_slab_take(s, one);
    l->n_gen      = fm_slab_take(s, one);
    l->n_span     = fm_slab_take(s, one);
    l->group_row0 = fm_slab_take(s, ((size_t)shard->group.n + 1) * one);
    l->own_word   = fm_slab_take(s, row);
    l->word_at    = fm_slab_take(s, row);
    l->word_base  = fm_slab_take(s, (size_t)shard->attn.n * one);
    l->span       = fm_slab_take(s, (size_t)n->span * sizeof *l->span);
    l->page_begin = fm_slab_take(s, ((size_t)n->table + 1) * one);
    l->page_list  = fm_slab_take(s, n->page * one);
}

/* Room for the lists of any pass. */
static char *take_lists(fm_cuda_run *g, const fm_shard *shard, const fm_run_limits *lim, fm_slab *s)
{
    const fm_cuda_list_sizes most = {lim->max_rows, lim->max_out, g->max_span, g->max_span,
                                     (size_t)g->max_span * (size_t)g->max_page, lim->n_kept > 0};
    fm_cuda_lists            any;
    fm_slab                  count = {0};
    fm__cuda_carve_lists(&any, &most, shard, &count);
    g->list_bytes = count.used;
    return fm_slab_take(s, count.used);
}

static void carve_absorbed(fm_cuda_run *g, const fm_model_config *c, size_t H,
                           const fm_run_limits *lim, fm_slab *s)
{
    const size_t T = (size_t)lim->max_rows, L = (size_t)c->kv_lora;
    const size_t unit = (size_t)g->max_unit;
    g->q_latent       = fm_slab_take(s, T * H * (size_t)fm_kv_width(c) * sizeof(uint16_t));
    g->z_latent       = fm_slab_take(s, T * H * L * sizeof(uint16_t));
    g->unit           = fm_slab_take(s, unit * sizeof *g->unit);
    g->unit0          = fm_slab_take(s, (T + 2) * sizeof(int32_t));
    g->part_z         = fm_slab_take(s, unit * H * L * sizeof(uint16_t));
    g->part_sum       = fm_slab_take(s, unit * H * 2 * sizeof(float));
    const int    few  = fm__cuda_few_units(c, (int)H);
    const size_t keys = (size_t)fm_mla_last_max(fm__cuda_part_keys(c));
    g->score          = fm_slab_take(s, (size_t)few * H * keys * sizeof(float));
    const size_t cut  = (size_t)few * FM_MLA_SLICES * ((H + 15) / 16);
    g->done           = fm_slab_take(s, cut * sizeof(int32_t));
}

static void carve_expanded(fm_cuda_run *g, const fm_model_config *c, size_t H,
                           const fm_run_limits *lim, fm_slab *s)
{
    const size_t T = (size_t)lim->max_rows, keys = (size_t)g->max_key;
    g->tile      = fm_slab_take(s, (size_t)g->max_tile * sizeof *g->tile);
    g->n_tile    = fm_slab_take(s, sizeof(int32_t));
    g->key0      = fm_slab_take(s, ((size_t)g->max_span + 1) * sizeof(int32_t));
    g->latent    = fm_slab_take(s, keys * (size_t)fm_kv_width(c) * sizeof(uint16_t));
    g->key       = fm_slab_take(s, keys * H * (size_t)(c->nope + c->v_dim) * sizeof(uint16_t));
    g->state_o   = fm_slab_take(s, T * H * (size_t)c->v_dim * sizeof(float));
    g->state_sum = fm_slab_take(s, T * H * 5 * sizeof(float));
}

static size_t middle_of(const fm_model_config *c, const fm_shard *shard, size_t rows, size_t all)
{
    return fm__cuda_most(rows * (size_t)fm_shard_widest_mlp(shard, c),
                         all * fm__cuda_own_slots(c, shard) * (size_t)c->moe_inter);
}

static void carve_ffn(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                      const fm_run_limits *lim, fm_slab *s)
{
    const size_t rows = fm__cuda_pass_rows(lim, 1), all = fm__cuda_pass_rows(lim, shard->group.n);
    const size_t pairs = all * fm__cuda_own_slots(c, shard), slots = all * (size_t)c->top_k;
    const size_t keys = (size_t)(shard->group.n * shard->expert.n), E = (size_t)c->n_expert;
    const size_t D = (size_t)fm_range_len(fm_shard_outputs(shard->channel, c->hidden));
    g->middle      = fm_slab_take(s, middle_of(c, shard, rows, all) * sizeof(uint16_t));
    g->side.middle = fm_slab_take(s, (size_t)fm__cuda_least((int)rows, FM_CUDA_SIDE_ROWS) *
                                         (size_t)fm_shard_widest_mlp(shard, c) * sizeof(uint16_t));
    g->pair_out    = fm_slab_take(s, pairs * D * sizeof(uint16_t));
    g->count       = fm_slab_take(s, (E + 1) * sizeof(int32_t));
    g->offset      = fm_slab_take(s, (E + 2) * sizeof(int32_t));
    g->pair_row    = fm_slab_take(s, slots * sizeof(int32_t));
    g->pair_of     = fm_slab_take(s, slots * sizeof(int32_t));
    g->block = fm_slab_take(s, (slots / 8 + E + keys + 1) * 3 * sizeof(int32_t)); /* 8: narrowest */
    g->n_block = fm_slab_take(s, sizeof(int32_t));
}

/* --- buffers of exchanges -------------------------------------------------- */

static void carve_rooms(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                        const fm_run_limits *lim, fm_slab *s)
{
    fm_cuda_exchange *x    = &g->exchange;
    const size_t      rows = fm__cuda_pass_rows(lim, 1), all = fm__cuda_pass_rows(lim, shard->group.n);
    const size_t      mlp = shard->attn.n > 1 ? rows * (size_t)fm_shard_widest_mlp(shard, c) : 0;
    const size_t      experts =
        shard->channel.n > 1 ? all * fm__cuda_own_slots(c, shard) * (size_t)c->moe_inter : 0;
    const size_t bytes = fm__cuda_most(mlp, experts) * sizeof(uint16_t);
    x->room            = fm_slab_take(s, bytes);
    x->most_bytes      = fm__cuda_most(x->most_bytes, bytes);
}

static size_t copies(const fm_model_config *c, const fm_shard *shard)
{
    return (size_t)(shard->placement ? shard->placement->copy0[c->n_expert] : c->n_expert);
}

static void carve_combine(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                         const fm_run_limits *lim, fm_slab *s)
{
    fm_cuda_exchange *x   = &g->exchange;
    const size_t      all = fm__cuda_pass_rows(lim, shard->group.n), own = fm__cuda_pass_rows(lim, 1);
    const size_t k = (size_t)c->top_k, sets = (size_t)shard->expert.n, most = fm__cuda_own_slots(c, shard);
    const size_t fixed   = (size_t)fm__cuda_least(x->fixed_rows, FM_CUDA_PASS_ROWS);
    const size_t D_mine  = (size_t)fm_range_len(fm_shard_outputs(shard->channel, c->hidden));
    const size_t D_want  = (size_t)fm_range_len(fm_shard_outputs(shard->attn, c->hidden));
    const size_t per     = (size_t)fm__cuda_least(c->top_k, fm_shard_most_experts(shard, c));
    size_t       in = own, out = all;
    x->way = fm__combine_of(shard);
    if (x->way == FM_COMBINE_HERE) return;
    if (x->way == FM_COMBINE_PAIRS) {
        in  = fm__cuda_most(own * k, sets * fixed * per);
        out = all * fm__cuda_most(most, per);
    }
    x->sent     = fm_slab_take(s, out * D_mine * sizeof(float));
    x->received   = fm_slab_take(s, in * D_want * sizeof(float));
    x->most_bytes = fm__cuda_most(x->most_bytes, (out * D_mine + in * D_want) * sizeof(float));
    if (x->way == FM_COMBINE_ROWS) return;
    const size_t keys = (size_t)shard->group.n * sets;
    x->key            = fm_slab_take(s, all * k * sizeof *x->key);
    x->key_count      = fm_slab_take(s, keys * sizeof *x->key_count);
    x->key_first      = fm_slab_take(s, (keys + 1) * sizeof *x->key_first);
    x->key_place      = fm_slab_take(s, all * k * sizeof *x->key_place);
    x->own_slot       = fm_slab_take(s, all * k * sizeof *x->own_slot);
    x->where.copy0    = fm_slab_take(s, ((size_t)c->n_expert + 1) * sizeof *x->where.copy0);
    x->where.copy     = fm_slab_take(s, copies(c, shard) * sizeof *x->where.copy);
}

static size_t passes(const fm_run_limits *lim)
{
    return lim->n_lane > 0 ? (size_t)lim->n_lane : 1;
}

static int is_one_stage(const fm_model_config *c, const fm_shard *shard)
{
    return fm_shard_is_first(shard) && fm_shard_is_last(shard, c);
}

static int is_rank0(const fm_shard *shard)
{
    return fm_shard_is_first(shard) && shard->attn.index == 0 && shard->group.index == 0;
}

/* Logits of one stage stay on the device. */
static void carve_logits(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                         const fm_run_limits *lim, fm_slab *s)
{
    fm_cuda_exchange *x     = &g->exchange;
    const int         ranks = shard->attn.n * shard->group.n;
    const size_t      outs  = (size_t)(lim->max_out * shard->group.n) * (size_t)c->vocab;
    x->most_bytes           = fm__cuda_most(x->most_bytes, 2 * outs * sizeof(float));
    if (!is_one_stage(c, shard) || !is_rank0(shard)) return;
    if (ranks > 1) x->pieces = fm_slab_take(s, outs * sizeof(float));
    if (ranks > 1 || passes(lim) > 1) x->logits_room = fm_slab_take(s, passes(lim) * outs * sizeof(float));
}

/* --- quantised activations -------------------------------------------------- */

static fm_cuda_bytes take(fm_slab *s, size_t rows, size_t k)
{
    const size_t blocks = (k + FM_CUDA_FP8_K - 1) / FM_CUDA_FP8_K;
    return (fm_cuda_bytes){fm_slab_take(s, rows * k),
                           fm_slab_take(s, rows * blocks * sizeof(float))};
}

/* For rows of several widths: as many elements as the largest has, and scales for the narrowest
 * blocks that their number of columns can give. */
static fm_cuda_bytes take_any(fm_slab *s, size_t elements, size_t rows)
{
    const size_t scales = elements / FM_CUDA_FP8_K + rows;
    return (fm_cuda_bytes){fm_slab_take(s, elements), fm_slab_take(s, scales * sizeof(float))};
}

static void carve_bytes(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                        const fm_run_limits *lim, fm_slab *s)
{
    const size_t T = (size_t)lim->max_rows, D = (size_t)c->hidden, I = (size_t)c->moe_inter;
    const size_t rows = fm__cuda_pass_rows(lim, 1), all = fm__cuda_pass_rows(lim, shard->group.n);
    const size_t mlp   = (size_t)fm_shard_widest_mlp(shard, c);
    const size_t pairs = all * fm__cuda_own_slots(c, shard), most = fm__cuda_most(T, all);
    const size_t o      = (size_t)c->n_head * (size_t)c->v_dim;
    const size_t wide   = fm__cuda_most(fm__cuda_most(o, D), (size_t)c->q_lora);
    const size_t beside = (size_t)fm__cuda_least((int)rows, FM_CUDA_SIDE_ROWS);
    g->h8               = take(s, T, D);
    g->cqn8             = take(s, T, (size_t)c->q_lora);
    g->rows8            = take_any(s, fm__cuda_most(most * wide, rows * mlp), most);
    g->pair8            = take_any(s, pairs * fm__cuda_most(D, I), pairs);
    g->side.middle8     = take(s, beside, mlp);
}

/* --- drafts, choices of tokens ---------------------------------------------- */

/* A draft is verified, so its logits need not be exact: half the bytes of the head are read. */
static void carve_draft_head(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                             const fm_run_limits *lim, fm_slab *s)
{
    const size_t K = FM_CUDA_FP8_K, k = (size_t)c->hidden, out = (size_t)lim->max_out;
    const int    n = fm_range_len(fm_shard_outputs(shard->attn, c->vocab));
    if (!lim->draft_head || !n) return;
    const size_t blocks  = (k + K - 1) / K, scales = ((size_t)n + K - 1) / K * blocks;
    g->draft_head        = (fm_matrix){.n = n, .k = c->hidden, .dtype = FM_FP8};
    g->draft_head.panels = fm_slab_take(s, (size_t)n * k);
    g->draft_head.scale  = fm_slab_take(s, scales * sizeof(float));
    g->draft_row.x       = fm_slab_take(s, out * k);
    g->draft_row.scale   = fm_slab_take(s, out * blocks * sizeof(float));
}

static void carve_drafts(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                         const fm_run_limits *lim, fm_slab *s)
{
    const size_t kept = (size_t)lim->n_kept, out = (size_t)lim->max_out;
    if (!kept) return;
    g->kept                = fm_slab_take(s, kept * (size_t)c->hidden * sizeof *g->kept);
    g->best                = fm_slab_take(s, (size_t)shard->attn.n * out * sizeof *g->best);
    g->link_id             = fm_slab_take(s, out * sizeof *g->link_id);
    const size_t bytes     = (size_t)shard->attn.n * out * sizeof *g->best;
    g->exchange.most_bytes = fm__cuda_most(g->exchange.most_bytes, 2 * bytes);
    carve_draft_head(g, c, shard, lim, s);
}

static void carve_choice(fm_cuda_choice *c, size_t n, int vocab, fm_slab *s)
{
    c->how         = fm_slab_take(s, n * sizeof *c->how);
    c->n_edit      = fm_slab_take(s, sizeof *c->n_edit);
    c->edit        = fm_slab_take(s, FM_CUDA_EDITS * sizeof *c->edit);
    c->allowed     = fm_slab_take(s, n * fm__cuda_mask_words(vocab) * sizeof *c->allowed);
    c->id          = fm_slab_take(s, n * sizeof *c->id);
    c->logprob     = fm_slab_take(s, n * sizeof *c->logprob);
    c->top_id      = fm_slab_take(s, n * FM_MAX_TOP_LOGPROBS * sizeof *c->top_id);
    c->top_logprob = fm_slab_take(s, n * FM_MAX_TOP_LOGPROBS * sizeof *c->top_logprob);
}

/* --- all of it -------------------------------------------------------------- */

void fm__cuda_carve(fm_cuda_run *g, fm_acts *a, const fm_model_config *c, const fm_shard *shard,
                    const fm_run_limits *lim, fm_slab *s)
{
    const size_t angles = (size_t)lim->max_context * (size_t)(c->rope / 2);
    const size_t H = heads(c, shard), outs = (size_t)(lim->max_out * shard->group.n);
    g->list_there = take_lists(g, shard, lim, s);
    const fm_act_layout acts = {lim->max_rows, lim->max_out, sizeof(uint16_t), 0};
    fm_activations_carve(a, &lim->activations, shard, &acts, s);
    fm__cuda_carve_exchange(&g->exchange, a, c, shard, lim, s);
    carve_rooms(g, c, shard, lim, s);
    carve_absorbed(g, c, H, lim, s);
    carve_expanded(g, c, H, lim, s);
    carve_ffn(g, c, shard, lim, s);
    carve_combine(g, c, shard, lim, s);
    if (c->fp8_activations) carve_bytes(g, c, shard, lim, s);
    carve_logits(g, c, shard, lim, s);
    carve_drafts(g, c, shard, lim, s);
    carve_choice(&g->choose_there, outs, c->vocab, s);
    g->choose_scratch = fm_slab_take(s, fm_cuda_sample_bytes((int)outs, c->vocab));
    g->page     = fm_slab_take(s, (size_t)g->max_span * (size_t)g->max_page * sizeof(int32_t));
    g->slot     = fm_slab_take(s, (size_t)lim->max_rows * sizeof(int32_t));
    g->copies.stage = fm_slab_take(
        s, (size_t)lim->n_staged * fm_planes_page_bytes(&lim->planes, lim->page_size));
    g->cos      = fm_slab_take(s, angles * sizeof(float));
    g->sin      = fm_slab_take(s, angles * sizeof(float));
    g->lt_space = take_aligned(s, FM_CUDA_LT_BYTES, FM_CUDA_LT_ALIGN);
}

/* --- on the host ----------------------------------------------------------- */

static void carve_counts(fm_cuda_exchange *x, const fm_shard *shard, fm_slab *s)
{
    const size_t n = (size_t)(shard->attn.n * shard->group.n);
    x->send_at     = fm_slab_take(s, n * sizeof *x->send_at);
    x->send_n      = fm_slab_take(s, n * sizeof *x->send_n);
    x->recv_at     = fm_slab_take(s, n * sizeof *x->recv_at);
    x->recv_n      = fm_slab_take(s, n * sizeof *x->recv_n);
    x->word_rows   = fm_slab_take(s, (size_t)shard->attn.n * sizeof *x->word_rows);
    x->rows_of     = fm_slab_take(s, (size_t)shard->group.n * sizeof *x->rows_of);
    x->key_items   = fm_slab_take(s, n * (size_t)shard->expert.n * sizeof *x->key_items);
}

/* Logits of several stages come to rank 0 by way of the host. */
static void carve_stages(fm_cuda_exchange *x, const fm_model_config *c, const fm_shard *shard,
                         const fm_run_limits *lim, fm_slab *s)
{
    const size_t out = (size_t)lim->max_out, V = (size_t)c->vocab;
    const size_t part = (size_t)fm_range_len(fm_shard_outputs(shard->attn, c->vocab));
    const size_t most = V / (size_t)shard->attn.n + 2 * FM_SHARD_OUTPUTS;
    if (is_one_stage(c, shard)) return;
    for (int i = 0; fm_shard_is_last(shard, c) && i < FM_LOGITS_IN_FLIGHT; i++)
        x->logits_out[i] = fm_slab_take(s, out * part * sizeof(float));
    if (!is_rank0(shard)) return;
    x->gathered = fm_slab_take(s, passes(lim) * out * (size_t)shard->group.n * V * sizeof(float));
    x->arrived  = fm_slab_take(s, out * most * sizeof(float));
}

void fm__cuda_carve_pinned(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                           const fm_run_limits *lim, fm_slab *s)
{
    const size_t outs = (size_t)(lim->max_out * shard->group.n);
    for (int i = 0; i < FM_CUDA_AHEAD; i++) {
        g->list[i] = take_lists(g, shard, lim, s);
        carve_choice(&g->asked[i].here, outs, c->vocab, s);
    }
    carve_counts(&g->exchange, shard, s);
    carve_stages(&g->exchange, c, shard, lim, s);
    g->logits  = fm_slab_take(s, passes(lim) * outs * (size_t)c->vocab * sizeof(float));
    g->row_of  = fm_slab_take(s, (size_t)lim->max_rows * sizeof(int32_t));
    g->edit_at = fm_slab_take(s, (size_t)c->vocab * sizeof(int32_t));
    g->drafted = fm_slab_take(s, (size_t)lim->max_draft * (size_t)lim->max_out * sizeof(int32_t));
}

/* Every sequence has at most a prompt and a generated span in a pass. */
void fm__cuda_set_bounds(fm_cuda_run *g, const fm_model_config *c, const fm_run_limits *lim)
{
    const int parts = fm__cuda_parts(c, lim->max_context);
    const int units = lim->max_rows + FM_CUDA_UNIT_KEYS / fm__cuda_part_keys(c);
    g->max_span = 2 * lim->max_out;
    g->max_page = (lim->max_context + lim->page_size - 1) / lim->page_size;
    g->max_unit = units > parts ? units : parts;
    g->max_tile = lim->max_rows / FM_MLA_TILE_ROWS + g->max_span;
    g->max_key  = FM_CUDA_KEYS;
    if (g->max_key < g->max_span * FM_MLA_BLOCK_KEYS) g->max_key = g->max_span * FM_MLA_BLOCK_KEYS;
    g->exchange.fixed_rows = fm__cuda_least(lim->max_rows, lim->max_out);
}

size_t fm_run_cuda_workspace(const fm_model_config *c, const fm_shard *shard, fm_dtype act,
                             const fm_run_limits *lim)
{
    fm_cuda_run g = {0};
    fm_acts     a;
    fm_slab     s = {0};
    (void)act; /* bfloat16, or the run is refused */
    fm__cuda_set_bounds(&g, c, lim);
    fm__cuda_carve(&g, &a, c, shard, lim, &s);
    return s.used;
}

size_t fm_run_cuda_pinned(const fm_model_config *c, const fm_shard *shard, const fm_run_limits *lim)
{
    fm_cuda_run g = {0};
    fm_slab     s = {0};
    fm__cuda_set_bounds(&g, c, lim);
    fm__cuda_carve_pinned(&g, c, shard, lim, &s);
    return s.used;
}
