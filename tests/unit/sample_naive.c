/* SPDX-License-Identifier: Apache-2.0 */
/* Random parameters on random logits against the definition: everything in
 * double, the vocabulary sorted, the Gumbel of every token computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "llm/sample/sample_internal.h"

enum { MAX_VOCAB = 700, MAX_OUTPUT = 40, TRIALS = 3000 };

typedef struct {
    int32_t id;
    double  logit; /* after penalties, mask, bias */
    double  p;
} entry;

typedef struct {
    int32_t id;
    double  logprob[MAX_VOCAB]; /* by id */
    int32_t order[MAX_VOCAB];
    int     close; /* a decision within rounding of going the other way */
} verdict;

static uint64_t counter;

static uint32_t below(uint32_t n)
{
    return fm_rng_u32(0x5eed, counter++) % n;
}

static double uniform(double lo, double hi)
{
    return lo + (hi - lo) * (double)fm_rng_u32(0x5eed, counter++) * 0x1p-32;
}

static int better(const void *va, const void *vb)
{
    const entry *a = va, *b = vb;
    if (a->logit != b->logit) return a->logit > b->logit ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static void change_logits(entry *e, int n, const fm_sampling *p, const int32_t *output,
                          int n_output, const int32_t *eos, int n_eos)
{
    int count[MAX_VOCAB] = {0};
    for (int i = 0; i < n_output; i++) count[output[i]]++;
    for (int i = 0; i < n; i++) {
        if (!count[i]) continue;
        e[i].logit -= (double)p->frequency_penalty * count[i] + (double)p->presence_penalty;
        if (e[i].logit < 0) e[i].logit *= (double)p->repetition_penalty;
        else                e[i].logit /= (double)p->repetition_penalty;
    }
    if (n_output < p->min_new_tokens) {
        for (int i = 0; i < n_eos; i++) e[eos[i]].logit = -INFINITY;
        for (int i = 0; i < p->n_stop_id; i++) e[p->stop_id[i]].logit = -INFINITY;
    }
    for (int i = 0; i < p->n_bias; i++) e[p->bias[i].id].logit += (double)p->bias[i].bias;
}

static int near(double a, double b)
{
    return fabs(a - b) < 2e-5 * (fabs(b) + 1e-3);
}

/* The kept prefix of the sorted entries, and its best key. */
static void draw(verdict *v, const entry *e, int n, const fm_sampling *p, int position)
{
    const uint64_t stream = fm__stream(p->seed, position);
    double         before = 0, best = -INFINITY, second = -INFINITY;
    for (int i = 0; i < n && e[i].p > 0; i++) {
        const double least = (double)p->min_p * e[0].p;
        if (p->top_p < 1) v->close |= near(before, (double)p->top_p);
        if (p->min_p > 0 && i > 0) v->close |= near(e[i].p, least) && e[i].p != e[0].p;
        const int keep = (p->top_k < 0 || i < p->top_k) && before <= (double)p->top_p &&
                         e[i].p >= least;
        before += e[i].p;
        if (!keep) continue;
        const double key = log(e[i].p) - log(-log(fm__uniform(stream, e[i].id)));
        if (key > best) {
            second = best;
            best   = key;
            v->id  = e[i].id;
        } else if (key > second) {
            second = key;
        }
    }
    v->close |= best - second < 2e-5;
}

static verdict naive(const float *logits, int n, const fm_sampling *p, const int32_t *output,
                     int n_output, const int32_t *eos, int n_eos)
{
    static entry  e[MAX_VOCAB];
    const int     greedy = p->temperature < 1e-6f;
    const double  t      = greedy ? 1 : (double)p->temperature;
    verdict       v      = {0};
    double        z      = 0;
    for (int i = 0; i < n; i++) e[i] = (entry){i, isnan(logits[i]) ? -INFINITY : logits[i], 0};
    change_logits(e, n, p, output, n_output, eos, n_eos);
    qsort(e, (size_t)n, sizeof *e, better);
    for (int i = 0; i < n; i++) z += e[i].p = exp((e[i].logit - e[0].logit) / t);
    for (int i = 0; i < n; i++) {
        e[i].p /= z;
        v.logprob[e[i].id] = (e[i].logit - e[0].logit) / t - log(z);
        v.order[i]         = e[i].id;
        v.close |= i > 0 && e[i].logit != e[i - 1].logit && near(e[i].logit, e[i - 1].logit);
    }
    v.id = e[0].id;
    if (!greedy) draw(&v, e, n, p, n_output);
    return v;
}

/* Eighths, so that ties are common; some NaN, some -inf. */
static void random_logits(float *x, int n)
{
    const double span = uniform(1, 20);
    for (int i = 0; i < n; i++) {
        const uint32_t kind = below(40);
        x[i] = kind == 0 ? -INFINITY : kind == 1 ? NAN : (float)round(uniform(-span, span) * 8) / 8;
    }
    x[below((uint32_t)n)] = (float)span; /* something is possible */
}

static fm_sampling random_params(int n, fm_logit_bias *bias)
{
    static const float temperature[] = {0, 0.25f, 0.5f, 1, 2};
    fm_sampling        p             = fm_sampling_default();
    p.temperature = temperature[below(5)];
    p.seed        = below(1000);
    if (below(2)) p.top_k = 1 + (int)below((uint32_t)n);
    if (below(2)) p.top_p = (float)uniform(0.01, 1);
    if (below(3) == 0) p.min_p = (float)uniform(0, 0.5);
    if (below(3) == 0) p.frequency_penalty = (float)below(17) / 8 - 1;
    if (below(3) == 0) p.presence_penalty = (float)below(17) / 8 - 1;
    if (below(3) == 0) p.repetition_penalty = below(2) ? 2 : 0.5f;
    if (below(3) == 0) p.min_new_tokens = (int)below(2 * MAX_OUTPUT);
    p.stop_id[0] = (int32_t)below((uint32_t)n);
    p.n_stop_id  = (int)below(2);
    p.n_bias     = (int)below(4);
    p.bias       = bias;
    for (int i = 0; i < p.n_bias; i++)
        bias[i] = (fm_logit_bias){(int32_t)below((uint32_t)n), (float)below(65) / 8 - 4};
    p.logprobs     = 1;
    p.top_logprobs = (int)below(FM_MAX_TOP_LOGPROBS + 1);
    return p;
}

static void check_logprob(float got, double want)
{
    if (!(fabs((double)got - want) <= 1e-6 + 4e-7 * fabs(want)))
        fail_msg("log-probability %.8g, want %.8g", (double)got, want);
}

static void compare(const fm_sampled *got, const verdict *want, const fm_sampling *p, int n)
{
    if (!want->close) assert_int_equal(got->id, want->id);
    check_logprob(got->logprob, want->logprob[got->id]);
    for (int i = 0; i < got->n_top; i++) {
        if (!want->close) assert_int_equal(got->top[i].id, want->order[i]);
        check_logprob(got->top[i].logprob, want->logprob[got->top[i].id]);
    }
    if (got->n_top < p->top_logprobs && got->n_top < n)
        assert_true(want->logprob[want->order[got->n_top]] == -INFINITY);
}

static void agrees_with_the_definition(void **state)
{
    (void)state;
    int n_close = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        const int     n = 2 + (int)below(MAX_VOCAB - 1), n_output = (int)below(MAX_OUTPUT);
        float         x[MAX_VOCAB];
        int32_t       output[MAX_OUTPUT];
        const int32_t eos = (int32_t)below((uint32_t)n);
        fm_logit_bias bias[4];
        fm_sampler   *s = NULL;
        fm_sampled    got;

        random_logits(x, n);
        for (int i = 0; i < n_output; i++) output[i] = (int32_t)below((uint32_t)(n < 20 ? n : 20));
        const fm_sampling p    = random_params(n, bias);
        const verdict     want = naive(x, n, &p, output, n_output, &eos, 1);
        if (want.logprob[want.order[0]] != want.logprob[want.order[0]]) continue; /* all masked */

        assert_int_equal(fm_sampler_create(&s, n), FM_OK);
        fm_sample(s, &p, x, output, n_output, &eos, 1, &got);
        fm_sampler_destroy(s);
        compare(&got, &want, &p, n);
        n_close += want.close;
    }
    if (n_close > TRIALS / 20) fail_msg("%d of %d trials were too close to call", n_close, TRIALS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
