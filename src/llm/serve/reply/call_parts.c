/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of replies that more than one dialect has. */
#include "llm/serve/loop/call.h"
#include "llm/serve/reply/write.h"

fm__usage fm__call_usage(const fm__call *c)
{
    fm__usage u = {0};
    for (int i = 0; i < c->n_answer; i++) {
        const fm__answer *a = &c->answer[i];
        if (a->index == 0) u.prompt += a->n_prompt; /* once, however many answers it has */
        if (a->index == 0) u.cached += a->n_cached;
        u.output += a->n_output;
        u.thought += a->n_thought;
    }
    return u;
}

void fm__put_usage(fm_str *out, const fm__call *c)
{
    const fm__usage u = fm__call_usage(c);
    fm_str_printf(out,
                  "{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
                  "\"reasoning_tokens\":%lld,\"prompt_tokens_details\":{\"cached_tokens\":%lld},"
                  "\"completion_tokens_details\":{\"reasoning_tokens\":%lld}}",
                  (long long)u.prompt, (long long)u.output, (long long)(u.prompt + u.output),
                  (long long)u.thought, (long long)u.cached, (long long)u.thought);
}

void fm__open_choices(fm_str *out, const fm__call *c, const char *object)
{
    fm_str_puts(out, "{\"id\":");
    fm__put_word(out, c->name);
    fm_str_printf(out, ",\"object\":\"%s\",\"created\":%lld,\"model\":", object,
                  (long long)c->created);
    fm__put_word(out, c->ask->model);
    fm_str_puts(out, ",\"choices\":[");
}

void fm__end_choice(fm_str *out, const fm__answer *a, const char *reason)
{
    fm_str_puts(out, ",\"finish_reason\":");
    fm__put_word(out, reason);
    fm_str_puts(out, ",\"matched_stop\":");
    if (reason) fm__put_matched(out, a);
    else fm_str_puts(out, "null");
    fm_str_puts(out, "}");
}

void fm__open_chunk(fm_str *out, const fm__call *c, const char *object)
{
    fm_str_puts(out, "data: ");
    fm__open_choices(out, c, object);
}

void fm__close_chunk(fm_str *out, const fm__call *c)
{
    fm_str_puts(out, "]");
    if (c->ask->continuous_usage) {
        fm_str_puts(out, ",\"usage\":");
        fm__put_usage(out, c);
    } else if (c->ask->include_usage) {
        fm_str_puts(out, ",\"usage\":null");
    }
    fm_str_puts(out, "}\n\n");
}

void fm__end_choices(fm_str *out, const fm__call *c, const char *object)
{
    if (c->ask->include_usage) {
        fm__open_chunk(out, c, object);
        fm_str_puts(out, "],\"usage\":");
        fm__put_usage(out, c);
        fm_str_puts(out, "}\n\n");
    }
    fm_str_puts(out, "data: [DONE]\n\n");
}

void fm__put_choices(fm_str *out, fm__call *c,
                     void (*put)(fm_str *out, const fm__call *c, fm__answer *a))
{
    for (int i = 0; i < c->n_answer; i++) {
        if (i) fm_str_puts(out, ",");
        put(out, c, &c->answer[i]);
    }
    fm_str_puts(out, "],\"usage\":");
    fm__put_usage(out, c);
    fm_str_puts(out, ",\"metadata\":{\"weight_version\":\"default\"}}");
}

void fm__put_token(fm_str *out, const fm__call *c, int32_t id, double logprob)
{
    size_t      n    = 0;
    const char *text = c->tokenizer ? fm_token_bytes(c->tokenizer, id, &n) : "";
    fm_str_puts(out, "{\"token\":");
    fm__put_text(out, text, n);
    fm_str_puts(out, ",\"bytes\":");
    fm__put_bytes(out, text, n);
    fm_str_puts(out, ",\"logprob\":");
    fm__put_number(out, logprob);
}

void fm__put_matched(fm_str *out, const fm__answer *a)
{
    const fm__params *p = fm__ask_params(a->ask, a->prompt);
    if (a->matched_stop >= 0 && a->matched_stop < p->n_stop)
        fm__put_word(out, p->stop[a->matched_stop]);
    else if (a->matched_id >= 0) fm_str_printf(out, "%d", (int)a->matched_id);
    else fm_str_puts(out, "null");
}

void fm__put_arguments(fm_str *out, const fm_str *arguments)
{
    json_t *v = NULL;
    if (arguments->len &&
        fm_json_parse(&v, arguments->text, arguments->len, "arguments") == FM_OK &&
        json_is_object(v)) {
        fm_str_add(out, arguments->text, arguments->len);
    } else if (arguments->len) {
        fm_str_puts(out, "{\"arguments\":");
        fm__put_text(out, arguments->text, arguments->len);
        fm_str_puts(out, "}");
    } else {
        fm_str_puts(out, "{}");
    }
    json_decref(v);
}

void fm__put_late_error(fm_str *out, int status, const char *why)
{
    fm_str_puts(out, "data: ");
    fm__put_error(out, status, why);
    fm_str_puts(out, "\n\ndata: [DONE]\n\n");
}
