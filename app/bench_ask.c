/* SPDX-License-Identifier: Apache-2.0 */
/* --extra-request-body: the sampling parameters of SGLang's requests. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "json/read.h"
#include "llm/sample/sample.h"

static const fm_json_at at = {"--extra-request-body", ""};

static fm_status read_real(float *out, const json_t *body, const char *key)
{
    double x = *out;
    FM_TRY(fm_json_opt_real(&x, body, key, -1e30, 1e30, at)); /* the engine knows the ranges */
    *out = (float)x;
    return FM_OK;
}

static fm_status read_int(int *out, const json_t *body, const char *key)
{
    int64_t x = *out;
    FM_TRY(fm_json_opt_int(&x, body, key, -1, 1 << 30, at));
    *out = (int)x;
    return FM_OK;
}

static fm_status read_seed(fm_sampling *s, const json_t *body)
{
    int64_t seed = -1;
    FM_TRY(fm_json_opt_int(&seed, body, "seed", 0, INT64_MAX, at));
    FM_TRY(fm_json_opt_int(&seed, body, "sampling_seed", 0, INT64_MAX, at));
    if (seed < 0) return FM_OK;
    s->has_seed = 1;
    s->seed     = (uint64_t)seed;
    return FM_OK;
}

static fm_status read_stop_ids(fm_sampling *s, const json_t *body)
{
    const json_t *ids = json_object_get(body, "stop_token_ids");
    if (!ids || json_is_null(ids)) return FM_OK;
    if (!json_is_array(ids) || json_array_size(ids) > FM_MAX_STOP_IDS)
        return fm_fail(FM_E_ARG, "%s: stop_token_ids: expected an array of at most %d ids", at.file,
                       FM_MAX_STOP_IDS);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        if (!json_is_integer(id) || json_integer_value(id) < 0 ||
            json_integer_value(id) > INT32_MAX)
            return fm_fail(FM_E_ARG, "%s: stop_token_ids[%zu] is no token id", at.file, i);
        s->stop_id[s->n_stop_id++] = (int32_t)json_integer_value(id);
    }
    return FM_OK;
}

static fm_status add_stop(fm_ask *ask, const json_t *word)
{
    if (!json_is_string(word))
        return fm_fail(FM_E_ARG, "%s: stop: expected a string or an array of strings", at.file);
    char **grown = realloc(ask->stop, (size_t)(ask->n_stop + 1) * sizeof *grown);
    if (!grown) return fm_fail(FM_E_OOM, "stop strings");
    ask->stop = grown;
    if (!(grown[ask->n_stop] = strdup(json_string_value(word))))
        return fm_fail(FM_E_OOM, "stop strings");
    ask->n_stop++;
    return FM_OK;
}

static fm_status read_stops(fm_ask *ask, const json_t *body)
{
    const json_t *stop = json_object_get(body, "stop");
    if (!stop || json_is_null(stop)) return FM_OK;
    if (!json_is_array(stop)) return add_stop(ask, stop);
    for (size_t i = 0; i < json_array_size(stop); i++)
        FM_TRY(add_stop(ask, json_array_get(stop, i)));
    return FM_OK;
}

static fm_status read_bias(fm_ask *ask, json_t *body)
{
    json_t *biases = json_object_get(body, "logit_bias");
    if (!biases || json_is_null(biases)) return FM_OK;
    const size_t n = json_object_size(biases);
    if (!json_is_object(biases) || n > FM_MAX_LOGIT_BIAS)
        return fm_fail(FM_E_ARG, "%s: logit_bias: expected an object of at most %d members",
                       at.file, FM_MAX_LOGIT_BIAS);
    if (!(ask->bias = calloc(n + 1, sizeof *ask->bias))) return fm_fail(FM_E_OOM, "logit_bias");

    const char *key;
    json_t     *value;
    json_object_foreach(biases, key, value)
    {
        char *end;
        errno         = 0;
        const long id = strtol(key, &end, 10);
        if (end == key || *end || errno || id < 0 || id > INT32_MAX || !json_is_number(value))
            return fm_fail(FM_E_ARG, "%s: logit_bias.%s: expected a token id and a number", at.file,
                           key);
        ask->bias[ask->sampling.n_bias++] =
            (fm_logit_bias){(int32_t)id, (float)json_number_value(value)};
    }
    ask->sampling.bias = ask->bias;
    return FM_OK;
}

/* clang-format off */
static const char *const known[] = {
    "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "frequency_penalty",
    "presence_penalty", "min_new_tokens", "max_new_tokens", "ignore_eos", "seed", "sampling_seed",
    "stop", "stop_token_ids", "no_stop_trim", "logit_bias", "n",
    "skip_special_tokens", "spaces_between_special_tokens", "stream_interval", /* no effect here */
};
/* clang-format on */

static fm_status check_keys(json_t *body)
{
    const char *key;
    json_t     *value;
    json_object_foreach(body, key, value)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof known[0] && strcmp(known[i], key)) i++;
        if (i == sizeof known / sizeof known[0])
            return fm_fail(FM_E_ARG, "%s: there is no sampling parameter \"%s\"", at.file, key);
    }
    return FM_OK;
}

static fm_status merge(fm_ask *ask, json_t *body)
{
    fm_sampling *s = &ask->sampling;
    if (!json_is_object(body))
        return fm_fail(FM_E_ARG, "%s: expected an object, found %s", at.file, fm_json_kind(body));
    FM_TRY(check_keys(body));
    FM_TRY(read_real(&s->temperature, body, "temperature"));
    FM_TRY(read_real(&s->top_p, body, "top_p"));
    FM_TRY(read_int(&s->top_k, body, "top_k"));
    FM_TRY(read_real(&s->min_p, body, "min_p"));
    FM_TRY(read_real(&s->repetition_penalty, body, "repetition_penalty"));
    FM_TRY(read_real(&s->frequency_penalty, body, "frequency_penalty"));
    FM_TRY(read_real(&s->presence_penalty, body, "presence_penalty"));
    FM_TRY(read_int(&s->min_new_tokens, body, "min_new_tokens"));
    FM_TRY(fm_json_opt_bool(&s->ignore_eos, body, "ignore_eos", at));
    FM_TRY(fm_json_opt_bool(&ask->keep_stop, body, "no_stop_trim", at));
    FM_TRY(read_seed(s, body));
    FM_TRY(read_stop_ids(s, body));
    FM_TRY(read_stops(ask, body));
    FM_TRY(read_bias(ask, body));

    int64_t n = 1;
    FM_TRY(fm_json_opt_int(&n, body, "n", 1, 1024, at));
    ask->n_sample = (int)n;

    const json_t *limit = json_object_get(body, "max_new_tokens");
    ask->set_max_new    = limit && !json_is_null(limit);
    return read_int(&s->max_new_tokens, body, "max_new_tokens");
}

fm_status fm_bench_ask_init(fm_ask *ask, const fm_bench_options *b)
{
    *ask                      = (fm_ask){.sampling = fm_sampling_default(), .n_sample = 1};
    ask->sampling.temperature = 0;
    ask->sampling.ignore_eos  = !b->disable_ignore_eos;
    ask->sampling.logprobs    = b->return_logprob;
    ask->prompt_logprobs      = b->return_logprob && b->logprob_start_len >= 0;
    ask->logprob_from         = (int32_t)(ask->prompt_logprobs ? b->logprob_start_len : 0);
    if (!b->extra_request_body || !*b->extra_request_body) return FM_OK;

    json_t *body = NULL;
    FM_TRY(fm_json_parse(&body, b->extra_request_body, strlen(b->extra_request_body), at.file));
    fm_status rc = merge(ask, body);
    if (rc == FM_OK && fm_sampling_check(&ask->sampling, INT_MAX) != FM_OK) {
        char why[400]; /* the model's vocabulary is looked at when there is one */
        snprintf(why, sizeof why, "%s", fm_why());
        rc = fm_fail(FM_E_ARG, "%s: %s", at.file, why);
    }
    json_decref(body);
    return rc;
}

void fm_bench_ask_fini(fm_ask *ask)
{
    for (int i = 0; i < ask->n_stop; i++) free(ask->stop[i]);
    free(ask->stop);
    free(ask->bias);
    *ask = (fm_ask){0};
}
