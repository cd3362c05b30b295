/* SPDX-License-Identifier: Apache-2.0 */
/* Which layouts are legal, what is said about the others, and that the ranks
 * of a legal one have the whole model between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/rank/layout.h"

static const fm_model_config model = {.n_layer = 6, .n_head = 16, .n_expert = 24, .hidden = 256,
                                      .vocab = 1000, .top_k = 4, .moe_freq = 1};

static fm_status make(fm_layout *l, fm_rank_sizes s, int rank, int world)
{
    return fm_layout_make(l, &s, &model, rank, world);
}

static void refuses(fm_rank_sizes s, int world, const char *words)
{
    fm_layout l;
    assert_int_equal(make(&l, s, 0, world), FM_E_ARG);
    if (!strstr(fm_why(), words)) fail_msg("\"%s\" lacks \"%s\"", fm_why(), words);
}

static void says_what_is_wrong(void **state)
{
    (void)state;
    refuses((fm_rank_sizes){2, 1, 1, 1, 0}, 1, "mpirun -np 2 fathom");
    refuses((fm_rank_sizes){2, 2, 2, 1, 0}, 1, "mpirun -np 8 fathom");
    refuses((fm_rank_sizes){1, 1, 1, 1, 0}, 2, "2 ranks were started, but");
    refuses((fm_rank_sizes){2, 2, 1, 1, 0}, 3, "is 4");
    refuses((fm_rank_sizes){4, 1, 3, 1, 1}, 4, "--dp-size 3 must divide --tp-size 4");
    refuses((fm_rank_sizes){4, 1, 1, 3, 0}, 4, "--ep-size 3 must divide --tp-size 4");
    refuses((fm_rank_sizes){3, 1, 1, 1, 0}, 3, "3 does not divide the model's 16 heads");
    refuses((fm_rank_sizes){16, 1, 1, 16, 0}, 16, "--ep-size 16 must divide the model's 24 experts");
    refuses((fm_rank_sizes){1, 7, 1, 1, 0}, 7, "only 6 layers");
}

/* Attention ranks must divide the heads; groups make them fewer. */
static void groups_help_with_heads(void **state)
{
    (void)state;
    fm_layout l;
    refuses((fm_rank_sizes){24, 1, 1, 1, 0}, 24, "heads");
    assert_int_equal(make(&l, (fm_rank_sizes){24, 1, 3, 1, 1}, 23, 24), FM_OK);
    assert_int_equal(l.n_group, 3);
    assert_int_equal(l.n_replica, 1);
    assert_int_equal(l.shard.attn.n, 8);
    assert_int_equal(l.shard.group.index, 2);
}

static void no_experts_no_ep(void **state)
{
    (void)state;
    fm_model_config     dense = model;
    const fm_rank_sizes s     = {2, 1, 1, 2, 0};
    fm_layout           l;
    dense.n_expert = 0;
    assert_int_equal(fm_layout_make(&l, &s, &dense, 0, 2), FM_E_ARG);
    assert_non_null(strstr(fm_why(), "no experts"));
}

/* How often each head and expert channel is held in one stage. */
typedef struct {
    int head[16], word[1000], expert[24];
} held;

static void add_rank(held *h, const fm_layout *l)
{
    const fm_range heads = fm_shard_heads(&l->shard, &model);
    const fm_range words = fm_shard_outputs(l->shard.attn, model.vocab);
    fm_placement  *where = NULL;
    assert_int_equal(fm_placement_create_even(&where, model.n_expert, l->shard.expert.n), FM_OK);
    assert_int_equal(fm_placement_slots(where, l->shard.expert.index), fm_shard_n_expert(&l->shard, &model));
    for (int i = heads.begin; i < heads.end; i++) h->head[i]++;
    for (int i = words.begin; i < words.end; i++) h->word[i]++;
    for (int i = 0; i < fm_shard_n_expert(&l->shard, &model); i++)
        h->expert[fm_placement_expert(where, l->shard.expert.index, i)]++;
    fm_placement_destroy(where);
}

static void check_stage(const fm_rank_sizes *s, int first, int world)
{
    held      h = {0};
    fm_layout l;
    for (int t = 0; t < s->tp; t++) {
        assert_int_equal(fm_layout_make(&l, s, &model, first + t, world), FM_OK);
        assert_int_equal(l.place, t);
        assert_int_equal(l.shard.group.index * l.shard.attn.n + l.shard.attn.index, t);
        assert_int_equal(l.shard.expert.index * l.shard.channel.n + l.shard.channel.index, t);
        assert_int_equal(l.is_leader, first % (s->tp * s->pp) + t == 0);
        add_rank(&h, &l);
    }
    for (int i = 0; i < 16; i++) assert_int_equal(h.head[i], l.n_group);
    for (int i = 0; i < 1000; i++) assert_int_equal(h.word[i], l.n_group);
    for (int i = 0; i < 24; i++) assert_int_equal(h.expert[i], s->tp / s->ep);
}

static void every_legal_layout_has_the_whole_model(void **state)
{
    (void)state;
    int n_legal = 0;
    for (int code = 0; code < 4 * 3 * 3 * 4 * 2; code++) {
        const fm_rank_sizes s = {1 << code % 4, 1 << code / 4 % 3, 1 << code / 12 % 3,
                                 1 << code / 36 % 4, code / 144};
        const int           world = s.tp * s.pp * (s.dp_attention ? 1 : s.dp);
        fm_layout           l;
        if (fm_layout_make(&l, &s, &model, 0, world) != FM_OK) {
            assert_true(s.tp % s.ep || (s.dp_attention && s.tp % s.dp));
            continue;
        }
        n_legal++;
        for (int first = 0; first < world; first += s.tp) check_stage(&s, first, world);
    }
    assert_true(n_legal > 100);
}

static void the_table_names_all_ranks(void **state)
{
    (void)state;
    fm_layout      l;
    fm_str         text    = {0};
    const fm_range stage[] = {{0, 2}, {2, 6}};
    assert_int_equal(make(&l, (fm_rank_sizes){2, 2, 2, 2, 0}, 0, 8), FM_OK);
    fm_layout_print(&l, stage, &model, &text);
    assert_non_null(strstr(text.text, "ranks 6-7  replica 1  layers 2-5"));
    assert_non_null(strstr(text.text, "heads 8 of 16"));
    assert_non_null(strstr(text.text, "experts 12 of 24"));
    fm_str_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_is_wrong),
        cmocka_unit_test(groups_help_with_heads),
        cmocka_unit_test(no_experts_no_ep),
        cmocka_unit_test(every_legal_layout_has_the_whole_model),
        cmocka_unit_test(the_table_names_all_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
