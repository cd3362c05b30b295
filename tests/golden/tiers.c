/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below the pool change no bit: greedy tokens and their log-probabilities are the
 * same with and without them, while everything leaves the pool after every step, over a restart,
 * short of memory, and while file operations fail. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../scratch.h"
#include "texts.h"

static const model models[] = {
    {"v3", FM_TEST_DATA "/v3", "{}", 0},
    {"v2lite", FM_TEST_DATA "/v2lite", "{}", 0},
    {"dummy", "r1-mini",
     "{\"num_hidden_layers\":3,\"hidden_size\":256,\"intermediate_size\":512,\"vocab_size\":1000,"
     "\"n_routed_experts\":32,\"moe_intermediate_size\":64}", 1},
};

static const struct {
    const char *name;
    const char *set[11];
    int         loads; /* files must be read, too */
} settings[] = {
    {"demoted", {"hicache-debug-demote", "1", "page-size", "4", NULL}, 1},
    {"demoted, pages of 1", {"hicache-debug-demote", "1", "page-size", "1", NULL}, 1},
    {"demoted, chunks of 7, pages of 3", {"hicache-debug-demote", "1", "page-size", "3",
      "chunked-prefill-size", "7", NULL}, 1},
    {"demoted, pages of 64", {"hicache-debug-demote", "1", "page-size", "64", NULL}, 1},
    {"demoted, deterministic", {"hicache-debug-demote", "1", "page-size", "4", "deterministic", "1", NULL}, 1},
    {"demoted, lpm, selective", {"hicache-debug-demote", "1", "page-size", "4", "schedule-policy", "lpm",
      "hicache-write-policy", "write_through_selective", NULL}, 0},
    {"write back, short of memory", {"hicache-write-policy", "write_back", "max-total-tokens", "384",
      "page-size", "4", "schedule-conservativeness", "0", NULL}, 0},
    {"demoted, short of memory", {"hicache-debug-demote", "1", "max-total-tokens", "384", "page-size", "4",
      "schedule-conservativeness", "0", NULL}, 1},
    {"drafts", {"hicache-debug-demote", "1", "speculative-algorithm", "NGRAM", "page-size", "4",
      "disable-speculative-adaptive", "1", NULL}, 1},
    {"faults", {"hicache-debug-demote", "1", "page-size", "4", "hicache-debug-faults", "0.1", NULL}, 1},
    {"faults, short of memory", {"hicache-debug-demote", "1", "page-size", "1", "hicache-debug-faults", "0.05",
      "max-total-tokens", "384", "schedule-conservativeness", "0", NULL}, 1},
};

static char dir[SCRATCH];

static void clear_dir(void)
{
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", dir);
    assert_int_equal(system(line), 0);
}

static fm_engine *open_over_files(const model *m, const char *const *set)
{
    const char *all[20] = {"hicache-storage-backend", "file", "hicache-storage-dir", dir};
    for (int i = 0; set[i]; i++) all[4 + i] = set[i];
    return open_engine(m, all);
}

/* Once nothing runs, every page is free or idle. */
static void check_pages(const fm_engine *e)
{
    const fm_engine_info i = fm_engine_get_info(e);
    assert_int_equal(i.n_free_page + i.n_idle_page, i.plan.n_page);
    assert_int_equal(i.tiers.policy.n_loading, 0);
}

static struct {
    int64_t n_call, n_fault;
} faults; /* of all engines */

static void count_faults(const fm_engine *e)
{
    const fm_store_stats s = fm_engine_get_info(e).tiers.store;
    faults.n_call += s.n_call;
    faults.n_fault += s.n_fault;
}

static void check_model(void **state)
{
    const model *m = *state;
    answers      want, got;
    fm_engine   *e = open_engine(m, alone);
    make_prompts(fm_engine_config(e)->vocab);
    generate(e, &want, ONE_BY_ONE);
    fm_engine_close(e);

    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        int stored = 0;
        for (int restart = 0; restart < 2; restart++) {
            e = open_over_files(m, settings[k].set);
            for (int round = 0; round < 2; round++) {
                generate(e, &got, STAGGERED);
                check_same(&want, &got, m->name, settings[k].name);
                check_pages(e);
                stored += got.stored;
            }
            count_faults(e);
            fm_engine_close(e);
        }
        if (settings[k].loads && !stored) fail_msg("%s, %s: no file was read", m->name, settings[k].name);
        clear_dir();
    }
}

/* The next process answers from what the last one left: every whole page of every prompt. */
static void a_restart_finds_the_prompts(void **state)
{
    const model      *m     = &models[2];
    const char *const set[] = {"page-size", "4", "hicache-debug-demote", "1", NULL};
    answers           first, second;
    int               whole = 0;
    (void)state;
    for (int restart = 0; restart < 2; restart++) {
        fm_engine *e = open_over_files(m, set);
        if (!restart) make_prompts(fm_engine_config(e)->vocab);
        generate(e, restart ? &second : &first, ONE_BY_ONE);
        fm_engine_close(e);
    }
    check_same(&first, &second, m->name, "restart");
    for (int i = 0; i < N_TEXT; i++) whole += (length[i] - 1) / 4 * 4;
    assert_int_equal(second.cached, whole);
    assert_int_equal(second.stored, whole);
    assert_true(first.stored < whole / 2);
    clear_dir();
}

/* After the models: what they were put through. */
static void many_calls_failed(void **state)
{
    (void)state;
    print_message("%lld calls, %lld of them made to fail\n", (long long)faults.n_call, (long long)faults.n_fault);
    assert_true(faults.n_call > 10000 && faults.n_fault > 500);
}

int main(void)
{
    if (!make_scratch(dir, "tiers")) return 1;
    const struct CMUnitTest tests[] = {
        {models[0].name, check_model, NULL, NULL, (void *)&models[0]},
        {models[1].name, check_model, NULL, NULL, (void *)&models[1]},
        {models[2].name, check_model, NULL, NULL, (void *)&models[2]},
        cmocka_unit_test(many_calls_failed),
        cmocka_unit_test(a_restart_finds_the_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
