/* SPDX-License-Identifier: Apache-2.0 */
/* The promise: greedy tokens and their log-probabilities are the same bits
 * with and without batching, chunking, shared prefixes, any page size,
 * preemption, drafts, pages that leave the pool for files after every step, and
 * any number of threads.
 *
 * Every text is first generated alone, unshared and unchunked; then all of
 * them together under each setting, compared with memcmp. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../scratch.h"
#include "level.h"
#include "texts.h"

static const model models[] = {
    {"v3", FM_TEST_DATA "/v3", "{}", 0},
    {"v2lite", FM_TEST_DATA "/v2lite", "{}", 0},
    {"v3wide-fp8", FM_TEST_DATA "/v3wide-fp8", "{}", 0},
    {"v3-int4", FM_TEST_DATA "/v3-int4", "{}", 0},
    {"dummy", "r1-mini",
     "{\"num_hidden_layers\":3,\"hidden_size\":256,\"intermediate_size\":512,\"vocab_size\":1000,"
     "\"n_routed_experts\":32,\"moe_intermediate_size\":64}", 1},
    {"fathom-tiny", FM_TEST_TINY, "{}", 1},
};

static char dir[SCRATCH]; /* of stored pages */

static const struct {
    const char *name;
    const char *set[15];
    int         wants; /* 'p': must preempt, 'c': must reuse, 'd': must verify drafts, 'm': must if
                        * the model has an MTP layer */
} settings[] = {
    {"batched", {"disable-radix-cache", "1", NULL}, 0},
    {"shared prefixes", {"page-size", "1", NULL}, 'c'},
    {"chunks of 1", {"chunked-prefill-size", "1", NULL}, 0},
    {"chunks of 7, pages of 3", {"chunked-prefill-size", "7", "page-size", "3", NULL}, 'c'},
    {"chunks of 64, pages of 64", {"chunked-prefill-size", "64", "page-size", "64", NULL}, 0},
    {"no chunks, lpm", {"chunked-prefill-size", "-1", "schedule-policy", "lpm", NULL}, 'c'},
    {"short of memory", {"max-total-tokens", "384", "page-size", "4", "schedule-conservativeness", "0", NULL}, 'p'},
    {"short of memory, unshared", {"max-total-tokens", "384", "disable-radix-cache", "1",
      "schedule-conservativeness", "0", "chunked-prefill-size", "50", NULL}, 'p'},
    {"one thread", {"threads", "1", NULL}, 0},
    {"three threads", {"threads", "3", "chunked-prefill-size", "33", NULL}, 0},
    {"deterministic", {"deterministic", "1", "page-size", "1", NULL}, 'c'},
    {"drafts", {"speculative-algorithm", "NGRAM", "disable-speculative-adaptive", "1",
      "speculative-ngram-min-match-window-size", "1", NULL}, 'd'},
    {"drafts, short of memory", {"speculative-algorithm", "NGRAM", "max-total-tokens", "384",
      "page-size", "4", "schedule-conservativeness", "0", "speculative-num-steps", "7",
      "disable-speculative-adaptive", "1", NULL}, 'p'},
    {"as many drafts as pay", {"speculative-algorithm", "NGRAM", "page-size", "1", NULL}, 0},
    {"MTP drafts", {"speculative-algorithm", "NEXTN", "disable-speculative-adaptive", "1", NULL}, 'm'},
    {"MTP drafts, chunks of 7, pages of 3", {"speculative-algorithm", "NEXTN",
      "disable-speculative-adaptive", "1", "chunked-prefill-size", "7", "page-size", "3", NULL}, 'c'},
    {"MTP drafts, short of memory", {"speculative-algorithm", "NEXTN", "max-total-tokens", "640",
      "page-size", "4", "schedule-conservativeness", "0", "speculative-num-steps", "7",
      "disable-speculative-adaptive", "1", NULL}, 'p'},
    {"drafts of both kinds", {"speculative-algorithm", "NEXTN,NGRAM", "disable-speculative-adaptive",
      "1", "page-size", "1", "speculative-ngram-min-match-window-size", "1", NULL}, 'd'},
    {"drafts, demoted", {"speculative-algorithm", "NGRAM", "disable-speculative-adaptive", "1",
      "speculative-ngram-min-match-window-size", "1", "page-size", "4", "hicache-storage-backend", "file",
      "hicache-storage-dir", dir, "hicache-debug-demote", "1", NULL}, 'd'},
    {"MTP drafts, demoted", {"speculative-algorithm", "NEXTN", "disable-speculative-adaptive", "1",
      "page-size", "3", "hicache-storage-backend", "file", "hicache-storage-dir", dir,
      "hicache-debug-demote", "1", NULL}, 'm'},
    {"both, demoted, short of memory", {"speculative-algorithm", "NEXTN,NGRAM", "max-total-tokens", "384",
      "page-size", "4", "schedule-conservativeness", "0", "hicache-storage-backend", "file",
      "hicache-storage-dir", dir, "hicache-debug-demote", "1", NULL}, 'c'},
    {"as many links as pay", {"speculative-algorithm", "auto", "page-size", "1", NULL}, 0},
};

static int n_accepted; /* drafts, over all models: what a random one says next is not always seen before */

static void check_model(void **state)
{
    const model *m = *state;
    answers      want, got;
    fm_engine   *e = open_engine(m, alone);
    make_prompts(fm_engine_config(e)->vocab);
    generate(e, &want, ONE_BY_ONE);
    fm_engine_close(e);
    for (int i = 0; i < N_TEXT; i++) assert_int_equal(want.n[i], MAX_NEW);

    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        e = open_engine(m, settings[k].set);
        for (int round = 0; round < (settings[k].wants ? 2 : 1); round++) { /* then over a warm cache */
            generate(e, &got, settings[k].wants == 'p' ? AT_ONCE : STAGGERED);
            check_same(&want, &got, m->name, settings[k].name);
        }
        if (settings[k].wants == 'p' && !got.preemptions)
            fail_msg("%s, %s: nothing was preempted", m->name, settings[k].name);
        if (settings[k].wants == 'c' && !got.cached)
            fail_msg("%s, %s: nothing was reused", m->name, settings[k].name);
        if ((settings[k].wants == 'd' || (settings[k].wants == 'm' && m->has_mtp)) && !got.drafts)
            fail_msg("%s, %s: nothing was drafted", m->name, settings[k].name);
        n_accepted += got.accepted;
        fm_engine_close(e);
    }
}

static void some_drafts_were_accepted(void **state)
{
    (void)state;
    assert_true(n_accepted > 0);
}

static int clear_dir(void **state)
{
    char line[SCRATCH + 8];
    (void)state;
    snprintf(line, sizeof line, "rm -rf %s", dir);
    return system(line);
}

static int is_wanted(const char *name, int n_arg, char **arg)
{
    for (int i = 1; i < n_arg; i++)
        if (!strcmp(arg[i], name)) return 1;
    return n_arg < 2;
}

/* Arguments name the models; without any, all are tested. */
int main(int n_arg, char **arg)
{
    enum { N_MODEL = sizeof models / sizeof *models };
    struct CMUnitTest tests[N_MODEL + 1];
    int               n = 0;
    if (runs_in_vain("golden/identity")) return SKIPPED;
    if (!make_scratch(dir, "identity")) return 1;
    for (int i = 0; i < N_MODEL; i++)
        if (is_wanted(models[i].name, n_arg, arg))
            tests[n++] = (struct CMUnitTest){.name          = models[i].name,
                                             .test_func     = check_model,
                                             .initial_state = (void *)&models[i]};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(some_drafts_were_accepted);
    return _cmocka_run_group_tests("identity", tests, (size_t)n, NULL, clear_dir);
}
