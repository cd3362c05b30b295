/* SPDX-License-Identifier: Apache-2.0 */
/* Ollama's /api/chat and /api/generate in the words of a chat or a completion. */
#include <string.h>

#include "llm/serve/read/ask.h"
#include "llm/serve/read/unsupported.h"

enum { RAW_TOKENS = 128 }; /* of a raw prompt whose options do not say */

/* options.* by OpenAI's names; num_predict below 1 is no limit. */
static fm_status copy_options(json_t *to, const json_t *body)
{
    static const char *const names[][2] = {
        {"temperature", "temperature"},
        {"top_p", "top_p"},
        {"top_k", "top_k"},
        {"min_p", "min_p"},
        {"seed", "seed"},
        {"stop", "stop"},
        {"repeat_penalty", "repetition_penalty"},
        {"presence_penalty", "presence_penalty"},
        {"frequency_penalty", "frequency_penalty"},
    };
    const json_t *options = json_object_get(body, "options");
    json_t       *most    = json_object_get(options, "num_predict");
    if (options && !json_is_object(options) && !json_is_null(options))
        return fm_fail(FM_E_FORMAT, "request: options: expected an object, found %s",
                       fm_json_kind(options));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *v = json_object_get(options, names[i][0]);
        if (v) json_object_set(to, names[i][1], v);
    }
    if (json_number_value(most) >= 1 || (most && !json_is_number(most)))
        json_object_set(to, "max_tokens", most);
    return FM_OK;
}

static fm_status copy_format(json_t *to, const json_t *body)
{
    json_t *format = json_object_get(body, "format");
    if (!format || json_is_null(format) || (json_is_string(format) && !json_string_length(format)))
        return FM_OK;
    if (json_is_object(format)) {
        json_object_set_new(to, "response_format",
                            json_pack("{s:s, s:O}", "type", "json_object", "schema", format));
        return FM_OK;
    }
    if (!json_is_string(format) || strcmp(json_string_value(format), "json"))
        return fm_fail(FM_E_FORMAT, "request: format: expected \"json\" or a schema");
    json_object_set_new(to, "response_format", json_pack("{s:s}", "type", "json_object"));
    return FM_OK;
}

/* true, false, or an effort. */
static void copy_think(json_t *to, const json_t *body)
{
    json_t *think = json_object_get(body, "think");
    if (json_is_boolean(think))
        json_object_set_new(to, "reasoning_effort",
                            json_string(json_is_true(think) ? "medium" : "none"));
    else if (json_is_string(think))
        json_object_set(to, "reasoning_effort", think);
}

/* What loads a model in Ollama: a request without a prompt.  Here it is loaded already. */
static int is_load(const json_t *body, const char *field)
{
    const json_t *v = json_object_get(body, field);
    return !v || json_is_null(v) || (json_is_string(v) && !json_string_length(v)) ||
           (json_is_array(v) && !json_array_size(v));
}

static fm_status read_load(fm__ask *a, const json_t *to, const fm__reader *r)
{
    a->is_load = 1;
    return fm__read_shared(a, to, r->facts);
}

static fm_status copy_shared(json_t *to, const json_t *body)
{
    static const char *const same[] = {"model", "tools", "rid", "priority"};
    json_t                  *stream = json_object_get(body, "stream");
    FM_TRY(fm__refuse_unsupported(body));
    if (json_array_size(json_object_get(body, "images")))
        return fm_fail(FM_E_NOSUP, "request: images: not supported; only text is understood");
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        json_t *v = json_object_get(body, same[i]);
        if (v) json_object_set(to, same[i], v);
    }
    if (stream && !json_is_null(stream))
        json_object_set(to, "stream", stream);
    else
        json_object_set_new(to, "stream", json_true());
    copy_think(to, body);
    FM_TRY(copy_options(to, body));
    return copy_format(to, body);
}

static fm_status convert_chat(json_t *to, const json_t *body)
{
    size_t  i;
    json_t *m, *messages = json_object_get(body, "messages");
    json_array_foreach (messages, i, m) {
        if (json_array_size(json_object_get(m, "images")))
            return fm_fail(FM_E_NOSUP, "request: messages[%zu].images: not supported", i);
    }
    if (messages) json_object_set(to, "messages", messages);
    return copy_shared(to, body);
}

/* A prompt is a user's message, unless it is raw. */
static fm_status convert_prompt(json_t *to, const json_t *body, int is_raw)
{
    json_t *prompt = json_object_get(body, "prompt"), *system = json_object_get(body, "system"),
           *suffix = json_object_get(body, "suffix"), *messages = json_array();
    if (is_raw || suffix) {
        json_decref(messages);
        json_object_set(to, "prompt", prompt);
        if (suffix) json_object_set(to, "suffix", suffix);
        json_object_set_new(to, "max_tokens", json_integer(RAW_TOKENS));
        return copy_shared(to, body);
    }
    if (system)
        json_array_append_new(messages,
                              json_pack("{s:s, s:O}", "role", "system", "content", system));
    json_array_append_new(messages, json_pack("{s:s, s:O*}", "role", "user", "content", prompt));
    json_object_set_new(to, "messages", messages);
    return copy_shared(to, body);
}

fm_status fm__read_ollama_chat(fm__ask *a, const json_t *body, const fm__reader *r)
{
    json_t   *chat  = json_object();
    fm_status rc    = convert_chat(chat, body);
    a->format_field = "format";
    if (rc == FM_OK)
        rc = is_load(body, "messages") ? read_load(a, chat, r) : fm__read_chat(a, chat, r);
    json_decref(chat);
    return rc;
}

fm_status fm__read_ollama_generate(fm__ask *a, const json_t *body, const fm__reader *r)
{
    json_t   *to     = json_object();
    int       is_raw = 0;
    fm_status rc     = fm_json_opt_bool(&is_raw, body, "raw", fm__at);
    if (rc == FM_OK) rc = convert_prompt(to, body, is_raw);
    a->format_field = "format";
    if (rc == FM_OK && is_load(body, "prompt"))
        rc = read_load(a, to, r);
    else if (rc == FM_OK)
        rc = json_object_get(to, "messages") ? fm__read_chat(a, to, r)
                                             : fm__read_completion(a, to, r);
    json_decref(to);
    return rc;
}
