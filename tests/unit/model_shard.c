/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a layout hold together is the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/weights/weights.h"

enum { MOST_PIECES = 200, MOST_ROWS = 256 };

static const fm_model_config small = {
    .vocab       = 70,
    .hidden      = 96,
    .n_layer     = 3,
    .n_dense     = 1,
    .moe_freq    = 1,
    .n_head      = 3,
    .q_lora      = 32,
    .kv_lora     = 32,
    .nope        = 32,
    .rope        = 8,
    .v_dim       = 32,
    .dense_inter = 96,
    .moe_inter   = 32,
    .n_expert    = 5,
    .n_shared    = 2,
    .top_k       = 2,
    .n_group     = 1,
    .top_group   = 1,
    .route       = FM_ROUTE_NOAUX_TC,
    .score       = FM_SCORE_SIGMOID,
};

static fm_dtype always(void *ctx, const char *tensor)
{
    (void)tensor;
    return *(fm_dtype *)ctx;
}

static void check_shares(int all, int unit, int n)
{
    int end = 0;
    for (int i = 0; i < n; i++) {
        const fm_range r = fm_share_of((fm_share){i, n}, all, unit);
        assert_int_equal(r.begin, end);
        assert_true(r.end >= r.begin && (r.begin % unit == 0 || r.begin == all));
        end = r.end;
        for (int k = 1; k <= 4; k++) { /* divided further, its parts lie in it */
            assert_int_equal(fm_share_of((fm_share){i * k, n * k}, all, unit).begin, r.begin);
            assert_int_equal(fm_share_of((fm_share){i * k + k - 1, n * k}, all, unit).end, r.end);
        }
    }
    assert_int_equal(end, all);
}

static void shares_divide_and_nest(void **state)
{
    (void)state;
    static const int size[] = {0, 1, 15, 16, 31, 32, 33, 96, 500, 7168}, unit[] = {1, 16, 32};
    for (int k = 0; k < 30; k++)
        for (int n = 1; n <= 12; n++) check_shares(size[k / 3], unit[k % 3], n);
}

typedef struct {
    int attn, group, expert, channel, stage;
} sizes;

static fm_shard shard_of(const sizes *n, int stage, int place)
{
    return (fm_shard){.attn    = {place % n->attn, n->attn},
                      .group   = {place / n->attn, n->group},
                      .expert  = {place / n->channel, n->expert},
                      .channel = {place % n->channel, n->channel},
                      .layer   = {3 * stage / n->stage, 3 * (stage + 1) / n->stage}};
}

/* How many ranks of a stage have a row: one where experts are divided, one of
 * each group where attention divides, otherwise all.  The last stage drafts, and
 * has the embedding once more. */
static int times_held(const sizes *n, const fm_piece *p)
{
    const char *tensor = p->tensor;
    if (strstr(tensor, "embed_tokens")) return n->group * (n->stage > 1 ? 2 : 1);
    if (strstr(tensor, "eh_proj") && p->col0) return n->group;
    static const char *const divided[] = {"q_b_proj",     "kv_b_proj",   "o_proj",
                                          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
                                          "lm_head",      "shared_experts"};
    for (size_t i = 0; i < sizeof divided / sizeof *divided; i++)
        if (strstr(tensor, divided[i])) return n->group;
    return strstr(tensor, "mlp.experts.") ? 1 : n->attn * n->group;
}

static int held[MOST_PIECES][MOST_ROWS];

static int index_of(const fm_weights *w, const fm_piece *p)
{
    for (int i = 0; i < w->n_piece; i++)
        if (!strcmp(w->piece[i].tensor, p->tensor) && w->piece[i].col0 == p->col0) return i;
    fail_msg("the whole model has no %s", p->tensor);
    return -1;
}

static void note_part(const fm_weights *whole, const fm_weights *part)
{
    for (int i = 0; i < part->n_piece; i++) {
        const fm_piece *p  = &part->piece[i];
        const int       at = index_of(whole, p);
        assert_int_equal(p->rows, whole->piece[at].rows);
        assert_int_equal(p->k, whole->piece[at].k); /* the terms of a sum are never divided */
        assert_true(p->row0 >= 0 && p->row0 + p->n <= p->rows && p->rows <= MOST_ROWS);
        for (int64_t r = 0; r < p->n; r++) held[at][p->row0 + r]++;
    }
}

static void check_layout(const sizes *n)
{
    fm_dtype        type = FM_BF16;
    fm_weights_want want = {.act = FM_BF16, .n_mtp = 1, .dtype_of = always, .ctx = &type};
    fm_weights      whole, part;
    fm_slab         s = {0};
    memset(held, 0, sizeof held);
    assert_int_equal(fm_weights_layout(&whole, &small, &want, &s), FM_OK);
    assert_true(whole.n_piece <= MOST_PIECES);
    for (int i = 0; i < n->stage * n->attn * n->group; i++) {
        const fm_shard shard = shard_of(n, i / (n->attn * n->group), i % (n->attn * n->group));
        want.shard           = &shard;
        assert_int_equal(fm_weights_layout(&part, &small, &want, &s), FM_OK);
        assert_int_equal(part.n_layer, fm_range_len(shard.layer));
        note_part(&whole, &part);
        fm_weights_fini(&part);
    }
    for (int i = 0; i < whole.n_piece; i++)
        for (int64_t r = 0; r < whole.piece[i].rows; r++)
            if (held[i][r] != times_held(n, &whole.piece[i]))
                fail_msg("attn %d group %d expert %d channel %d stages %d: row %d of %s is held %d "
                         "times",
                         n->attn, n->group, n->expert, n->channel, n->stage, (int)r,
                         whole.piece[i].tensor, held[i][r]);
    fm_weights_fini(&whole);
}

static void ranks_hold_the_model(void **state)
{
    (void)state;
    for (int tp = 1; tp <= 6; tp++)
        for (int group = 1; group <= tp; group++)
            for (int expert = 1; expert <= tp; expert++)
                for (int stage = 1; stage <= 3; stage++) {
                    if (tp % group || tp % expert) continue;
                    check_layout(&(sizes){tp / group, group, expert, tp / expert, stage});
                }
}

/* A head of 40 rows begins inside half a panel, whose scale is one number. */
static void fp8_heads_that_cannot_be_cut(void **state)
{
    (void)state;
    fm_dtype              type  = FM_FP8;
    const fm_shard        shard = shard_of(&(sizes){3, 1, 1, 3, 1}, 0, 1);
    const fm_weights_want want  = {
         .shard = &shard, .act = FM_BF16, .dtype_of = always, .ctx = &type};
    fm_weights w;
    fm_slab    s = {0};
    assert_int_equal(fm_weights_layout(&w, &small, &want, &s), FM_E_NOSUP);
    assert_non_null(strstr(fm_why(), "q_b_proj"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_divide_and_nest),
        cmocka_unit_test(ranks_hold_the_model),
        cmocka_unit_test(fp8_heads_that_cannot_be_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
