/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_config.json: which tokens begin and end a text, whether raw text
 * gets a BOS, and the chat template. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "llm/text/tokenizer_internal.h"

#define DEFAULT_BOS "<｜begin▁of▁sentence｜>"
#define DEFAULT_EOS "<｜end▁of▁sentence｜>"

/* A token is given by its text, or by an object that has the text as content. */
static fm_status read_token(int32_t *out, const fm_tokenizer *t, const json_t *config,
                            const char *key, fm_json_at at)
{
    const json_t *v = json_object_get(config, key);
    if (!v || json_is_null(v)) return FM_OK;
    const char *text = json_string_value(json_is_object(v) ? json_object_get(v, "content") : v);
    if (!text)
        return fm_fail(FM_E_FORMAT, "%s: %s: expected a string or an object with content, found %s",
                       at.file, key, fm_json_kind(v));
    int32_t id = fm_token_id(t, text);
    if (id < 0) id = fm__vocab_find(&t->vocab, text, strlen(text));
    if (id < 0)
        return fm_fail(FM_E_FORMAT, "%s: %s \"%.60s\" is not in the vocabulary", at.file, key,
                       text);
    *out = id;
    return FM_OK;
}

/* A template, or a list of {name, template}: then the one named "default". */
static const char *find_template(const json_t *v)
{
    if (!json_is_array(v)) return json_string_value(v);
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *entry = json_array_get(v, i);
        const char   *name  = json_string_value(json_object_get(entry, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(entry, "template"));
    }
    return json_string_value(json_object_get(json_array_get(v, 0), "template"));
}

static fm_status read_template(fm_tokenizer *t, const json_t *config, fm_json_at at)
{
    const json_t *v = json_object_get(config, "chat_template");
    if (!v || json_is_null(v)) return FM_OK;
    const char *text = find_template(v);
    if (!text)
        return fm_fail(FM_E_FORMAT, "%s: chat_template: expected a string or a list of templates",
                       at.file);
    if (!(t->chat_template = strdup(text))) return fm_fail(FM_E_OOM, "chat template");
    return FM_OK;
}

fm_status fm__tokenizer_read_config(fm_tokenizer *t, const json_t *config, const char *file)
{
    const fm_json_at at = {file, ""};
    t->bos              = fm_token_id(t, DEFAULT_BOS);
    t->eos              = fm_token_id(t, DEFAULT_EOS);
    if (!config) return FM_OK;
    if (!json_is_object(config))
        return fm_fail(FM_E_FORMAT, "%s: expected an object, found %s", file, fm_json_kind(config));

    /* Unless told otherwise, a Llama tokenizer puts a BOS in front. */
    const char *class_name = "";
    FM_TRY(fm_json_opt_string(&class_name, config, "tokenizer_class", at));
    t->adds_bos = strncmp(class_name, "LlamaTokenizer", 14) == 0;
    FM_TRY(fm_json_opt_bool(&t->adds_bos, config, "add_bos_token", at));
    FM_TRY(read_token(&t->bos, t, config, "bos_token", at));
    FM_TRY(read_token(&t->eos, t, config, "eos_token", at));
    return read_template(t, config, at);
}
