/* SPDX-License-Identifier: Apache-2.0 */
/* The promise: greedy tokens and their log-probabilities are the same bits
 * with and without batching, chunking, shared prefixes, any page size,
 * preemption, and any number of threads.
 *
 * Every text is first generated alone, unshared and unchunked; then all of
 * them together under each setting, compared with memcmp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/rng.h"
#include "llm/engine.h"

enum { N_TEXT = 14, MAX_NEW = 20, MAX_PROMPT = 300 };

typedef struct {
    int32_t token[N_TEXT][MAX_NEW];
    float   logprob[N_TEXT][MAX_NEW];
    int     n[N_TEXT];
    int     preemptions, drafts, accepted, cached;
} answers;

typedef struct {
    const char *name, *path, *overrides;
} model;

static const model models[] = {
    {"v3", FM_TEST_DATA "/v3", "{}"},
    {"v2lite", FM_TEST_DATA "/v2lite", "{}"},
    {"v3wide-fp8", FM_TEST_DATA "/v3wide-fp8", "{}"},
    {"v3-int4", FM_TEST_DATA "/v3-int4", "{}"},
    {"dummy", "r1-mini",
     "{\"num_hidden_layers\":3,\"hidden_size\":256,\"intermediate_size\":512,\"vocab_size\":1000,"
     "\"n_routed_experts\":32,\"moe_intermediate_size\":64}"},
};

/* Lengths that hurt: one token, a block and one more, several parts. */
static const int length[N_TEXT] = {1, 2, 15, 16, 17, 31, 33, 64, 65, 127, 129, 200, 257, 280};

static int32_t prompt[N_TEXT][MAX_PROMPT];

/* Texts 9.. begin alike, so that prefixes can be shared. */
static void make_prompts(int vocab)
{
    for (int i = 0; i < N_TEXT; i++)
        for (int t = 0; t < length[i]; t++) {
            const uint64_t stream = i >= 9 && t < 100 ? 99 : (uint64_t)i;
            prompt[i][t]          = (int32_t)(fm_rng_u32(stream, (uint64_t)t) % (uint32_t)vocab);
        }
}

static fm_engine *open_engine(const model *m, const char *const *set)
{
    fm_options *o = NULL;
    fm_engine  *e = NULL;
    assert_int_equal(fm_options_create(&o), FM_OK);
    assert_int_equal(fm_options_set(o, "model-path", m->path), FM_OK);
    assert_int_equal(fm_options_set(o, "json-model-override-args", m->overrides), FM_OK);
    assert_int_equal(fm_options_set(o, "max-total-tokens", "8192"), FM_OK);
    assert_int_equal(fm_options_set(o, "context-length", "512"), FM_OK);
    assert_int_equal(fm_options_set(o, "max-running-requests", "16"), FM_OK);
    for (; *set; set += 2)
        if (fm_options_set(o, set[0], set[1]) != FM_OK) fail_msg("%s", fm_why());
    if (fm_engine_open(&e, o) != FM_OK) fail_msg("%s: %s", m->name, fm_why());
    fm_options_destroy(o);
    return e;
}

static void submit(fm_engine *e, int i, uint64_t *id)
{
    fm_prompt p               = {.token = prompt[i], .n_token = length[i], .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.max_new_tokens = MAX_NEW;
    p.sampling.min_new_tokens = MAX_NEW; /* ends there, without telling the scheduler so */
    p.sampling.logprobs       = 1;
    if (fm_engine_submit(e, &p, id) != FM_OK) fail_msg("%s", fm_why());
}

static void collect(fm_engine *e, answers *a, const uint64_t *id)
{
    fm_event ev;
    while (fm_engine_poll(e, &ev)) {
        int i = 0;
        while (id[i] != ev.id) i++;
        if (ev.token < 0) continue;
        assert_true(a->n[i] < MAX_NEW);
        a->token[i][a->n[i]]     = ev.token;
        a->logprob[i][a->n[i]++] = ev.logprob;
        a->cached += ev.finish != FM_FINISH_NONE ? ev.n_cached : 0;
    }
}

/* `together`: all at once, the later ones arriving while the first run;
 * otherwise one after the other. */
static void generate(fm_engine *e, answers *a, int together)
{
    uint64_t id[N_TEXT];
    memset(a, 0, sizeof *a);
    memset(id, 0xff, sizeof id);
    for (int i = 0; i < N_TEXT; i++) {
        submit(e, i, &id[i]);
        for (int k = 0; fm_engine_busy(e) && (!together || k < 1); k++) {
            assert_int_equal(fm_engine_step(e), FM_OK);
            collect(e, a, id);
        }
    }
    while (fm_engine_busy(e)) {
        assert_int_equal(fm_engine_step(e), FM_OK);
        collect(e, a, id);
    }
    a->preemptions = (int)fm_engine_get_info(e).sched.n_preemption;
    a->drafts      = (int)fm_engine_get_info(e).sched.n_draft;
    a->accepted    = (int)fm_engine_get_info(e).sched.n_accepted;
}

static const char *const alone[] = {"disable-radix-cache", "1", "chunked-prefill-size", "-1",
                                    "threads", "1", NULL};

static const struct {
    const char *name;
    const char *set[11];
    int         wants; /* 'p': must preempt, 'c': must reuse, 'd': must verify drafts */
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
      "page-size", "4", "schedule-conservativeness", "0", "speculative-num-steps", "7", NULL}, 'p'},
    {"as many drafts as pay", {"speculative-algorithm", "NGRAM", "page-size", "1", NULL}, 0},
};

static void check_same(const answers *want, const answers *got, const char *m, const char *setting)
{
    for (int i = 0; i < N_TEXT; i++) {
        if (got->n[i] != want->n[i]) fail_msg("%s, %s: text %d has %d tokens", m, setting, i, got->n[i]);
        for (int t = 0; t < want->n[i]; t++)
            if (got->token[i][t] != want->token[i][t] ||
                memcmp(&got->logprob[i][t], &want->logprob[i][t], sizeof(float)))
                fail_msg("%s, %s: text %d (prompt %d) token %d is %d (%.9g), alone it was %d (%.9g)", m,
                         setting, i, length[i], t, got->token[i][t], (double)got->logprob[i][t],
                         want->token[i][t], (double)want->logprob[i][t]);
    }
}

static int n_accepted; /* drafts, over all models: what a random one says next is not always seen before */

static void check_model(void **state)
{
    const model *m = *state;
    answers      want, got;
    fm_engine   *e = open_engine(m, alone);
    make_prompts(fm_engine_config(e)->vocab);
    generate(e, &want, 0);
    fm_engine_close(e);
    for (int i = 0; i < N_TEXT; i++) assert_int_equal(want.n[i], MAX_NEW);

    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        e = open_engine(m, settings[k].set);
        for (int round = 0; round < (settings[k].wants ? 2 : 1); round++) { /* then over a warm cache */
            generate(e, &got, 1);
            check_same(&want, &got, m->name, settings[k].name);
        }
        if (settings[k].wants == 'p') assert_true(got.preemptions > 0);
        if (settings[k].wants == 'c') assert_true(got.cached > 0);
        if (settings[k].wants == 'd') assert_true(got.drafts > 0);
        n_accepted += got.accepted;
        fm_engine_close(e);
    }
}

static void some_drafts_were_accepted(void **state)
{
    (void)state;
    assert_true(n_accepted > 0);
}

/* Why a run at a level that was asked for would show nothing; NULL: it would. */
static const char *in_vain(void)
{
    const char  *asked = getenv("FM_ISA");
    const fm_isa isa   = fm_cpu_isa();
    if (!asked) return NULL;
    if (strcmp(asked, fm_isa_name(isa)) != 0) return "this machine does not have it";
    if (isa == FM_ISA_AMX || !fm_cpu_detects(isa + 1)) return "it is this machine's own, tested without asking";
    return NULL;
}

int main(void)
{
    enum { SKIPPED = 77 };
    const char *why = in_vain();
    if (why) {
        printf("no run at %s: %s\n", getenv("FM_ISA"), why);
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        {models[0].name, check_model, NULL, NULL, (void *)&models[0]},
        {models[1].name, check_model, NULL, NULL, (void *)&models[1]},
        {models[2].name, check_model, NULL, NULL, (void *)&models[2]},
        {models[3].name, check_model, NULL, NULL, (void *)&models[3]},
        {models[4].name, check_model, NULL, NULL, (void *)&models[4]},
        cmocka_unit_test(some_drafts_were_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
