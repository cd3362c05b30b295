/* SPDX-License-Identifier: Apache-2.0 */
/* The fields all dialects have, under their various names. */
#define _POSIX_C_SOURCE 200809L
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/serve/read/ask.h"
#include "llm/serve/read/unsupported.h"

const fm__field_names fm__openai_names = {"max_completion_tokens", "max_tokens", "min_tokens",
                                          "seed", "stop"};
const fm__field_names fm__native_names = {"max_new_tokens", NULL, "min_new_tokens", "sampling_seed",
                                          "stop"};

fm_status fm__opt_text(const char **out, const json_t *o, const char *key)
{
    const char *text = NULL;
    FM_TRY(fm_json_opt_string(&text, o, key, fm__at));
    if (!text) return FM_OK;
    if (strlen(text) != json_string_length(json_object_get(o, key)))
        return fm_fail(FM_E_FORMAT, "request: %s contains a NUL character", key);
    *out = text;
    return FM_OK;
}

static fm_status read_real(float *out, const json_t *o, const char *key)
{
    double x = *out;
    FM_TRY(fm_json_opt_real(&x, o, key, -FLT_MAX, FLT_MAX, fm__at));
    *out = (float)x;
    return FM_OK;
}

static fm_status read_int(int *out, const json_t *o, const char *key, int64_t lo, int64_t hi)
{
    int64_t i = *out;
    FM_TRY(fm_json_opt_int(&i, o, key, lo, hi, fm__at));
    *out = (int)i;
    return FM_OK;
}

static fm_status add_stop(fm__params *p, const json_t *v)
{
    if (!json_is_string(v))
        return fm_fail(FM_E_FORMAT,
                       "request: stop: expected a string or a list of strings, found %s",
                       fm_json_kind(v));
    if (strlen(json_string_value(v)) != json_string_length(v))
        return fm_fail(FM_E_FORMAT, "request: stop contains a NUL character");
    if (!json_string_length(v)) return FM_OK;
    if (p->n_stop == FM__MAX_STOPS)
        return fm_fail(FM_E_FORMAT, "request: stop has more than %d strings", FM__MAX_STOPS);
    if (!p->stop) p->stop = calloc(FM__MAX_STOPS, sizeof *p->stop);
    char *copy = p->stop ? strdup(json_string_value(v)) : NULL;
    if (!copy) return fm_fail(FM_E_OOM, "request");
    p->stop[p->n_stop++] = copy;
    return FM_OK;
}

static fm_status read_stops(fm__params *p, const json_t *v)
{
    size_t        i;
    const json_t *item;
    if (!v || json_is_null(v)) return FM_OK;
    if (!json_is_array(v)) return add_stop(p, v);
    json_array_foreach (v, i, item) FM_TRY(add_stop(p, item));
    return FM_OK;
}

static fm_status read_stop_ids(fm_sampling *s, const json_t *v)
{
    size_t        i;
    const json_t *item;
    if (!v || json_is_null(v)) return FM_OK;
    if (!json_is_array(v))
        return fm_fail(FM_E_FORMAT, "request: stop_token_ids: expected a list, found %s",
                       fm_json_kind(v));
    if (json_array_size(v) > FM_MAX_STOP_IDS)
        return fm_fail(FM_E_FORMAT, "request: stop_token_ids has more than %d ids",
                       FM_MAX_STOP_IDS);
    json_array_foreach (v, i, item) {
        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) > INT32_MAX)
            return fm_fail(FM_E_FORMAT, "request: stop_token_ids[%zu] is no token id", i);
        s->stop_id[s->n_stop_id++] = (int32_t)json_integer_value(item);
    }
    return FM_OK;
}

/* {"123": -100, …} */
static fm_status read_bias(fm__params *p, json_t *v)
{
    const char *key;
    json_t     *item;
    if (!v || json_is_null(v)) return FM_OK;
    if (!json_is_object(v))
        return fm_fail(FM_E_FORMAT, "request: logit_bias: expected an object, found %s",
                       fm_json_kind(v));
    if (json_object_size(v) > FM_MAX_LOGIT_BIAS)
        return fm_fail(FM_E_FORMAT, "request: logit_bias has more than %d entries",
                       FM_MAX_LOGIT_BIAS);
    p->bias = calloc(json_object_size(v) + 1, sizeof *p->bias);
    if (!p->bias) return fm_fail(FM_E_OOM, "request");
    json_object_foreach (v, key, item) {
        char      *end;
        const long id = strtol(key, &end, 10);
        if (!*key || *end || id < 0 || id > INT32_MAX || !json_is_number(item))
            return fm_fail(FM_E_FORMAT,
                           "request: logit_bias: \"%.40s\" is no pair of a token id and a number",
                           key);
        p->bias[p->sampling.n_bias++] =
            (fm_logit_bias){(int32_t)id, (float)json_number_value(item)};
    }
    p->sampling.bias = p->bias;
    return FM_OK;
}

static fm_status read_seed(fm_sampling *s, const json_t *o, const char *key)
{
    int64_t       seed = 0;
    const json_t *v    = json_object_get(o, key);
    if (!v || json_is_null(v)) return FM_OK;
    s->has_seed = 1;
    const double x =
        json_is_real(v) ? json_real_value(v) : 0; /* the reader's form of 2^63 and more */
    if (x >= 0x1p63 && x <= 0x1p64) {
        s->seed = x < 0x1p64 ? (uint64_t)x : UINT64_MAX;
        return FM_OK;
    }
    FM_TRY(fm_json_int(&seed, o, key, INT64_MIN, INT64_MAX, fm__at));
    s->seed = (uint64_t)seed;
    return FM_OK;
}

static fm_status read_lengths(fm__params *p, const json_t *o, const fm__field_names *names,
                              const fm__facts *facts, int n_default)
{
    int max = -1;
    if (names->max_tokens_old) FM_TRY(read_int(&max, o, names->max_tokens_old, 0, INT32_MAX));
    FM_TRY(read_int(&max, o, names->max_tokens, 0, INT32_MAX));
    p->max_given               = max >= 0;
    p->sampling.max_new_tokens = max >= 0 ? max : n_default ? n_default : facts->context;
    FM_TRY(read_int(&p->sampling.min_new_tokens, o, names->min_tokens, 0, INT32_MAX));
    if (p->sampling.min_new_tokens <= p->sampling.max_new_tokens) return FM_OK;
    if (p->max_given)
        return fm_fail(FM_E_ARG, "request: %s is %d, more than the %d tokens the answer may have",
                       names->min_tokens, p->sampling.min_new_tokens, p->sampling.max_new_tokens);
    p->sampling.max_new_tokens = p->sampling.min_new_tokens;
    return FM_OK;
}

fm_status fm__read_params(fm__params *p, const json_t *o, const fm__field_names *names,
                          const fm__facts *facts, int n_default)
{
    fm_sampling *s            = &p->sampling;
    int          skip_special = 1;
    *s                        = facts->defaults;
    FM_TRY(read_real(&s->temperature, o, "temperature"));
    FM_TRY(read_real(&s->top_p, o, "top_p"));
    FM_TRY(read_int(&s->top_k, o, "top_k", -1, INT32_MAX));
    if (s->top_k == 0) s->top_k = -1;
    FM_TRY(read_real(&s->min_p, o, "min_p"));
    FM_TRY(read_real(&s->repetition_penalty, o, "repetition_penalty"));
    FM_TRY(read_real(&s->frequency_penalty, o, "frequency_penalty"));
    FM_TRY(read_real(&s->presence_penalty, o, "presence_penalty"));
    FM_TRY(read_seed(s, o, names->seed));
    FM_TRY(read_lengths(p, o, names, facts, n_default));
    FM_TRY(fm_json_opt_bool(&s->ignore_eos, o, "ignore_eos", fm__at));
    FM_TRY(fm_json_opt_bool(&p->keep_stop, o, "no_stop_trim", fm__at));
    FM_TRY(fm_json_opt_bool(&skip_special, o, "skip_special_tokens", fm__at));
    p->keep_special = !skip_special;
    FM_TRY(read_stops(p, json_object_get(o, names->stop)));
    FM_TRY(read_stop_ids(s, json_object_get(o, "stop_token_ids")));
    return read_bias(p, json_object_get(o, "logit_bias"));
}

fm_status fm__read_n(fm__ask *a, const json_t *o)
{
    return read_int(&a->n, o, "n", 1, 128);
}

fm_status fm__read_shared(fm__ask *a, const json_t *body, const fm__facts *facts)
{
    const char *model = facts->model, *rid = NULL;
    FM_TRY(fm__refuse_unsupported(body));
    FM_TRY(fm__opt_text(&model, body, "model"));
    snprintf(a->model, sizeof a->model, "%s", model);
    if (strlen(model) >= sizeof a->model)
        return fm_fail(FM_E_FORMAT, "request: model is too long a name");
    FM_TRY(fm_json_opt_bool(&a->stream, body, "stream", fm__at));
    FM_TRY(read_int(&a->priority, body, "priority", -1000000000, 1000000000));
    const json_t *options = json_object_get(body, "stream_options");
    if (options && !json_is_null(options)) {
        const fm_json_at at = {"request", "stream_options."};
        if (!json_is_object(options))
            return fm_fail(FM_E_FORMAT, "request: stream_options: expected an object, found %s",
                           fm_json_kind(options));
        FM_TRY(fm_json_opt_bool(&a->include_usage, options, "include_usage", at));
        FM_TRY(fm_json_opt_bool(&a->continuous_usage, options, "continuous_usage_stats", at));
    }
    if (json_is_array(json_object_get(body, "rid")))
        return FM_OK; /* a list: the dialect's affair */
    FM_TRY(fm__opt_text(&rid, body, "rid"));
    if (rid && (!*rid || strlen(rid) >= FM__MAX_NAME))
        return fm_fail(FM_E_FORMAT, "request: rid is empty or too long");
    if (rid && !(a->rid = strdup(rid))) return fm_fail(FM_E_OOM, "request");
    return FM_OK;
}
