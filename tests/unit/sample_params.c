/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters: their defaults, and one sentence for each that is out of range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "llm/sample/sample.h"

enum { VOCAB = 100 };

static void refused(const fm_sampling *p, const char *field)
{
    assert_int_equal(fm_sampling_check(p, VOCAB), FM_E_ARG);
    if (!strstr(fm_why(), field)) fail_msg("\"%s\" does not name %s", fm_why(), field);
}

static void accepted(const fm_sampling *p)
{
    if (fm_sampling_check(p, VOCAB) != FM_OK) fail_msg("refused: %s", fm_why());
}

static void defaults_do_nothing(void **state)
{
    (void)state;
    const fm_sampling p = fm_sampling_default();
    accepted(&p);
    assert_true(p.temperature == 1 && p.top_p == 1 && p.min_p == 0 && p.repetition_penalty == 1);
    assert_true(p.frequency_penalty == 0 && p.presence_penalty == 0);
    assert_int_equal(p.top_k, -1);
    assert_int_equal(p.max_new_tokens, 128);
    assert_int_equal(p.n_bias + p.n_stop_id + p.has_seed + p.logprobs + p.top_logprobs, 0);
}

typedef struct {
    const char *field;
    size_t      offset; /* of a float */
    float       good[3], bad[4];
} float_case;

#define FIELD(f) #f, offsetof(fm_sampling, f)

static const float_case float_cases[] = {
    {FIELD(temperature), {0, 1e-7f, 1000}, {-0.1f, INFINITY, NAN, -INFINITY}},
    {FIELD(top_p), {1e-6f, 0.5f, 1}, {0, 1.01f, NAN, -1}},
    {FIELD(min_p), {0, 0.5f, 1}, {-0.01f, 1.01f, NAN, INFINITY}},
    {FIELD(repetition_penalty), {0.01f, 1, 2}, {0, 2.01f, NAN, -1}},
    {FIELD(frequency_penalty), {-2, 0, 2}, {-2.01f, 2.01f, NAN, INFINITY}},
    {FIELD(presence_penalty), {-2, 0, 2}, {-2.01f, 2.01f, NAN, -INFINITY}},
};

static void real_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof float_cases / sizeof *float_cases; i++) {
        const float_case *c = &float_cases[i];
        fm_sampling       p = fm_sampling_default();
        for (int j = 0; j < 3; j++) {
            memcpy((char *)&p + c->offset, &c->good[j], sizeof(float));
            accepted(&p);
        }
        for (int j = 0; j < 4; j++) {
            memcpy((char *)&p + c->offset, &c->bad[j], sizeof(float));
            refused(&p, c->field);
        }
    }
}

typedef struct {
    const char *field;
    size_t      offset; /* of an int */
    int         good[2], bad[2];
} int_case;

static const int_case int_cases[] = {
    {FIELD(top_k), {-1, 1}, {0, -2}},
    {FIELD(max_new_tokens), {0, 1 << 20}, {-1, INT32_MIN}},
    {FIELD(min_new_tokens), {0, 128}, {-1, 129}},
    {FIELD(top_logprobs), {0, FM_MAX_TOP_LOGPROBS}, {-1, FM_MAX_TOP_LOGPROBS + 1}},
};

static void integer_ranges(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof int_cases / sizeof *int_cases; i++) {
        const int_case *c = &int_cases[i];
        fm_sampling     p = fm_sampling_default();
        for (int j = 0; j < 2; j++) {
            memcpy((char *)&p + c->offset, &c->good[j], sizeof(int));
            accepted(&p);
        }
        for (int j = 0; j < 2; j++) {
            memcpy((char *)&p + c->offset, &c->bad[j], sizeof(int));
            refused(&p, c->field);
        }
    }
}

static void stop_ids(void **state)
{
    (void)state;
    fm_sampling p = fm_sampling_default();
    p.n_stop_id   = 2;
    p.stop_id[1]  = VOCAB - 1;
    accepted(&p);
    p.stop_id[1] = VOCAB;
    refused(&p, "stop_token_ids[1]");
    p.stop_id[1] = -1;
    refused(&p, "stop_token_ids[1]");
    p.n_stop_id = FM_MAX_STOP_IDS + 1;
    refused(&p, "stop_token_ids");
    p.n_stop_id = -1;
    refused(&p, "stop_token_ids");
}

static void logit_bias(void **state)
{
    (void)state;
    fm_logit_bias bias[2] = {{0, -100}, {VOCAB - 1, 100}};
    fm_sampling   p       = fm_sampling_default();
    p.bias                = bias;
    p.n_bias              = 2;
    accepted(&p);
    bias[1].id = VOCAB;
    refused(&p, "logit_bias[1]");
    bias[1] = (fm_logit_bias){3, NAN};
    refused(&p, "logit_bias[1]");
    p.bias = NULL;
    refused(&p, "logit_bias");
    p.n_bias = FM_MAX_LOGIT_BIAS + 1;
    refused(&p, "logit_bias");
}

static void finish_names(void **state)
{
    (void)state;
    assert_string_equal(fm_finish_name(FM_FINISH_STOP), "stop");
    assert_string_equal(fm_finish_name(FM_FINISH_LENGTH), "length");
    assert_string_equal(fm_finish_name(FM_FINISH_ABORT), "abort");
    assert_string_equal(fm_finish_name(FM_FINISH_ERROR), "error");
    assert_string_equal(fm_finish_why(FM_FINISH_LENGTH), "");
    assert_non_null(strstr(fm_finish_why(FM_FINISH_ERROR), "not finite"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_do_nothing), cmocka_unit_test(real_ranges),
        cmocka_unit_test(integer_ranges),      cmocka_unit_test(stop_ids),
        cmocka_unit_test(logit_bias),          cmocka_unit_test(finish_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
