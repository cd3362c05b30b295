/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda/model_profile.h"

#include "bench/cuda/model_stand.h"
#include "bench/cuda/stand.h"

static fm_op op_of[STAND_MARKS]; /* that ran before a mark; the first mark has none */
static int   n_mark;

static void mark(const fm_run *r, fm_op op)
{
    n_mark            = stand_mark(fm_gpu_stream(r)) + 1;
    op_of[n_mark - 1] = op;
}

static void op_begins(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    (void)h;
    if (n_mark == 0) mark(r, c->op);
}

/* On one rank these launch nothing. */
static int is_meeting(fm_op op)
{
    return op == FM_OP_GATHER_ACT || op == FM_OP_DISPATCH || op == FM_OP_COLLECT;
}

static void op_ends(fm_op_hook *h, fm_run *r, const fm_op_call *c)
{
    (void)h;
    if (!is_meeting(c->op)) mark(r, c->op);
}

static fm_op_hook hook = {.begin = op_begins, .end = op_ends};

static void reset(void)
{
    n_mark = 0;
    stand_marks_reset();
}

void fm_gpu_profile_begin(fm_run *r)
{
    fm_run_add_hook(r, &hook);
    reset();
}

void fm_gpu_profile_end(fm_run *r) { fm_run_remove_hook(r, &hook); }

void fm_gpu_profile_take(double us[FM_N_OP])
{
    for (int i = 0; i < FM_N_OP; i++) us[i] = 0;
    for (int i = 1; i < n_mark; i++) us[op_of[i]] += stand_between(i - 1, i);
    reset();
}
