/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints that need words but no model: tokenise, detokenise, the parsers. */
#include <string.h>

#include "llm/serve/loop/workers.h"
#include "llm/serve/reply/write.h"
#include "llm/text/detokenize.h"

static fm_status need_tokenizer(const fm__reader *r)
{
    return r->facts->tokenizer ? FM_OK : fm_fail(FM_E_ARG, "request: this model has no tokenizer");
}

static void put_ids(fm_str *out, const fm_ids *ids)
{
    fm_str_puts(out, "[");
    for (size_t i = 0; i < ids->n; i++) fm_str_printf(out, i ? ",%d" : "%d", (int)ids->id[i]);
    fm_str_puts(out, "]");
}

static fm_status encode_one(fm_ids *ids, const json_t *v, int flags, const fm__reader *r)
{
    if (!json_is_string(v))
        return fm_fail(FM_E_FORMAT, "request: prompt: expected a string, found %s",
                       fm_json_kind(v));
    return fm_encode(r->facts->tokenizer, r->scratch, json_string_value(v), json_string_length(v),
                     flags, ids);
}

/* The prompt a chat would become. */
static fm_status encode_chat(fm_ids *ids, const json_t *body, const fm__reader *r)
{
    fm__ask  *ask  = fm__ask_create();
    fm_str    text = {0};
    fm_status rc   = fm__render_chat(ask, body, r, &text);
    if (rc == FM_OK) rc = fm_encode(r->facts->tokenizer, r->scratch, text.text, text.len, 0, ids);
    fm_str_fini(&text);
    fm__ask_release(ask);
    return rc;
}

static fm_status tokenize_list(fm_str *reply, const json_t *list, int flags, const fm__reader *r)
{
    size_t        i;
    const json_t *v;
    fm_str        counts = {0};
    fm_status     rc     = FM_OK;
    fm_str_puts(reply, "{\"tokens\":[");
    json_array_foreach (list, i, v) {
        fm_ids ids = {0};
        rc         = encode_one(&ids, v, flags, r);
        if (i) fm_str_puts(reply, ",");
        put_ids(reply, &ids);
        fm_str_printf(&counts, i ? ",%zu" : "%zu", ids.n);
        fm_ids_fini(&ids);
        if (rc != FM_OK) break;
    }
    fm_str_printf(reply, "],\"count\":[%s],\"max_model_len\":%d}", counts.text ? counts.text : "",
                  r->facts->context);
    fm_str_fini(&counts);
    return rc;
}

fm_status fm__tokenize(fm_str *reply, const json_t *body, const fm__reader *r)
{
    int           add    = 1;
    fm_ids        ids    = {0};
    const json_t *prompt = json_object_get(body, "prompt");
    FM_TRY(need_tokenizer(r));
    FM_TRY(fm_json_opt_bool(&add, body, "add_special_tokens", fm__at));
    const int flags = add ? FM_ENCODE_BOS : 0;
    if (json_is_array(prompt)) return tokenize_list(reply, prompt, flags, r);
    const fm_status rc = json_object_get(body, "messages") && !prompt
                             ? encode_chat(&ids, body, r)
                             : encode_one(&ids, prompt, flags, r);
    if (rc == FM_OK) {
        fm_str_puts(reply, "{\"tokens\":");
        put_ids(reply, &ids);
        fm_str_printf(reply, ",\"count\":%zu,\"max_model_len\":%d}", ids.n, r->facts->context);
    }
    fm_ids_fini(&ids);
    return rc;
}

static fm_status put_words(fm_str *reply, const json_t *list, int keep_special, const fm__reader *r)
{
    size_t         i;
    const json_t  *v;
    fm_str         text = {0};
    fm_detokenizer d    = fm_detokenizer_begin(r->facts->tokenizer, keep_special);
    fm_status      rc   = FM_OK;
    json_array_foreach (list, i, v) {
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) >= r->facts->vocab) {
            rc = fm_fail(FM_E_FORMAT, "request: tokens[%zu] is no token of this model", i);
            break;
        }
        fm_detokenizer_push(&d, (int32_t)json_integer_value(v), &text);
    }
    fm_detokenizer_end(&d, &text);
    fm__put_text(reply, text.text ? text.text : "", text.len);
    fm_str_fini(&text);
    return rc;
}

fm_status fm__detokenize(fm_str *reply, const json_t *body, const fm__reader *r)
{
    int           skip = 1;
    size_t        i;
    const json_t *list = json_object_get(body, "tokens"), *v;
    FM_TRY(need_tokenizer(r));
    FM_TRY(fm_json_opt_bool(&skip, body, "skip_special_tokens", fm__at));
    if (!json_is_array(list))
        return fm_fail(FM_E_FORMAT, "request: tokens: expected a list, found %s",
                       fm_json_kind(list));
    fm_str_puts(reply, "{\"text\":");
    if (!json_is_array(json_array_get(list, 0))) {
        FM_TRY(put_words(reply, list, !skip, r));
    } else {
        fm_str_puts(reply, "[");
        json_array_foreach (list, i, v) {
            if (i) fm_str_puts(reply, ",");
            if (!json_is_array(v))
                return fm_fail(FM_E_FORMAT, "request: tokens[%zu]: expected a list, found %s", i,
                               fm_json_kind(v));
            FM_TRY(put_words(reply, v, !skip, r));
        }
        fm_str_puts(reply, "]");
    }
    fm_str_puts(reply, "}");
    return FM_OK;
}

fm_status fm__count_tokens(fm_str *reply, const json_t *body, const fm__reader *r)
{
    json_t *chat = NULL;
    fm_ids  ids  = {0};
    FM_TRY(need_tokenizer(r));
    FM_TRY(fm__chat_of_messages(&chat, body));
    const fm_status rc = encode_chat(&ids, chat, r);
    if (rc == FM_OK) fm_str_printf(reply, "{\"input_tokens\":%zu}", ids.n);
    fm_ids_fini(&ids);
    json_decref(chat);
    return rc;
}

typedef struct {
    fm_str text, calls;
    int    open; /* inside a call's arguments */
} parsed;

static void close_call(parsed *p)
{
    if (p->open) fm_str_puts(&p->calls, "\"}");
    p->open = 0;
}

static void take_piece(void *ctx, fm_tool_piece kind, int index, const char *id, const char *text,
                       size_t len)
{
    parsed *p = ctx;
    (void)id;
    if (kind == FM_TOOL_TEXT) {
        fm_str_add(&p->text, text, len);
    } else if (kind == FM_TOOL_NAME) {
        close_call(p);
        fm_str_printf(&p->calls, "%s{\"tool_index\":%d,\"name\":", index ? "," : "", index);
        fm__put_text(&p->calls, text, len);
        fm_str_puts(&p->calls, ",\"parameters\":\"");
        p->open = 1;
    } else {
        fm__put_escaped(&p->calls, text, len);
    }
}

fm_status fm__parse_function_call(fm_str *reply, const json_t *body, const fm__reader *r)
{
    const char *text = NULL;
    parsed      p    = {0};
    FM_TRY(fm__opt_text(&text, body, "text"));
    if (!text) return fm_fail(FM_E_FORMAT, "request: text is missing");
    if (!r->facts->has_tools)
        return fm_fail(FM_E_ARG, "request: this model has no form for tool calls");
    fm_tool_calls t;
    fm_tool_calls_init(&t, r->facts->tool_style, take_piece, &p);
    fm_tool_calls_push(&t, text, strlen(text));
    fm_tool_calls_end(&t);
    close_call(&p);
    fm_str_puts(reply, "{\"normal_text\":");
    fm__put_text(reply, p.text.text ? p.text.text : "", p.text.len);
    fm_str_printf(reply, ",\"calls\":[%s]}", p.calls.text ? p.calls.text : "");
    fm_tool_calls_fini(&t);
    fm_str_fini(&p.text);
    fm_str_fini(&p.calls);
    return FM_OK;
}

fm_status fm__separate_reasoning(fm_str *reply, const json_t *body, const fm__reader *r)
{
    const char  *text    = NULL;
    fm_str       thought = {0}, said = {0};
    fm_reasoning split;
    FM_TRY(fm__opt_text(&text, body, "text"));
    if (!text) return fm_fail(FM_E_FORMAT, "request: text is missing");
    fm_reasoning_init(&split, r->facts->reasoning, NULL);
    fm_reasoning_push(&split, text, strlen(text), &thought, &said);
    fm_reasoning_end(&split, &thought, &said);
    fm_str_puts(reply, "{\"reasoning_text\":");
    fm__put_text(reply, thought.text ? thought.text : "", thought.len);
    fm_str_puts(reply, ",\"text\":");
    fm__put_text(reply, said.text ? said.text : "", said.len);
    fm_str_puts(reply, "}");
    fm_reasoning_fini(&split);
    fm_str_fini(&thought);
    fm_str_fini(&said);
    return FM_OK;
}
