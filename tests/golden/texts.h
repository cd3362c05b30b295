/* SPDX-License-Identifier: Apache-2.0 */
/* The same texts, generated greedily by engines with different settings: their tokens and
 * log-probabilities must be the same bits. */
#ifndef FM_TESTS_GOLDEN_TEXTS_H
#define FM_TESTS_GOLDEN_TEXTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/engine.h"

enum { N_TEXT = 14, MAX_NEW = 20, MAX_PROMPT = 300 };

typedef struct {
    int32_t token[N_TEXT][MAX_NEW];
    float   logprob[N_TEXT][MAX_NEW];
    int     n[N_TEXT];
    int     preemptions, drafts, accepted, cached, stored; /* stored: of the cached ones, from files */
} answers;

typedef struct {
    const char *name, *path, *overrides;
    int         has_mtp;
} model;

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
        if (ev.finish == FM_FINISH_NONE) continue;
        a->cached += ev.n_cached;
        a->stored += ev.n_cached_storage;
    }
}

/* How prompts arrive: each when the one before has ended; a step after another, so that later ones
 * come while the first run; or all before the first step, which presses hardest on memory. */
enum arrival { ONE_BY_ONE, STAGGERED, AT_ONCE };

static int more_steps(const fm_engine *e, enum arrival how, int n_step)
{
    return fm_engine_busy(e) && (how == ONE_BY_ONE || (how == STAGGERED && n_step < 1));
}

static void generate(fm_engine *e, answers *a, enum arrival how)
{
    uint64_t id[N_TEXT];
    memset(a, 0, sizeof *a);
    memset(id, 0xff, sizeof id);
    for (int i = 0; i < N_TEXT; i++) {
        submit(e, i, &id[i]);
        for (int k = 0; more_steps(e, how, k); k++) {
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

#endif
