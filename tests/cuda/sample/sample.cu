/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling against fm_sample(): the same token for every seed and position. */
#include <math.h>

#include "check.h"
#include "definition.h"
#include "llm/kernel/cuda/sample/sample.h"

typedef std::vector<float>   floats;
typedef std::vector<int32_t> ints;

enum { TOP = FM_MAX_TOP_LOGPROBS };

namespace
{
struct request {
    fm_sampling how;
    ints        output;
};
} // namespace

static request asking(float temperature, int top_k, float top_p, float min_p, uint64_t seed,
                      int position)
{
    request q         = {};
    q.how.temperature = temperature, q.how.top_k = top_k, q.how.top_p = top_p, q.how.min_p = min_p;
    q.how.repetition_penalty = 1, q.how.seed = seed, q.how.logprobs = 1;
    q.output.assign((size_t)position, 1);
    return q;
}

static fm_cuda_sampling on_gpu(const request &q)
{
    fm_cuda_sampling s = {};
    s.temperature = q.how.temperature, s.top_k = q.how.top_k, s.top_p = q.how.top_p,
    s.min_p    = q.how.min_p;
    s.position = (int32_t)q.output.size(), s.logprob = q.how.logprobs, s.n_top = q.how.top_logprobs,
    s.seed = q.how.seed;
    return s;
}

static bool near(float got, float want)
{
    return got == want || fabsf(got - want) <= 2e-6f + 2e-7f * fabsf(want);
}

static void check_top(const right_sampled &want, const int32_t *id, const float *logprob)
{
    for (int k = 0; k < TOP; k++) {
        FM_CHECK(id[k] == (k < want.n_top ? want.top[k].id : -1));
        FM_CHECK(k >= want.n_top || near(logprob[k], want.top[k].logprob));
    }
}

typedef std::vector<uint32_t> words;

static bool is_finite(const float *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* logits [n, vocab], one row per request; allowed [n, words of a row] or none */
static void check_sample(const floats &logits, const std::vector<request> &ask,
                         const std::vector<fm_cuda_logit_edit> &edit = {}, int n_eos = 0,
                         const words &allowed = {})
{
    const int                     n = (int)ask.size(), vocab = (int)(logits.size() / ask.size());
    std::vector<fm_cuda_sampling> how;
    for (const request &q : ask) how.push_back(on_gpu(q));
    for (int i = 0; i < n && !allowed.empty(); i++) how[(size_t)i].mask = i + 1;
    for (const fm_cuda_logit_edit &e : edit) how[(size_t)e.row].forbids |= (int16_t)e.forbid;
    fm_device<uint32_t>           d_allowed(allowed);
    fm_device<float>              x(logits), logprob((size_t)n), top_logprob((size_t)(n * TOP));
    fm_device<fm_cuda_sampling>   d_how(how);
    fm_device<fm_cuda_logit_edit> d_edit(edit);
    fm_device<int32_t>  id((size_t)n), top_id((size_t)(n * TOP)), n_edit(ints{(int)edit.size()});
    fm_device<char>     scratch(fm_cuda_sample_bytes(n, vocab));
    fm_cuda_sample_args a = {};
    a.logits = x.data(), a.how = d_how.data(), a.n_row = n, a.vocab = vocab,
    a.scratch = scratch.data();
    a.edit = edit.empty() ? NULL : d_edit.data(), a.n_edit = n_edit.data(),
    a.max_edit = (int)edit.size();
    a.id = id.data(), a.logprob = logprob.data(), a.top_id = top_id.data(),
    a.top_logprob = top_logprob.data();
    a.any_top     = 1;
    a.allowed     = allowed.empty() ? NULL : d_allowed.data();
    fm_pinned<int32_t> told_id((size_t)n);
    fm_pinned<float>   told_logprob((size_t)n);
    a.told_id = told_id.data(), a.told_logprob = told_logprob.data();
    FM_CHECK(fm_cuda_sample(&a, NULL) == FM_OK);
    const ints told = told_id.host();
    FM_CHECK_EQUAL(told_logprob.host(), logprob.host());
    const ints    got = id.host(), tops = top_id.host();
    const floats  got_logprob = logprob.host(), top_logprobs = top_logprob.host();
    const int32_t eos[2] = {2, 4};
    for (int i = 0; i < n; i++) {
        floats        row(logits.begin() + i * vocab, logits.begin() + (i + 1) * vocab);
        right_sampled want;
        for (int j = 0; j < vocab && !allowed.empty(); j++)
            if (!(allowed[(size_t)(i * ((vocab + 31) / 32) + j / 32)] >> j % 32 & 1))
                row[(size_t)j] = -INFINITY;
        right_sample(&ask[(size_t)i].how, row.data(), vocab, ask[(size_t)i].output.data(),
                     (int)ask[(size_t)i].output.size(), eos, n_eos, &want);
        FM_CHECK(told[(size_t)i] ==
                 (is_finite(&logits[(size_t)(i * vocab)], vocab) ? got[(size_t)i] : -1));
        if (got[(size_t)i] != want.id || !near(got_logprob[(size_t)i], want.logprob))
            fm_check_failed(__FILE__, __LINE__, "row %d: token %d (%.9g), expected %d (%.9g)", i,
                            got[(size_t)i], got_logprob[(size_t)i], want.id, want.logprob);
        check_top(want, &tops[(size_t)(i * TOP)], &top_logprobs[(size_t)(i * TOP)]);
    }
}

static floats normal_logits(int n, float width, uint64_t seed)
{
    fm_numbers r(seed);
    floats     v((size_t)n);
    for (float &x : v)
        x = width * (r.unit() + r.unit() + r.unit() + r.unit() - 2); /* nearly a bell */
    return v;
}

FM_TEST(greedy_takes_the_first_of_the_largest)
{
    const int vocab = 9001; /* two parts, odd */
    floats    x     = normal_logits(4 * vocab, 4, 1);
    x[8000] = x[8999] = x[17] = 50; /* ties across parts */
    for (int i = 0; i < vocab; i++)
        x[(size_t)(vocab + i)] = -0.0f; /* zeros of both signs are equal */
    x[(size_t)vocab + 5000]       = 0.0f;
    x[(size_t)(2 * vocab) + 3]    = NAN;
    x[(size_t)(2 * vocab) + 9000] = INFINITY;
    for (int i = 0; i < vocab; i++)
        x[(size_t)(3 * vocab + i)] = i % 2 ? NAN : -INFINITY; /* nothing is possible */
    std::vector<request> ask(4, asking(0, -1, 1, 0, 1, 3));
    ask[2].how.top_logprobs = 5, ask[0].how.top_logprobs = TOP;
    check_sample(x, ask);
}

FM_TEST(only_greedy_needs_two_kernels_and_gives_the_same)
{
    const int                   vocab = 8193, n = 3;
    const floats                x   = normal_logits(n * vocab, 4, 2);
    fm_cuda_sampling            how = {};
    fm_device<fm_cuda_sampling> d_how(std::vector<fm_cuda_sampling>((size_t)n, how));
    fm_device<float>            d(x), logprob((size_t)n);
    fm_device<int32_t>          id((size_t)n);
    fm_device<char>             scratch(fm_cuda_sample_bytes(n, vocab));
    fm_cuda_sample_args         a = {};
    a.logits = d.data(), a.how = d_how.data(), a.n_row = n, a.vocab = vocab,
    a.scratch = scratch.data();
    a.id = id.data(), a.logprob = logprob.data(), a.only_greedy = 1;
    FM_CHECK(fm_cuda_sample(&a, NULL) == FM_OK);
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int j = 0; j < vocab; j++)
            if (x[(size_t)(i * vocab + j)] > x[(size_t)(i * vocab + best)]) best = j;
        FM_CHECK(id.host()[(size_t)i] == best && logprob.host()[(size_t)i] == 0);
    }
    FM_CHECK_EQUAL(d.host(), x); /* the logits stay */
}

FM_TEST(draws_are_those_of_the_cpu)
{
    const int            vocab = 8500;
    std::vector<request> ask;
    for (int i = 0; i < 4; i++)
        ask.push_back(asking(0.7f + 0.4f * (float)i, -1, 1, 0, (uint64_t)i << 33 | 7, i * 100));
    check_sample(normal_logits(4 * vocab, 3, 3), ask);
}

/* Without log-probabilities the race is over when the logits have been read. */
FM_TEST(draws_alone_and_in_company_are_those_of_the_cpu)
{
    for (const int n : {3, 40}) { /* small parts, large ones */
        const int            vocab = 8200 + n;
        std::vector<request> ask;
        for (int i = 0; i < n; i++) {
            ask.push_back(asking(0.3f + 0.1f * (float)(i % 12), -1, 1, 0, (uint64_t)i * 977, i));
            ask.back().how.logprobs = 0;
        }
        check_sample(normal_logits(n * vocab, 5, (uint64_t)n), ask);
    }
}

/* Scores in single precision cannot tell these apart: the row is read again. */
FM_TEST(races_too_close_for_single_precision)
{
    const int            vocab = 3000;
    std::vector<request> ask;
    for (int i = 0; i < 4; i++) {
        ask.push_back(asking(i % 2 ? 2e-6f : 1e-4f, -1, 1, 0, (uint64_t)i, 1));
        ask.back().how.logprobs = 0;
    }
    floats     x(ask.size() * (size_t)vocab);
    fm_numbers r(8);
    for (float &v : x) v = 100.0f + (float)r.below(3) * 0x1p-17f;
    x[(size_t)(3 * vocab + 5)] = INFINITY;
    x[(size_t)(3 * vocab + 7)] = INFINITY;
    check_sample(x, ask);
}

/* What the host is told of a row: its token, or -1 where a logit is not finite. */
static ints told_of(const floats &x, int n, fm_cuda_sampling how, bool only_greedy,
                    const std::vector<fm_cuda_logit_edit> &edit = {}, const words &allowed = {})
{
    const int                     vocab = (int)x.size() / n;
    std::vector<fm_cuda_sampling> all((size_t)n, how);
    fm_device<fm_cuda_sampling>   d_how(all);
    fm_device<fm_cuda_logit_edit> d_edit(edit);
    fm_device<uint32_t>           d_allowed(allowed);
    fm_device<float>              d(x), logprob((size_t)n);
    fm_device<int32_t>            id((size_t)n), n_edit(ints{(int)edit.size()});
    fm_device<char>               scratch(fm_cuda_sample_bytes(n, vocab));
    fm_pinned<int32_t>            told((size_t)n);
    fm_pinned<float>              told_logprob((size_t)n);
    fm_cuda_sample_args           a = {};
    a.logits = d.data(), a.how = d_how.data(), a.n_row = n, a.vocab = vocab;
    a.edit = edit.empty() ? NULL : d_edit.data(), a.n_edit = n_edit.data();
    a.max_edit = (int)edit.size(), a.allowed = allowed.empty() ? NULL : d_allowed.data();
    a.scratch = scratch.data(), a.id = id.data(), a.logprob = logprob.data();
    a.told_id = told.data(), a.told_logprob = told_logprob.data(), a.only_greedy = only_greedy;
    FM_CHECK(fm_cuda_sample(&a, NULL) == FM_OK);
    for (const int32_t i : id.host()) FM_CHECK(i >= 0 && i < vocab); /* the next pass reads it */
    return told.host();
}

FM_TEST(one_logit_that_is_not_finite_is_told)
{
    fm_cuda_sampling how[4] = {}; /* greedy, drawn, cut, with a log-probability */
    how[1].temperature = how[2].temperature = 1, how[1].top_p = 1, how[2].top_p = 0.5f;
    how[3].logprob = 1;
    for (const int vocab : {4, 1027, 9000})
        for (const float odd : {NAN, INFINITY, -INFINITY})
            for (const int at : {0, vocab / 2, vocab - 1})
                for (const fm_cuda_sampling &h : how) {
                    floats x                = normal_logits(3 * vocab, 2, 5);
                    x[(size_t)(vocab + at)] = odd;
                    const ints told         = told_of(x, 3, h, &h == how);
                    FM_CHECK(told[0] >= 0 && told[1] == -1 && told[2] >= 0);
                }
}

FM_TEST(what_is_forbidden_is_no_fault)
{
    const int        vocab = 96;
    fm_cuda_sampling how   = {};
    how.forbids            = 1;
    floats x               = normal_logits(vocab, 2, 5);
    FM_CHECK(told_of(x, 1, how, true, {{0, 7, 0, 1, 0, 1}})[0] >= 0);
    how.mask = 1;
    FM_CHECK(told_of(x, 1, how, true, {}, words{1u << 9, 0, 0})[0] == 9);
    x[7] = NAN; /* forbidden or not, allowed or not, the row is spoilt */
    FM_CHECK(told_of(x, 1, how, true, {}, words{1u << 9, 0, 0})[0] == -1);
    how.mask = 0;
    FM_CHECK(told_of(x, 1, how, true, {{0, 7, 0, 1, 0, 1}})[0] == -1);
    x[7] = INFINITY;
    FM_CHECK(told_of(x, 1, how, true, {{0, 7, 0, 1, 0, 1}})[0] == -1);
}

FM_TEST(masks_leave_the_allowed_tokens)
{
    const int            vocab = 2083, n_word = (vocab + 31) / 32; /* the last word is not full */
    std::vector<request> ask = {asking(0, -1, 1, 0, 1, 0), asking(1, -1, 1, 0, 2, 0),
                                asking(1, 5, 0.9f, 0, 3, 0), asking(1, -1, 1, 0, 4, 0),
                                asking(0, -1, 1, 0, 5, 0)};
    words                allowed(ask.size() * (size_t)n_word, 0);
    fm_numbers           r(12);
    for (uint32_t &w : allowed) w = 1u << r.below(32) | 1u << r.below(32);
    for (int i = 3 * n_word; i < 5 * n_word; i++) allowed[(size_t)i] = 0;
    allowed[(size_t)(3 * n_word + 65)] = 4; /* one token, and then none */
    ask[1].how.logprobs = ask[3].how.logprobs = 0;
    check_sample(normal_logits((int)ask.size() * vocab, 4, 10), ask, {}, 0, allowed);
}

FM_TEST(a_row_without_mask_beside_one_with)
{
    const int                     vocab = 96;
    std::vector<fm_cuda_sampling> how(2);
    how[1].mask = 1;
    fm_device<fm_cuda_sampling> d_how(how);
    fm_device<uint32_t>         allowed(words{0, 1u << 9, 0});
    fm_device<float>            x(floats((size_t)(2 * vocab), 1.0f)), logprob(2);
    fm_device<int32_t>          id(2);
    fm_device<char>             scratch(fm_cuda_sample_bytes(2, vocab));
    fm_cuda_sample_args         a = {};
    a.logits = x.data(), a.how = d_how.data(), a.n_row = 2, a.vocab = vocab, a.only_greedy = 1;
    a.scratch = scratch.data(), a.id = id.data(), a.logprob = logprob.data();
    a.allowed = allowed.data();
    FM_CHECK(fm_cuda_sample(&a, NULL) == FM_OK);
    FM_CHECK_EQUAL(id.host(), (ints{0, 41}));
}

FM_TEST(cuts_are_those_of_the_cpu)
{
    const int            vocab = 8300;
    std::vector<request> ask;
    for (const int k : {1, 2, 50, 8299}) ask.push_back(asking(1, k, 1, 0, 5, k));
    for (const float p : {1e-6f, 0.3f, 0.9f, 0.999999f})
        ask.push_back(asking(1.3f, -1, p, 0, 6, (int)(p * 100)));
    ask.push_back(asking(1, 40, 0.8f, 0.05f, 7, 1));
    ask.push_back(asking(2, -1, 1, 0.5f, 8, 2));
    ask.push_back(asking(0.01f, 3, 0.5f, 1, 9, 3));
    for (request &q : ask) q.how.top_logprobs = 3;
    check_sample(normal_logits((int)ask.size() * vocab, 6, 4), ask);
}

FM_TEST(a_whole_vocabulary)
{
    check_sample(normal_logits(129280, 6, 9), {asking(1, 200, 0.95f, 0, 11, 5)});
    check_sample(normal_logits(129280, 1, 9),
                 {asking(1, -1, 0.5f, 0, 12, 5)}); /* half of it stays */
    check_sample(normal_logits(129280, 6, 9),
                 {asking(1, -1, 0.98f, 0, 13, 5)}); /* cut in a thin bin */
}

/* Equal logits: top-k and top-p keep the lowest ids. */
FM_TEST(cuts_through_ties)
{
    const int            vocab = 2500;
    std::vector<request> ask;
    for (uint64_t seed = 0; seed < 6; seed++) ask.push_back(asking(1, 7, 1, 0, seed, 1));
    for (uint64_t seed = 0; seed < 6; seed++) ask.push_back(asking(1, -1, 0.25f, 0, seed, 2));
    floats     x(ask.size() * (size_t)vocab);
    fm_numbers r(5);
    for (float &v : x) v = (float)r.below(3);
    check_sample(x, ask);
    check_sample(floats(x.size(), 4.0f), ask);
}

FM_TEST(few_possible_tokens)
{
    const int            vocab = 1025;
    std::vector<request> ask(4, asking(1, 5, 0.9f, 0, 3, 0));
    floats               x((size_t)(4 * vocab), -INFINITY);
    x[1024]                = -7; /* one */
    x[(size_t)vocab + 3]   = INFINITY;
    x[(size_t)vocab + 900] = INFINITY;
    x[(size_t)vocab + 901] = 5;
    for (int i = 0; i < vocab; i++)
        x[(size_t)(3 * vocab + i)] = i == 40 ? 0.0f : -200.0f; /* all but one underflow */
    for (request &q : ask) q.how.top_logprobs = 4;
    check_sample(x, ask);
}

FM_TEST(tiny_vocabularies)
{
    check_sample(floats{1.5f}, {asking(1, -1, 1, 0, 1, 1)});
    check_sample(floats{1.5f, 1.5f, 1.25f}, {asking(1, 2, 0.5f, 0, 1, 1)});
}

FM_TEST(penalties_biases_and_forbidden_tokens)
{
    const int            vocab   = 600;
    std::vector<request> ask     = {asking(0, -1, 1, 0, 1, 0), asking(1, 20, 1, 0, 2, 0)};
    const fm_logit_bias  bias[2] = {{7, 3.5f}, {599, -4.0f}};
    for (request &q : ask) {
        q.output                = {5, 9, 5, 300};
        q.how.frequency_penalty = 0.5f, q.how.presence_penalty = -0.25f,
        q.how.repetition_penalty = 1.3f;
        q.how.min_new_tokens = 10, q.how.bias = bias, q.how.n_bias = 2;
    }
    std::vector<fm_cuda_logit_edit> edit;
    for (int32_t row = 0; row < 2; row++) {
        edit.push_back({row, 5, 0.5f * 2 - 0.25f, 1.3f, 0, 0});
        edit.push_back({row, 9, 0.5f - 0.25f, 1.3f, 0, 0});
        edit.push_back({row, 300, 0.5f - 0.25f, 1.3f, 0, 0});
        edit.push_back({row, 7, 0, 1, 3.5f, 0});
        edit.push_back({row, 599, 0, 1, -4.0f, 0});
        edit.push_back({row, 2, 0, 1, 0, 1});
        edit.push_back({row, 4, 0, 1, 0, 1});
    }
    floats x = normal_logits(2 * vocab, 3, 6);
    x[2] = 90, x[4] = 91, x[5] = 9, x[9] = -3; /* the best ones are forbidden */
    check_sample(x, ask, edit, 2);
}

/* Frequencies follow the weights. */
FM_TEST(draws_have_the_right_frequencies)
{
    const int            n = 1000, vocab = 4;
    std::vector<request> ask;
    floats               x;
    for (int i = 0; i < n; i++) {
        ask.push_back(asking(1, -1, 1, 0, 77, i));
        ask.back().how.logprobs = 0;
        for (const float p : {0.1f, 0.2f, 0.3f, 0.4f}) x.push_back(logf(p));
    }
    std::vector<fm_cuda_sampling> how;
    for (const request &q : ask) how.push_back(on_gpu(q));
    fm_device<fm_cuda_sampling> d_how(how);
    fm_device<float>            d(x), logprob((size_t)n);
    fm_device<int32_t>          id((size_t)n);
    fm_device<char>             scratch(fm_cuda_sample_bytes(n, vocab));
    fm_cuda_sample_args         a = {};
    a.logits = d.data(), a.how = d_how.data(), a.n_row = n, a.vocab = vocab,
    a.scratch = scratch.data();
    a.id = id.data(), a.logprob = logprob.data();
    FM_CHECK(fm_cuda_sample(&a, NULL) == FM_OK);
    int count[4] = {};
    for (const int32_t t : id.host()) count[t & 3]++;
    for (int k = 0; k < 4; k++) FM_CHECK(fabs(count[k] - 100.0 * (k + 1)) < 65); /* 4 sigma */
}

FM_TEST(a_vocabulary_too_large_is_refused)
{
    fm_cuda_sample_args a = {};
    a.vocab = FM_CUDA_MAX_VOCAB + 1, a.n_row = 1;
    FM_CHECK(fm_cuda_sample(&a, NULL) == FM_E_NOSUP);
    a.vocab = 10, a.n_row = 0;
    FM_CHECK(fm_cuda_sample(&a, NULL) == FM_OK);
}

/* The largest of each row, as two ranks with half of the words each find it; of equal ones the
 * first.  Its state goes where it is kept. */
FM_TEST(the_largest_logit_of_all_ranks_is_drafted)
{
    fm_numbers   r(5);
    const int    n = 4, half = 700, width = 64;
    floats       logits[2] = {r.floats((size_t)(n * half), -9, 9), r.floats((size_t)(n * half), -9, 9)};
    logits[0][5] = logits[1][7] = 11;                            /* row 0: a tie between the ranks */
    logits[1][(size_t)half + 3] = logits[1][(size_t)half + 2] = 12; /* row 1: within the second */
    ints want;
    for (int i = 0; i < n; i++) {
        int best = 0;
        for (int c = 1; c < 2 * half; c++)
            if (logits[c / half][(size_t)(i * half + c % half)] >
                logits[best / half][(size_t)(i * half + best % half)])
                best = c;
        want.push_back(best);
    }
    std::vector<uint16_t> state((size_t)(n * width)), before((size_t)(3 * width), 9);
    for (size_t i = 0; i < state.size(); i++) state[i] = (uint16_t)(i * 7);
    fm_device<float>             l0(logits[0]), l1(logits[1]);
    fm_device<fm_cuda_candidate> best((size_t)(2 * n));
    fm_device<int32_t>           id((size_t)n), keep(ints{2, -1, 0, -1});
    fm_device<uint16_t>          ds(state), dk(before);
    const fm_cuda_best_args      first = {l0.data(), best.data(), n, half, 0};
    const fm_cuda_best_args      second = {l1.data(), best.data() + n, n, half, half};
    const fm_cuda_take_best_args all = {best.data(), id.data(), ds.data(), dk.data(), keep.data(), n, 2, width};
    FM_CHECK(fm_cuda_best(&first, NULL) == FM_OK && fm_cuda_best(&second, NULL) == FM_OK);
    FM_CHECK(fm_cuda_take_best(&all, NULL) == FM_OK);
    FM_CHECK(id.host() == want && want[0] == 5 && want[1] == half + 2);
    std::copy(state.begin(), state.begin() + width, before.begin() + 2 * width);
    std::copy(state.begin() + 2 * width, state.begin() + 3 * width, before.begin());
    FM_CHECK(dk.host() == before);
}
