/* SPDX-License-Identifier: Apache-2.0 */
/* The simulation against the engine: the same requests give the same sequence of steps, each with
 * the same rows, prompt rows and sequences, with chunks, a cache, a pool that is too small, few
 * sequences at a time, and drafts.  With a layout's name, under mpirun, the same for an engine of
 * several partitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/draft/gain.h"
#include "llm/engine.h"
#include "llm/simulate/simulate.h"

enum { N_REQUEST = 24, MOST_PROMPT = 160, MOST_STEP = 4096, MAX_CONTEXT = 256 };

typedef struct {
    int64_t row, prefill, decode, running, preempted;
} step_shape;

typedef struct {
    step_shape     shape[MOST_STEP];
    int            n;
    fm_sched_stats last;
} recording;

static int32_t        prompt[N_REQUEST][MOST_PROMPT];
static fm_sim_request request[N_REQUEST];
static recording      engine_steps, sim_steps;

static void record(recording *r, const fm_sched_stats *s)
{
    assert_true(r->n < MOST_STEP);
    r->shape[r->n++] =
        (step_shape){s->n_row - r->last.n_row, s->n_prefill_row - r->last.n_prefill_row,
                     s->n_decode_row - r->last.n_decode_row, s->sum_running - r->last.sum_running,
                     s->n_preemption - r->last.n_preemption};
    r->last = *s;
}

/* Groups of six begin with the same tokens. */
static void make_requests(void)
{
    for (int i = 0; i < N_REQUEST; i++) {
        const int n = 20 + (int)(fm_rng_u32(1, (uint64_t)i) % (MOST_PROMPT - 20));
        for (int k = 0; k < n; k++)
            prompt[i][k] =
                (int32_t)(fm_rng_u32(k < 48 ? 100 + (uint64_t)(i / 6) : 200 + (uint64_t)i,
                                     (uint64_t)k) %
                          4000);
        request[i] = (fm_sim_request){.token    = prompt[i],
                                      .n_prompt = n,
                                      .n_output = 4 + (int)(fm_rng_u32(2, (uint64_t)i) % 80)};
    }
}

static void run_engine(fm_engine *e)
{
    engine_steps = (recording){.last = fm_engine_get_info(e).sched};
    for (int i = 0; i < N_REQUEST; i++) {
        uint64_t  id;
        fm_prompt p = {
            .token = prompt[i], .n_token = request[i].n_prompt, .sampling = fm_sampling_default()};
        p.sampling.temperature    = 0;
        p.sampling.ignore_eos     = 1;
        p.sampling.max_new_tokens = request[i].n_output;
        if (fm_engine_submit(e, &p, &id) != FM_OK) fail_msg("%s", fm_why());
    }
    while (fm_engine_busy(e)) {
        fm_event ev;
        if (fm_engine_step(e) != FM_OK) fail_msg("%s", fm_why());
        while (fm_engine_poll(e, &ev)) continue;
        const fm_sched_stats s = fm_engine_get_info(e).sched;
        if (s.n_step > engine_steps.last.n_step) record(&engine_steps, &s);
    }
}

static void one_second(void *ctx, const fm_batch *const *b, fm_sim_times *out)
{
    (void)ctx;
    (void)b;
    for (int s = 0; s < FM_SIM_MAX_STAGE; s++) out->stage[s] = 1;
}

static void record_simulated(void *ctx, const fm_sched_stats *s)
{
    (void)ctx;
    record(&sim_steps, s);
}

static fm_sim simulation_of(const fm_engine *e, const fm_options *o)
{
    const fm_engine_info info = fm_engine_get_info(e);
    const int     n_lane = (int)o->pp_size, n_group = o->enable_dp_attention ? (int)o->dp_size : 1;
    const int     n_draft = o->speculative_algorithm ? (int)o->speculative_num_steps : 0;
    const int64_t pages   = info.plan.max_tokens / info.plan.page_size;
    return (fm_sim){
        .sched   = {.max_running = fm_engine_max_running(e) / n_lane / n_group,
                    .chunk       = o->chunked_prefill_size > 0 ? (int)o->chunked_prefill_size : 0,
                    .max_prefill = (int)o->max_prefill_tokens,
                    .max_context = fm_engine_context(e),
                    .page_size   = info.plan.page_size,
                    .n_page      = (int)(pages / n_lane / n_group),
                    .max_draft   = n_draft,
                    .simulated =
                      n_draft ? fm_acceptance_for(info.simulated_accept_length, n_draft) : 0,
                    .conservativeness = o->schedule_conservativeness},
        .share   = !o->disable_radix_cache,
        .n_lane  = n_lane,
        .n_group = n_group,
        .n_stage = (int)o->pp_size,
        .n_draft = n_draft,
        .step    = one_second,
        .stepped = record_simulated};
}

static fm_sim_result run_simulation(const fm_engine *e, const fm_options *o)
{
    const fm_sim  sim = simulation_of(e, o);
    fm_sim_result out = {0};
    sim_steps         = (recording){0};
    if (fm_simulate(&out, &sim, request, N_REQUEST) != FM_OK) fail_msg("%s", fm_why());
    return out;
}

#define SHAPE(layers)                                                                              \
    "{\"num_hidden_layers\":" layers ",\"hidden_size\":128,\"intermediate_size\":128,"             \
    "\"moe_intermediate_size\":64,\"n_routed_experts\":16,\"vocab_size\":4096}"

typedef struct {
    const char *name;
    const char *option[4][2];
} setting;

static const setting settings[] = {
    {"as it comes", {{0}}},
    {"chunks of 64", {{"chunked-prefill-size", "64"}}},
    {"whole prompts", {{"chunked-prefill-size", "-1"}, {"max-prefill-tokens", "200"}}},
    {"no cache, five sequences", {{"disable-radix-cache", "1"}, {"max-running-requests", "5"}}},
    {"a small pool", {{"max-total-tokens", "320"}, {"schedule-conservativeness", "0"}}},
    {"drafts",
     {{"speculative-algorithm", "NEXTN"},
      {"speculative-num-steps", "2"},
      {"speculative-simulate-accept-length", "1.8"},
      {"disable-speculative-adaptive", "1"}}},
};

/* Under mpirun, by name; several partitions. */
static const setting on_ranks[] = {
    {"pp2", {{"pp-size", "2"}, {"json-model-override-args", SHAPE("2")}}},
    {"dp-attention2", {{"tp-size", "2"}, {"dp-size", "2"}, {"enable-dp-attention", "1"}}},
};

static fm_options *options_of(const setting *s)
{
    fm_options *o = NULL;
    assert_int_equal(fm_options_create(&o), FM_OK);
    fm_options_set(o, "model-path", "r1-mini");
    fm_options_set(o, "context-length", "256");
    fm_options_set(o, "max-total-tokens", "8192");
    fm_options_set(o, "json-model-override-args", SHAPE("1"));
    for (int i = 0; i < 4 && s->option[i][0]; i++)
        if (fm_options_set(o, s->option[i][0], s->option[i][1]) != FM_OK) fail_msg("%s", fm_why());
    return o;
}

static void steps_agree(void **state)
{
    const setting *s = *state;
    fm_options    *o = options_of(s);
    fm_engine     *e = NULL;
    if (fm_engine_open(&e, o) != FM_OK) fail_msg("%s", fm_why());
    make_requests();
    run_engine(e);
    const fm_sim_result r = run_simulation(e, o);

    print_message("%s: %d steps\n", s->name, engine_steps.n);
    assert_int_equal(sim_steps.n, engine_steps.n);
    for (int i = 0; i < sim_steps.n; i++)
        if (memcmp(&sim_steps.shape[i], &engine_steps.shape[i], sizeof(step_shape)))
            fail_msg("step %d: %d rows simulated, %d run", i, (int)sim_steps.shape[i].row,
                     (int)engine_steps.shape[i].row);
    assert_true(r.seconds == sim_steps.n && r.mean_ttft >= 1);
    assert_true(o->speculative_algorithm ? r.mean_tpot < 0.8 : r.mean_tpot >= 1);
    assert_int_equal(r.n_output, r.sched.n_output);
    assert_int_equal(r.sched.n_preemption, 0); /* lengths are known: admission is exact */
    fm_engine_close(e);
    fm_options_destroy(o);
}

/* One request at a time, far apart: the clock waits for each, and latencies are their own. */
static void arrivals_move_the_clock(void **state)
{
    (void)state;
    fm_sim_request few[3];
    fm_sim_result  r;
    make_requests();
    for (int i = 0; i < 3; i++) {
        few[i]          = request[7 * i];
        few[i].arrival  = 1000.0 * i;
        few[i].n_output = 10;
    }
    const fm_sim sim = {.sched = {.max_running      = 8,
                                  .chunk            = 4096,
                                  .max_prefill      = 4096,
                                  .max_context      = MAX_CONTEXT,
                                  .page_size        = 16,
                                  .n_page           = 512,
                                  .conservativeness = 1},
                        .step  = one_second};
    assert_int_equal(fm_simulate(&r, &sim, few, 3), FM_OK);
    assert_true(r.mean_ttft == 1 && r.mean_tpot == 1 && r.seconds == 2010);
    assert_int_equal(r.sched.n_step, 30);
    few[0].n_prompt = 0;
    assert_int_equal(fm_simulate(&r, &sim, few, 3), FM_E_ARG);
}

/* Two users, one sequence at a time, answers of ten steps: a request waits for the one before it,
 * and how many there are does not matter. */
static void users_ask_again(void **state)
{
    (void)state;
    fm_sim_request some[N_REQUEST];
    make_requests();
    for (int i = 0; i < N_REQUEST; i++) {
        some[i]          = request[i];
        some[i].n_prompt = 20;
        some[i].n_output = 10;
    }
    fm_sim sim = {.sched       = {.max_running      = 1,
                                  .chunk            = 4096,
                                  .max_prefill      = 4096,
                                  .max_context      = MAX_CONTEXT,
                                  .page_size        = 16,
                                  .n_page           = 512,
                                  .conservativeness = 1},
                  .concurrency = 2,
                  .is_steady   = 1,
                  .step        = one_second};
    for (int n = 6; n <= N_REQUEST; n += 6) {
        fm_sim_result r;
        assert_int_equal(fm_simulate(&r, &sim, some, n), FM_OK);
        assert_true(r.mean_ttft == 11 && r.p99_ttft == 11 && r.mean_tpot == 1);
        assert_true(r.throughput == 3); /* 20 in and 10 out in ten seconds */
    }
    fm_sim_result r;
    assert_int_equal(fm_simulate(&r, &sim, some, 4), FM_E_ARG); /* nothing is left to measure */
}

static void compare_totals(fm_engine *e, const fm_options *o)
{
    const fm_sched_stats before = fm_engine_get_info(e).sched;
    make_requests();
    run_engine(e);
    const fm_sched_stats got = fm_engine_get_info(e).sched, sim = run_simulation(e, o).sched;
    print_message("%lld steps run, %lld simulated\n", (long long)(got.n_step - before.n_step),
                  (long long)sim.n_step);
    assert_int_equal(sim.n_step, got.n_step - before.n_step);
    assert_int_equal(sim.n_row, got.n_row - before.n_row);
    assert_int_equal(sim.n_prefill_row, got.n_prefill_row - before.n_prefill_row);
    assert_int_equal(sim.n_decode_row, got.n_decode_row - before.n_decode_row);
    assert_int_equal(sim.sum_running, got.sum_running - before.sum_running);
}

/* This process is one rank of an engine with several partitions: rank 0 compares what all of them
 * have run together. */
static void totals_agree(void **state)
{
    const setting *s = *state;
    fm_options    *o = options_of(s);
    fm_engine     *e = NULL;
    if (fm_engine_open(&e, o) != FM_OK) fail_msg("%s", fm_why());
    if (fm_engine_is_leader(e))
        compare_totals(e, o);
    else if (fm_engine_follow(e) != FM_OK)
        fail_msg("%s", fm_why());
    fm_engine_close(e);
    fm_options_destroy(o);
}

static int run_on_ranks(const char *name)
{
    for (size_t i = 0; i < sizeof on_ranks / sizeof *on_ranks; i++) {
        const struct CMUnitTest one[] = {
            {on_ranks[i].name, totals_agree, NULL, NULL, (void *)&on_ranks[i]}};
        if (!strcmp(on_ranks[i].name, name)) return cmocka_run_group_tests(one, NULL, NULL);
    }
    return 2;
}

int main(int argc, char **argv)
{
    if (argc > 1) return run_on_ranks(argv[1]);
    enum { N = sizeof settings / sizeof settings[0] };
    struct CMUnitTest tests[N + 2];
    for (size_t i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){settings[i].name, steps_agree, NULL, NULL, (void *)&settings[i]};
    tests[N]     = (struct CMUnitTest)cmocka_unit_test(arrivals_move_the_clock);
    tests[N + 1] = (struct CMUnitTest)cmocka_unit_test(users_ask_again);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
