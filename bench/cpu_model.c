/* SPDX-License-Identifier: Apache-2.0 */
/* The whole model through the engine, as its users run it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "bench/cpu_measure.h"
#include "bench/median.h"
#include "llm/engine.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"

enum { MAX_CONTEXT = 16384, MAX_STEPS = 4096, CROWD = 64, CROWD_IN = 128, CROWD_OUT = 32 };

typedef struct {
    const fm_measuring    *m;
    const fm_weights_kind *kind;
    fm_engine             *e;
    const int32_t         *token;           /* [CROWD * MAX_CONTEXT] random */
    double                 step[MAX_STEPS]; /* seconds of steps in which all sequences decoded */
    int                    n_step;
    double                 first, total; /* seconds until all prompts were read, until the end */
} trial;

static fm_status submit(trial *t, int n_seq, int n_in, int n_out)
{
    fm_prompt p               = {.n_token = n_in, .sampling = fm_sampling_default()};
    p.sampling.temperature    = 0;
    p.sampling.ignore_eos     = 1;
    p.sampling.max_new_tokens = n_out;
    for (int i = 0; i < n_seq; i++) {
        uint64_t id;
        p.token = t->token + (size_t)i * MAX_CONTEXT;
        FM_TRY(fm_engine_submit(t->e, &p, &id));
    }
    return FM_OK;
}

static int drain(fm_engine *e)
{
    fm_event ev;
    int      n = 0;
    while (fm_engine_poll(e, &ev)) n += ev.token >= 0;
    return n;
}

/* n_seq prompts of n_in tokens, n_out answers each. */
static fm_status run(trial *t, int n_seq, int n_in, int n_out)
{
    const double began = fm_now();
    t->n_step          = 0;
    t->first           = 0;
    FM_TRY(submit(t, n_seq, n_in, n_out));
    while (fm_engine_busy(t->e)) {
        const int64_t read = fm_engine_get_info(t->e).sched.n_prefill_row;
        const double  from = fm_now();
        FM_TRY(fm_engine_step(t->e));
        const int    n    = drain(t->e);
        const double took = fm_now() - from;
        if (fm_engine_get_info(t->e).sched.n_prefill_row != read)
            t->first = fm_now() - began;
        else if (n == n_seq && t->n_step < MAX_STEPS)
            t->step[t->n_step++] = took;
    }
    t->total = fm_now() - began;
    return FM_OK;
}

static double median_step(trial *t) { return t->n_step ? fm_median(t->step, t->n_step) : 0; }

static void report(const trial *t, const char *group, const char *name, double seconds,
                   const fm_shape *shape)
{
    fm_report     *r     = t->m->report;
    const fm_bound bound = fm_bound_step(fm_engine_config(t->e), shape, &t->m->roof);
    fm_result      x     = {.group = group, .seconds = seconds, .bound = bound.seconds,
                            .work = shape->n_seq * shape->n_row, .unit = "tok/s"};
    snprintf(x.name, sizeof x.name, "%s", name);
    if (seconds > 0) fm_report_add(r, &x);
}

/* The engines of several types run one after the other in each round, so that other load on the
 * machine affects all of them alike; the best of a few rounds counts. */
typedef struct {
    trial *of[FM_N_WEIGHTS];
    int    n;
} contest;

static void compare(const contest *all, const char *what, const double *seconds)
{
    for (int i = 1; i < all->n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s, %s against %s", what, all->of[i]->kind->name,
                 all->of[0]->kind->name);
        fm_report_fact(all->of[0]->m->report, name, seconds[0] / seconds[i], "x");
    }
}

static fm_status measure_prefill(const contest *all)
{
    const fm_shape shape              = {.n_seq = 1, .n_row = 2048, .n_out = 1};
    double         best[FM_N_WEIGHTS] = {0};
    for (int round = 0; round < (all->of[0]->m->quick ? 2 : 4); round++) /* the first warms up */
        for (int i = 0; i < all->n; i++) {
            trial *t = all->of[i];
            fm_engine_flush_cache(t->e);
            FM_TRY(run(t, 1, shape.n_row, 1));
            if (round == 1 || (round > 1 && t->first < best[i])) best[i] = t->first;
        }
    for (int i = 0; i < all->n; i++)
        report(all->of[i], all->of[i]->kind->prefill, "2048 tokens", best[i], &shape);
    trial       *t = all->of[0];
    const double flops =
        fm_bound_step(fm_engine_config(t->e), &shape, &t->m->roof).cost.flops;
    fm_report_fact(t->m->report, "prefill 2048, share of bf16 peak",
                   100 * flops / best[0] / t->m->report->limits.peak, "%");
    compare(all, "prefill 2048", best);
    return FM_OK;
}

static fm_status measure_decode(const contest *all)
{
    enum { N_BATCH = 4 };
    static const int batch[N_BATCH] = {1, 8, 32, 64};
    double           best[N_BATCH][FM_N_WEIGHTS];
    const int        quick = all->of[0]->m->quick;
    for (int b = 0; b < N_BATCH; b++)
        for (int round = 0; round < (quick ? 2 : 4); round++)
            for (int i = 0; i < all->n; i++) {
                trial *t = all->of[i];
                fm_engine_flush_cache(t->e);
                FM_TRY(run(t, batch[b], 112, quick ? 12 : 33));
                const double step = median_step(t);
                if (round == 0 || step < best[b][i]) best[b][i] = step;
            }
    for (int i = 0; i < all->n; i++)
        for (int b = 0; b < N_BATCH; b++) {
            const fm_shape shape = {
                .n_seq = batch[b], .n_row = 1, .pos0 = 128, .generated = 1, .n_out = batch[b]};
            char name[32];
            snprintf(name, sizeof name, "batch %d", batch[b]);
            report(all->of[i], all->of[i]->kind->decode, name, best[b][i], &shape);
        }
    for (int b = 0; b < N_BATCH; b++) {
        char name[32];
        snprintf(name, sizeof name, "decode %d", batch[b]);
        compare(all, name, best[b]);
    }
    return FM_OK;
}

/* The texts share their beginning, so each only computes what is new. */
static fm_status measure_context(trial *t)
{
    const int n_new = t->m->quick ? 6 : 24, most = t->m->quick ? 4096 : MAX_CONTEXT;
    double    first = 0, last = 0;
    if (!fm_wanted(t->m, "context")) return FM_OK;
    fm_engine_flush_cache(t->e);
    for (int context = 1024; context <= most; context *= 2) {
        const int      n     = context + n_new < MAX_CONTEXT ? context : MAX_CONTEXT - n_new - 1;
        const fm_shape shape = {
            .n_seq = 1, .n_row = 1, .pos0 = n + n_new / 2, .generated = 1, .n_out = 1};
        char name[32];
        FM_TRY(run(t, 1, n, n_new));
        last  = median_step(t);
        first = first > 0 ? first : last;
        snprintf(name, sizeof name, "%d", context);
        report(t, "decode by context", name, last, &shape);
    }
    fm_report_fact(t->m->report, "a token at the longest context, in tokens at 1k", last / first,
                   "");
    return FM_OK;
}

/* A crowd at once, against what the same batch does taken apart. */
static fm_status measure_offline(trial *t)
{
    if (!fm_wanted(t->m, "offline")) return FM_OK;
    fm_engine_flush_cache(t->e);
    FM_TRY(run(t, CROWD, CROWD_IN, 1));
    const double prefill = t->first;
    fm_engine_flush_cache(t->e);
    FM_TRY(run(t, CROWD, CROWD_IN, CROWD_OUT)); /* decode steps of the whole crowd */
    const double step = median_step(t);

    fm_engine_flush_cache(t->e);
    const fm_engine_info before = fm_engine_get_info(t->e);
    FM_TRY(run(t, CROWD, CROWD_IN, CROWD_OUT));
    const double computing = fm_engine_get_info(t->e).forward_seconds - before.forward_seconds;
    const double promised  = prefill + (CROWD_OUT - 1) * step;
    fm_report   *r         = t->m->report;
    fm_report_fact(r, "offline 64 x 128 in / 32 out", CROWD * (CROWD_IN + CROWD_OUT) / t->total,
                   "tok/s");
    fm_report_fact(r, "offline, share of what one batch promises", 100 * promised / t->total, "%");
    fm_report_fact(r, "scheduler's share of a step", 100 * (1 - computing / t->total), "%");
    return FM_OK;
}

static fm_status open_engine(const fm_measuring *m, const fm_weights_kind *kind, fm_engine **e)
{
    fm_options *o = NULL;
    char        threads[16];
    snprintf(threads, sizeof threads, "%d", m->report->limits.n_thread);
    FM_TRY(fm_options_create(&o));
    const char *const set[][2] = {
        {"model-path", m->model},
        {"threads", threads},
        {"max-total-tokens", "65536"},
        {"max-running-requests", "64"},
        {"context-length", "16384"},
        {"cpu-bind", "auto"},
        {"json-model-override-args", kind->overrides ? kind->overrides : ""},
        {"quiet", "1"}};
    fm_status rc = FM_OK;
    for (size_t i = 0; rc == FM_OK && i < sizeof set / sizeof set[0]; i++)
        rc = fm_options_set(o, set[i][0], set[i][1]);
    if (rc == FM_OK) rc = fm_engine_open(e, o);
    fm_options_destroy(o);
    return rc;
}

static fm_status run_trials(const contest *all)
{
    if (fm_wanted(all->of[0]->m, "model")) {
        FM_TRY(measure_prefill(all));
        FM_TRY(measure_decode(all));
    }
    FM_TRY(measure_context(all->of[0]));
    return measure_offline(all->of[0]);
}

static fm_status add_trial(contest *all, const fm_measuring *m, const fm_weights_kind *kind,
                           const int32_t *token)
{
    trial *t = calloc(1, sizeof *t);
    if (!t) return fm_fail(FM_E_OOM, "trial");
    *t                = (trial){.m = m, .kind = kind, .token = token};
    all->of[all->n++] = t;
    return open_engine(m, kind, &t->e);
}

static fm_status draw_tokens(int32_t **token, const fm_measuring *m)
{
    fm_model_config c;
    const size_t    n    = (size_t)CROWD * MAX_CONTEXT;
    const char     *text = fm_builtin_config(m->model);
    if (!text) return fm_fail(FM_E_ARG, "\"%s\" is no built-in shape", m->model);
    FM_TRY(fm_config_parse(&c, text, strlen(text), m->model, NULL));
    if (!(*token = malloc(n * sizeof **token))) return fm_fail(FM_E_OOM, "tokens");
    for (size_t i = 0; i < n; i++) (*token)[i] = (int32_t)(fm_rng_u32(7, i) % (uint32_t)c.vocab);
    return FM_OK;
}

fm_status fm_measure_model(const fm_measuring *m)
{
    if (!fm_wanted(m, "model") && !fm_wanted(m, "context") && !fm_wanted(m, "offline"))
        return FM_OK;
    contest   all   = {0};
    int32_t  *token = NULL;
    fm_status rc    = draw_tokens(&token, m);
    for (int t = 0; rc == FM_OK && t < FM_N_WEIGHTS; t++)
        if (m->wanted[t]) rc = add_trial(&all, m, &fm_weights_kinds[t], token);
    if (rc == FM_OK && all.n) rc = run_trials(&all);
    for (int i = 0; i < all.n; i++) {
        fm_engine_close(all.of[i]->e);
        free(all.of[i]);
    }
    free(token);
    return rc;
}
