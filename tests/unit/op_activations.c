/* SPDX-License-Identifier: Apache-2.0 */
/* Declared activations: every buffer once, and laid out as the exchanges expect them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/model/model.h"

static fm_model_config config_of(const char *shape)
{
    fm_model_path   where;
    fm_model_config c;
    if (fm_model_path_find(&where, shape) != FM_OK) fail_msg("%s", fm_why());
    if (fm_config_of(&c, &where, NULL) != FM_OK) fail_msg("%s", fm_why());
    return c;
}

static const char *end_of(const void *p, size_t bytes)
{
    return (const char *)p + bytes;
}

static void carve(fm_acts *a, const fm_activations *l, const fm_shard *s, const fm_act_layout *how)
{
    fm_slab count = {0};
    fm_activations_carve(a, l, s, how, &count);
    fm_slab slab = {.base = malloc(count.used), .size = count.used};
    assert_non_null(slab.base);
    memset(a, 0, sizeof *a);
    fm_activations_carve(a, l, s, how, &slab);
    assert_int_equal(slab.used, count.used);
    free(slab.base);
}

static void every_buffer_is_declared_once(void **state)
{
    (void)state;
    const fm_model_config c = config_of("r1-mini");
    const fm_shard        s = fm_shard_whole(&c);
    const fm_activations  l = fm_model_deepseek.activations(&c, &s);
    char                  seen[sizeof(fm_acts)] = {0};
    size_t                bytes = 0;
    for (int i = 0; i < l.n; i++) {
        const fm_activation *b = &l.buffer[i];
        bytes += b->type == FM_ACT_INPUT ? sizeof(fm_act) : b->type == FM_ACT_F32 ? sizeof(fm_f32s)
                                                                                 : sizeof(fm_routing);
        assert_int_equal(seen[b->at]++, 0);
    }
    assert_int_equal(bytes, sizeof(fm_acts));
}

static void one_group_receives_what_it_sent(void **state)
{
    (void)state;
    const fm_model_config c   = config_of("r1-mini");
    const fm_shard        s   = fm_shard_whole(&c);
    const fm_activations  l   = fm_model_deepseek.activations(&c, &s);
    const fm_act_layout   how = {8, 3, 2, 32};
    fm_acts               a;
    carve(&a, &l, &s, &how);
    assert_ptr_equal(a.h_all.data, a.h.data);
    assert_ptr_equal(a.route_all.expert, a.route.expert);
    assert_int_equal(a.h.stride, c.hidden + 32);
    assert_true((const char *)a.cq.data >= end_of(a.h.data, 8 * (size_t)a.h.stride * 2));
}

static void groups_exchange_rows_without_padding(void **state)
{
    (void)state;
    const fm_model_config c = config_of("r1-mini");
    fm_shard              s = fm_shard_whole(&c);
    s.group                 = (fm_share){1, 3};
    const fm_activations l   = fm_model_deepseek.activations(&c, &s);
    const fm_act_layout  how = {8, 3, 2, 32};
    fm_acts              a;
    carve(&a, &l, &s, &how);
    assert_int_equal(a.h.stride, c.hidden);
    assert_int_equal(a.h_all.stride, c.hidden);
    assert_int_equal(a.q.stride, a.q.width + 32);
    assert_ptr_not_equal(a.h_all.data, a.h.data);
    assert_true((const char *)a.route_all.expert >=
                end_of(a.h_all.data, 3 * 8 * (size_t)c.hidden * 2));
}

static void ranks_divide_heads_and_columns(void **state)
{
    (void)state;
    const fm_model_config c = config_of("r1-mini");
    int                   heads = 0, columns = 0, words = 0;
    for (int i = 0; i < 3; i++) {
        fm_shard s             = fm_shard_whole(&c);
        s.attn                 = (fm_share){i, 3};
        const fm_activations l = fm_model_deepseek.activations(&c, &s);
        const fm_activation *o = fm_activation_find(&l, FM_ACT_INPUT, FM_ACT_PIECE);
        assert_int_equal(o->width, fm_range_len(fm_columns_part(o->columns, i)));
        heads += o->width;
        columns += fm_activation_find(&l, FM_ACT_F32, FM_ACT_PIECE)->width;
        words += fm_activation_find(&l, FM_ACT_F32, FM_ACT_LOGITS)->width;
        assert_int_equal(fm_activation_find(&l, FM_ACT_INPUT, FM_ACT_GATHERED)->width,
                         c.n_head * c.v_dim);
    }
    assert_int_equal(heads, c.n_head * c.v_dim);
    assert_int_equal(columns, c.hidden);
    assert_int_equal(words, c.vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_buffer_is_declared_once),
        cmocka_unit_test(one_group_receives_what_it_sent),
        cmocka_unit_test(groups_exchange_rows_without_padding),
        cmocka_unit_test(ranks_divide_heads_and_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
