/* SPDX-License-Identifier: Apache-2.0 */
/* Stages and replicas whose ranks share the cores of a host: a step takes a second of a core on
 * each stage, so every time is a whole number. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "llm/simulate/simulate.h"

enum { MOST = 4, N_PROMPT = 20 };

static int32_t prompt[MOST][N_PROMPT];

/* ctx: how much of a step waits for memory. */
static void one_second(void *ctx, const fm_batch *const *b, fm_sim_times *out)
{
    (void)b;
    for (int s = 0; s < FM_SIM_MAX_STAGE; s++) {
        out->stage[s] = 1;
        out->reads[s] = ctx ? *(const double *)ctx : 0;
    }
}

/* Replicas of as many stages as there are micro-batches in flight. */
static fm_sim layout(int replicas, int stages, int ranks, int cores)
{
    return (fm_sim){.sched     = {.max_running      = 8,
                                  .chunk            = 4096,
                                  .max_prefill      = 4096,
                                  .max_context      = 64,
                                  .page_size        = 16,
                                  .n_page           = 64,
                                  .conservativeness = 1},
                    .n_replica = replicas,
                    .n_lane    = stages,
                    .n_stage   = stages,
                    .cores     = {.n_rank = ranks, .n_core = cores},
                    .step      = one_second};
}

/* Requests with so many answers each, so as many steps. */
static fm_sim_result simulate(fm_sim sim, int n, const int *n_output)
{
    fm_sim_request list[MOST];
    fm_sim_result  r;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < N_PROMPT; k++) prompt[i][k] = 100 * i + k;
        list[i] =
            (fm_sim_request){.token = prompt[i], .n_prompt = N_PROMPT, .n_output = n_output[i]};
    }
    if (fm_simulate(&r, &sim, list, n) != FM_OK) fail_msg("%s", fm_why());
    return r;
}

static void replicas_share_a_core(void **state)
{
    (void)state;
    const int           ten[2] = {10, 10};
    const fm_sim_result two    = simulate(layout(2, 1, 1, 2), 2, ten);
    assert_true(two.seconds == 10 && two.busy == 20);
    const fm_sim_result one = simulate(layout(2, 1, 1, 1), 2, ten);
    assert_true(one.seconds == 20 && one.busy == 40 && one.mean_tpot == 2);
    assert_true(simulate(layout(2, 1, 1, 0), 2, ten).seconds == 10); /* cores are not counted */
}

/* Five of the ten steps have the core to themselves. */
static void who_is_done_leaves_its_core(void **state)
{
    (void)state;
    const int unlike[2] = {10, 5};
    assert_true(simulate(layout(2, 1, 1, 1), 2, unlike).seconds == 15);
}

static void the_ranks_of_a_stage_compute_together(void **state)
{
    (void)state;
    const int ten = 10;
    assert_true(simulate(layout(1, 1, 2, 2), 1, &ten).seconds == 10);
    assert_true(simulate(layout(1, 1, 4, 2), 1, &ten).seconds == 20);
}

/* One micro-batch goes from stage to stage: the rank that waits leaves the core to the other.  Two
 * keep both stages busy if there is a core for each. */
static void a_stage_that_waits_needs_no_core(void **state)
{
    (void)state;
    const int ten[2] = {10, 10};
    assert_true(simulate(layout(1, 2, 1, 1), 1, ten).seconds == 20);
    assert_true(simulate(layout(1, 2, 1, 2), 1, ten).seconds == 20);
    const fm_sim_result two = simulate(layout(1, 2, 1, 2), 2, ten);
    assert_true(two.seconds == 21 && two.mean_tpot == 2);
    const fm_sim_result one = simulate(layout(1, 2, 1, 1), 2, ten);
    assert_true(one.seconds == 40);
}

/* Half of a step waits for memory, which two ranks share: one alone reads twice as fast, or as fast
 * as it can, and its step takes 3/4 of a second. */
static void a_rank_that_computes_alone_reads_faster(void **state)
{
    (void)state;
    const int ten[2] = {10, 10}, unlike[2] = {20, 5};
    double    half      = 0.5;
    fm_sim    sim       = layout(2, 1, 1, 2);
    sim.ctx             = &half;
    sim.cores.most_read = 4;
    assert_true(simulate(sim, 2, ten).seconds == 10);
    assert_true(simulate(sim, 1, ten).seconds == 7.5);
    assert_true(simulate(sim, 2, unlike).seconds == 5 + 15 * 0.75);
    sim.cores.most_read = 1.25;
    assert_true(fabs(simulate(sim, 1, ten).seconds - 9) < 1e-9);
    sim.cores.most_read = 0; /* not known */
    assert_true(simulate(sim, 1, ten).seconds == 10);
    sim.cores.n_core = 1; /* both take turns at full speed */
    assert_true(simulate(sim, 2, ten).seconds == 20);
}

/* Steps leave a stage in the order of their launch, however many wait for it. */
static void stages_keep_the_order(void **state)
{
    (void)state;
    const int           ten[4] = {10, 10, 10, 10};
    const fm_sim_result r      = simulate(layout(1, 4, 1, 4), 4, ten);
    assert_true(r.seconds == 43 && r.mean_tpot == 4 && r.p99_tpot == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_share_a_core),
        cmocka_unit_test(who_is_done_leaves_its_core),
        cmocka_unit_test(the_ranks_of_a_stage_compute_together),
        cmocka_unit_test(a_stage_that_waits_needs_no_core),
        cmocka_unit_test(a_rank_that_computes_alone_reads_faster),
        cmocka_unit_test(stages_keep_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
