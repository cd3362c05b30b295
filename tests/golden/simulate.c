/* SPDX-License-Identifier: Apache-2.0 */
/* The simulation against the engine: the same requests give the same sequence of steps, each with
 * the same rows, prompt rows, sequences and preemptions, with chunks, a cache, a pool that is too
 * small, lengths that the scheduler has to guess, few sequences at a time, drafts, and files below
 * the pool.  With a layout's name, under mpirun, the same for an engine of several partitions or
 * replicas. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/draft/gain.h"
#include "llm/engine.h"
#include "llm/open/foresee.h"
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
static void make_requests(int is_open)
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
                                      .n_output = 4 + (int)(fm_rng_u32(2, (uint64_t)i) % 80),
                                      .is_open  = is_open};
    }
}

/* An open answer may end early as far as the scheduler knows; sampling sees to it that it does
 * not. */
static void submit(fm_engine *e, const fm_sim_request *r)
{
    uint64_t  id;
    fm_prompt p = {.token = r->token, .n_token = r->n_prompt, .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.ignore_eos     = !r->is_open;
    p.sampling.min_new_tokens = r->is_open ? r->n_output : 0;
    p.sampling.max_new_tokens = r->n_output;
    if (fm_engine_submit(e, &p, &id) != FM_OK) fail_msg("%s", fm_why());
}

static void run_until_idle(fm_engine *e)
{
    while (fm_engine_busy(e)) {
        fm_event ev;
        if (fm_engine_step(e) != FM_OK) fail_msg("%s", fm_why());
        while (fm_engine_poll(e, &ev)) continue;
        const fm_sched_stats s = fm_engine_get_info(e).sched;
        if (s.n_step > engine_steps.last.n_step) record(&engine_steps, &s);
    }
}

static void run_engine(fm_engine *e)
{
    engine_steps = (recording){.last = fm_engine_get_info(e).sched};
    for (int i = 0; i < N_REQUEST; i++) submit(e, &request[i]);
    run_until_idle(e);
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
    const int     n_replica = o->enable_dp_attention ? 1 : (int)o->dp_size;
    const int     n_draft   = o->speculative_algorithm ? (int)o->speculative_num_steps : 0;
    const int64_t pages     = info.plan.max_tokens / info.plan.page_size;
    return (fm_sim){
        .sched     = {.max_running = fm_engine_max_running(e) / n_lane / n_group,
                      .chunk       = o->chunked_prefill_size > 0 ? (int)o->chunked_prefill_size : 0,
                      .max_prefill = (int)o->max_prefill_tokens,
                      .max_context = fm_engine_context(e),
                      .page_size   = info.plan.page_size,
                      .n_page      = (int)(pages / n_lane / n_group / n_replica),
                      .max_draft   = n_draft,
                      .simulated =
                      n_draft ? fm_acceptance_for(info.simulated_accept_length, n_draft) : 0,
                      .conservativeness = o->schedule_conservativeness},
        .share     = !o->disable_radix_cache,
        .n_replica = n_replica,
        .n_lane    = n_lane,
        .n_group   = n_group,
        .n_stage   = (int)o->pp_size,
        .n_draft   = n_draft,
        .step      = one_second,
        .stepped   = record_simulated};
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
    int         is_open; /* the scheduler does not know how long answers will be */
} setting;

static const setting settings[] = {
    {"as it comes", {{0}}, 0},
    {"chunks of 64", {{"chunked-prefill-size", "64"}}, 0},
    {"whole prompts", {{"chunked-prefill-size", "-1"}, {"max-prefill-tokens", "200"}}, 0},
    {"no cache, five sequences", {{"disable-radix-cache", "1"}, {"max-running-requests", "5"}}, 0},
    {"a small pool", {{"max-total-tokens", "320"}, {"schedule-conservativeness", "0"}}, 0},
    {"preempted", {{"max-total-tokens", "512"}, {"schedule-conservativeness", "0"}}, 1},
    {"preempted, chunks of 64, no cache",
     {{"max-total-tokens", "512"},
      {"schedule-conservativeness", "0"},
      {"chunked-prefill-size", "64"},
      {"disable-radix-cache", "1"}},
     1},
    {"drafts",
     {{"speculative-algorithm", "NEXTN"},
      {"speculative-num-steps", "2"},
      {"speculative-simulate-accept-length", "1.8"},
      {"disable-speculative-adaptive", "1"}},
     0},
};

/* Under mpirun, by name; several partitions. */
static const setting on_ranks[] = {
    {"pp2", {{"pp-size", "2"}, {"json-model-override-args", SHAPE("2")}}, 0},
    {"dp-attention2", {{"tp-size", "2"}, {"dp-size", "2"}, {"enable-dp-attention", "1"}}, 0},
    {"dp2", {{"dp-size", "2"}}, 0},
    {"dp2-preempted",
     {{"dp-size", "2"}, {"max-total-tokens", "400"}, {"schedule-conservativeness", "0"}},
     1},
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
    make_requests(s->is_open);
    run_engine(e);
    const fm_sim_result r = run_simulation(e, o);

    print_message("%s: %d steps, %d preemptions\n", s->name, engine_steps.n,
                  (int)engine_steps.last.n_preemption);
    assert_int_equal(sim_steps.n, engine_steps.n);
    for (int i = 0; i < sim_steps.n; i++)
        if (memcmp(&sim_steps.shape[i], &engine_steps.shape[i], sizeof(step_shape)))
            fail_msg("step %d: %d rows simulated, %d run", i, (int)sim_steps.shape[i].row,
                     (int)engine_steps.shape[i].row);
    assert_true(r.seconds == sim_steps.n && r.mean_ttft >= 1);
    assert_true(o->speculative_algorithm ? r.mean_tpot < 0.8 : r.mean_tpot >= 1);
    assert_int_equal(r.n_output, r.sched.n_output);
    assert_int_equal(r.sched.n_preemption > 0, s->is_open); /* otherwise admission is exact */
    fm_engine_close(e);
    fm_options_destroy(o);
}

/* One request at a time, far apart: the clock waits for each, and latencies are their own. */
static void arrivals_move_the_clock(void **state)
{
    (void)state;
    fm_sim_request few[3];
    fm_sim_result  r;
    make_requests(0);
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

/* Two replicas with one request each: the job ends with the slower one. */
static void a_slow_replica_ends_last(void **state)
{
    (void)state;
    static const double pace[2] = {1.5, 0.5};
    fm_sim_request      two[2];
    fm_sim_result       r;
    make_requests(0);
    for (int i = 0; i < 2; i++) {
        two[i]          = request[7 * i];
        two[i].n_prompt = 20;
        two[i].n_output = 10;
    }
    const fm_sim sim = {.sched     = {.max_running      = 8,
                                      .chunk            = 4096,
                                      .max_prefill      = 4096,
                                      .max_context      = MAX_CONTEXT,
                                      .page_size        = 16,
                                      .n_page           = 512,
                                      .conservativeness = 1},
                        .n_replica = 2,
                        .pace      = pace,
                        .step      = one_second};
    assert_int_equal(fm_simulate(&r, &sim, two, 2), FM_OK);
    assert_true(r.seconds == 15 && r.busy == 20 && r.mean_tpot == 1);
}

/* Two users, one sequence at a time, answers of ten steps: a request waits for the one before it,
 * and how many there are does not matter. */
static void users_ask_again(void **state)
{
    (void)state;
    fm_sim_request some[N_REQUEST];
    make_requests(0);
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

static void compare_totals(fm_engine *e, const fm_options *o, int is_open)
{
    const fm_sched_stats before = fm_engine_get_info(e).sched;
    make_requests(is_open);
    run_engine(e);
    const fm_sched_stats got = fm_engine_get_info(e).sched, sim = run_simulation(e, o).sched;
    print_message("%lld steps run, %lld simulated\n", (long long)(got.n_step - before.n_step),
                  (long long)sim.n_step);
    assert_int_equal(sim.n_step, got.n_step - before.n_step);
    assert_int_equal(sim.n_row, got.n_row - before.n_row);
    assert_int_equal(sim.n_prefill_row, got.n_prefill_row - before.n_prefill_row);
    assert_int_equal(sim.n_decode_row, got.n_decode_row - before.n_decode_row);
    assert_int_equal(sim.sum_running, got.sum_running - before.sum_running);
    assert_int_equal(sim.n_preemption, got.n_preemption - before.n_preemption);
    assert_int_equal(sim.n_preemption > 0, is_open);
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
        compare_totals(e, o, s->is_open);
    else if (fm_engine_follow(e) != FM_OK)
        fail_msg("%s", fm_why());
    fm_engine_close(e);
    fm_options_destroy(o);
}

/* --- tiers -------------------------------------------------------------------- */

/* Dear to compute, so that a load always pays. */
#define DEAR                                                                                       \
    "{\"num_hidden_layers\":1,\"hidden_size\":512,\"intermediate_size\":32768,"                    \
    "\"moe_intermediate_size\":64,\"n_routed_experts\":16,\"vocab_size\":4096}"

enum { N_GROUP = 4, N_TURN = 16, N_SHARED = 128, N_PROMPT = 150 };

/* Four prefixes in turn, in a pool that holds two. */
static void take_turns(fm_sim_request *list)
{
    for (int i = 0; i < N_TURN; i++) {
        for (int k = 0; k < N_PROMPT; k++)
            prompt[i][k] = (int32_t)(fm_rng_u32(k < N_SHARED ? 300 + (uint64_t)(i % N_GROUP)
                                                             : 400 + (uint64_t)i,
                                                (uint64_t)k) %
                                     4000);
        list[i] = (fm_sim_request){
            .token = prompt[i], .n_prompt = N_PROMPT, .n_output = 8, .arrival = 1000.0 * i};
    }
}

static fm_sim_tiers tiers_of(const fm_options *o)
{
    static fm_foreseen seen;
    const size_t       plenty = (size_t)1 << 36;
    const fm_place     place  = {
             .n_rank = 1, .n_thread = 1, .memory = {.total = plenty, .available = plenty}};
    if (fm_engine_foresee(&seen, o, &place) != FM_OK) fail_msg("%s", fm_why());
    const fm_foreseen_tiers t = seen.tiers;
    fm_foreseen_fini(&seen);
    assert_true(t.n_slot > 0 && t.n_buffer > 0 && t.n_host == 0);
    return (fm_sim_tiers){.n_slot     = t.n_slot,
                          .n_buffer   = t.n_buffer,
                          .most_in    = t.most_in,
                          .saving     = t.saving,
                          .page_bytes = (double)t.image_bytes,
                          .file_bytes = (double)t.file_bytes,
                          .in         = 1e9,
                          .out        = 1e9,
                          .read       = 1e9,
                          .write      = 1e9};
}

/* One request after the other, each after everything of the one before it is in files. */
static void run_in_turn(fm_engine *e, const fm_sim_request *list)
{
    engine_steps = (recording){.last = fm_engine_get_info(e).sched};
    for (int i = 0; i < N_TURN; i++) {
        submit(e, &list[i]);
        run_until_idle(e);
        for (int more = 1; more;)
            if (fm_engine_save(e, &more) != FM_OK) fail_msg("%s", fm_why());
    }
}

static void files_below_the_pool_agree(void **state)
{
    (void)state;
    static const setting small = {"tiers", {{"max-total-tokens", "320"}}, 0};
    char                 dir[] = "/tmp/fathom-simulate-XXXXXX", line[64];
    assert_non_null(mkdtemp(dir));
    fm_options *o = options_of(&small);
    fm_engine  *e = NULL;
    fm_options_set(o, "json-model-override-args", DEAR);
    fm_options_set(o, "hicache-storage-dir", dir);
    if (fm_engine_open(&e, o) != FM_OK) fail_msg("%s", fm_why());
    fm_sim_request list[N_TURN];
    take_turns(list);
    run_in_turn(e, list);
    const fm_tier_policy_stats got = fm_engine_get_info(e).tiers.policy;

    fm_sim             sim   = simulation_of(e, o);
    const fm_sim_tiers below = tiers_of(o);
    fm_sim_result      r     = {0};
    sim.sched.other_leases   = 1 + FM_TIER_POLICY_LOADS;
    sim.tiers                = &below;
    sim_steps                = (recording){0};
    if (fm_simulate(&r, &sim, list, N_TURN) != FM_OK) fail_msg("%s", fm_why());
    print_message("%lld loads, %lld tokens from files\n", (long long)got.n_load,
                  (long long)got.disk_tokens);
    assert_int_equal(r.tiers.n_load, got.n_load);
    assert_int_equal(r.tiers.disk_tokens, got.disk_tokens);
    assert_int_equal(got.disk_tokens, (N_TURN - N_GROUP) * N_SHARED);
    assert_int_equal(sim_steps.n, engine_steps.n);
    assert_memory_equal(sim_steps.shape, engine_steps.shape,
                        (size_t)engine_steps.n * sizeof *engine_steps.shape);
    fm_engine_close(e);
    fm_options_destroy(o);
    snprintf(line, sizeof line, "rm -rf %s", dir);
    assert_int_equal(system(line), 0);
}

/* A row takes a millisecond. */
static void by_rows(void *ctx, const fm_batch *const *b, fm_sim_times *out)
{
    (void)ctx;
    out->stage[0] = 1e-3 * b[0]->n_row;
}

static const fm_sched_options small_pool = {.max_running      = 4,
                                            .chunk            = 4096,
                                            .max_prefill      = 4096,
                                            .max_context      = MAX_CONTEXT,
                                            .page_size        = 16,
                                            .n_page           = 20,
                                            .other_leases     = 1 + FM_TIER_POLICY_LOADS,
                                            .conservativeness = 1};

static fm_sim_result simulate_turns(const fm_sim_tiers *t)
{
    fm_sim_request list[N_TURN];
    fm_sim_result  r   = {0};
    const fm_sim   sim = {.sched = small_pool, .share = 1, .tiers = t, .step = by_rows};
    take_turns(list);
    for (int i = 0; i < N_TURN; i++) list[i].arrival = 10.0 * i;
    if (fm_simulate(&r, &sim, list, N_TURN) != FM_OK) fail_msg("%s", fm_why());
    return r;
}

/* A page takes 16 ms to compute.  Read in 1 ms it is loaded, and the first token comes sooner by
 * what was not computed less the reading; read in 200 ms it is computed once that is known. */
static void loads_only_when_it_pays(void **state)
{
    (void)state;
    fm_sim_tiers        t       = {.n_slot     = 64,
                                   .n_buffer   = 64,
                                   .most_in    = 64,
                                   .page_bytes = 1,
                                   .file_bytes = 1,
                                   .in         = 1e12,
                                   .out        = 1e12,
                                   .read       = 1e3,
                                   .write      = 1e3};
    const fm_sim_result without = simulate_turns(NULL), with = simulate_turns(&t);
    assert_int_equal(without.tiers.n_load, 0);
    assert_int_equal(with.tiers.disk_tokens, (N_TURN - N_GROUP) * N_SHARED);
    const double saved = 1e-3 * N_SHARED - 1e-3 * N_SHARED / 16;
    assert_true(fabs(without.mean_ttft - with.mean_ttft - saved * (N_TURN - N_GROUP) / N_TURN) <
                1e-4);
    t.read                   = 5;
    const fm_sim_result slow = simulate_turns(&t);
    assert_int_equal(slow.tiers.n_load, 1); /* and none after its time was known */
    assert_int_equal(slow.tiers.n_declined, N_TURN - N_GROUP - 1);
}

/* Copies from host memory cost what their link takes; over a link that is slower than computing
 * nothing is loaded. */
static void host_memory_comes_over_the_link(void **state)
{
    (void)state;
    fm_sim_tiers        t    = {.n_host     = 1024,
                                .most_in    = 64,
                                .most_out   = 64,
                                .is_async   = 1,
                                .page_bytes = 1,
                                .in         = 1e3,
                                .out        = 1e3};
    const fm_sim_result fast = simulate_turns(&t);
    assert_int_equal(fast.tiers.host_tokens, (N_TURN - N_GROUP) * N_SHARED);
    t.in                     = 500;
    const fm_sim_result half = simulate_turns(&t);
    const double        more = 1e-3 * N_SHARED / 16 * (N_TURN - N_GROUP) / N_TURN;
    assert_true(fabs(half.mean_ttft - fast.mean_ttft - more) < 1e-6);
    t.in                     = 50;
    const fm_sim_result slow = simulate_turns(&t);
    assert_int_equal(slow.tiers.host_tokens, 0);
    assert_int_equal(slow.tiers.n_declined, N_TURN - N_GROUP);
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
    struct CMUnitTest tests[N + 6];
    for (size_t i = 0; i < N; i++)
        tests[i] =
            (struct CMUnitTest){settings[i].name, steps_agree, NULL, NULL, (void *)&settings[i]};
    tests[N]     = (struct CMUnitTest)cmocka_unit_test(arrivals_move_the_clock);
    tests[N + 1] = (struct CMUnitTest)cmocka_unit_test(users_ask_again);
    tests[N + 2] = (struct CMUnitTest)cmocka_unit_test(files_below_the_pool_agree);
    tests[N + 3] = (struct CMUnitTest)cmocka_unit_test(loads_only_when_it_pays);
    tests[N + 4] = (struct CMUnitTest)cmocka_unit_test(host_memory_comes_over_the_link);
    tests[N + 5] = (struct CMUnitTest)cmocka_unit_test(a_slow_replica_ends_last);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
