/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks are called for every op that is issued, with layer and rows, and for no other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "llm/op/run.h"

enum { ROWS = 5, OUTS = 2, FIRST_LAYER = 7 };

static int n_issued;

static void issue_norm(fm_run *r, fm_act y, fm_f32s x, const float *w)
{
    (void)y, (void)x, (void)w;
    if (++n_issued == 3) r->fault = FM_E_DEVICE;
}

static void issue_linear(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row)
{
    (void)r, (void)y, (void)x, (void)w;
    assert_int_equal(n_row, OUTS);
    n_issued++;
}

static const fm_ops ops = {.name = "none", .rmsnorm = issue_norm, .linear_f32 = issue_linear};

typedef struct {
    fm_op_hook hook;
    fm_op_call began[4], ended[4];
    int        n_begun, n_ended;
} log_of_calls;

static void note_begin(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    log_of_calls *l = (log_of_calls *)h;
    (void)r;
    assert_int_equal(l->n_begun, n_issued); /* told before */
    l->began[l->n_begun++] = *c;
}

static void note_end(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    log_of_calls *l = (log_of_calls *)h;
    (void)r;
    l->ended[l->n_ended++] = *c;
    assert_int_equal(l->n_ended, n_issued); /* and behind */
}

typedef struct {
    fm_weights weights;
    fm_batch   batch;
    fm_run     run;
    float      h[1], x[1], norm[1], logits[1];
    fm_matrix  head;
} stand;

static void start(stand *s)
{
    n_issued = 0;
    memset(s, 0, sizeof *s);
    s->weights.shard.layer = (fm_range){FIRST_LAYER, FIRST_LAYER + 2};
    s->batch               = (fm_batch){.n_row = ROWS, .n_out = OUTS};
    s->run                 = (fm_run){.ops = &ops, .weights = &s->weights};
    fm_run_start(&s->run, &s->batch);
}

static void norm(stand *s)
{
    fm_rmsnorm(&s->run, (fm_act){s->h, 1, 1}, (fm_f32s){s->x, 1}, s->norm);
}

static void head(stand *s)
{
    fm_linear_out(&s->run, (fm_f32s){s->logits, 1}, (fm_act){s->h, 1, 1}, &s->head);
}

static void a_hook_learns_op_layer_rows_and_operands(void **state)
{
    stand        s;
    log_of_calls l = {.hook = {.begin = note_begin, .end = note_end}};
    (void)state;
    start(&s);
    fm_run_add_hook(&s.run, &l.hook);
    fm_at_layer(&s.run, 1);
    norm(&s);
    fm_at_layer(&s.run, FM_NO_LAYER);
    head(&s);
    assert_int_equal(l.n_begun, 2);
    assert_int_equal(l.n_ended, 2);
    assert_int_equal(l.ended[0].op, FM_OP_RMSNORM);
    assert_int_equal(l.ended[0].layer, FIRST_LAYER + 1);
    assert_int_equal(l.ended[0].n_row, ROWS);
    assert_ptr_equal(l.ended[0].out, s.h);
    assert_ptr_equal(l.ended[0].weights, s.norm);
    assert_int_equal(l.began[1].op, FM_OP_HEAD);
    assert_int_equal(l.began[1].layer, FM_NO_LAYER);
    assert_int_equal(l.began[1].n_row, OUTS);
    assert_string_equal(fm_op_name(l.began[1].op), "head");
}

static void a_removed_hook_hears_nothing(void **state)
{
    stand        s;
    log_of_calls a = {.hook = {.end = note_end}}, b = a, c = a;
    (void)state;
    start(&s);
    fm_run_add_hook(&s.run, &a.hook);
    fm_run_add_hook(&s.run, &b.hook);
    fm_run_add_hook(&s.run, &c.hook);
    fm_run_remove_hook(&s.run, &b.hook);
    norm(&s);
    fm_run_remove_hook(&s.run, &c.hook);
    norm(&s);
    fm_run_remove_hook(&s.run, &a.hook);
    norm(&s);
    assert_int_equal(a.n_ended, 2);
    assert_int_equal(b.n_ended, 0);
    assert_int_equal(c.n_ended, 1);
    assert_null(s.run.hook);
}

static void ops_after_a_fault_or_in_a_replay_are_not_told(void **state)
{
    stand        s;
    log_of_calls l = {.hook = {.begin = note_begin, .end = note_end}};
    (void)state;
    start(&s);
    fm_run_add_hook(&s.run, &l.hook);
    s.run.is_replayed = 1;
    norm(&s);
    assert_int_equal(l.n_begun, 0);
    s.run.is_replayed = 0;
    for (int i = 0; i < 5; i++) norm(&s); /* the third fails: its end is reported */
    assert_int_equal(n_issued, 3);
    assert_int_equal(l.n_begun, 3);
    assert_int_equal(l.n_ended, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hook_learns_op_layer_rows_and_operands),
        cmocka_unit_test(a_removed_hook_hears_nothing),
        cmocka_unit_test(ops_after_a_fault_or_in_a_replay_are_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
