/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/chat/completions: chunks, or the whole. */
#include "llm/serve/loop/call.h"
#include "llm/serve/reply/write.h"

static void put_logprobs(fm_str *out, const fm__call *c, fm__answer *a)
{
    if (!a->sampling->logprobs || !a->n_lp) {
        fm_str_puts(out, "null");
        return;
    }
    fm_str_puts(out, "{\"content\":[");
    for (size_t i = 0; i < a->n_lp; i++) {
        if (i) fm_str_puts(out, ",");
        fm__put_token(out, c, a->lp[i].id, a->lp[i].logprob);
        fm_str_puts(out, ",\"top_logprobs\":[");
        for (int k = 0; k < a->lp[i].n_top; k++) {
            const fm_top_logprob *t = &a->top[a->lp[i].top_at + (size_t)k];
            if (k) fm_str_puts(out, ",");
            fm__put_token(out, c, t->id, t->logprob);
            fm_str_puts(out, "}");
        }
        fm_str_puts(out, "]}");
    }
    fm_str_puts(out, "],\"refusal\":null}");
    fm__answer_clear_logprobs(a);
}

static const char chunk[] = "chat.completion.chunk";

/* A chunk is begin_delta, the members of the delta, end_delta. */
static void begin_delta(fm_str *out, const fm__call *c, const fm__answer *a)
{
    fm__open_chunk(out, c, chunk);
    fm_str_printf(out, "{\"index\":%d,\"delta\":{", a->slot);
}

static void end_delta(fm_str *out, const fm__call *c, fm__answer *a, int last)
{
    fm_str_puts(out, "},\"logprobs\":");
    put_logprobs(out, c, a);
    fm__end_choice(out, a, last ? fm__answer_finish_name(a) : NULL);
    fm__close_chunk(out, c);
}

static void say_role(fm_str *out, const fm__call *c, const fm__answer *a)
{
    fm__open_chunk(out, c, chunk);
    fm_str_printf(out,
                  "{\"index\":%d,\"delta\":{\"role\":\"assistant\",\"content\":\"\",\"reasoning_"
                  "content\":null},"
                  "\"logprobs\":null,\"finish_reason\":null,\"matched_stop\":null}",
                  a->slot);
    fm__close_chunk(out, c);
}

static void say_thought(fm_str *out, const fm__call *c, fm__answer *a)
{
    const int whole = a->reasoning.at == FM_REASONING_AFTER || a->finish != FM_FINISH_NONE;
    if (!a->thought.len || (c->ask->one_thought && !whole)) return;
    begin_delta(out, c, a);
    fm_str_puts(out, "\"content\":null,\"reasoning_content\":");
    fm__put_text(out, a->thought.text, a->thought.len);
    end_delta(out, c, a, 0);
    fm_str_clear(&a->thought);
}

static void say_text(fm_str *out, const fm__call *c, fm__answer *a)
{
    if (!a->said.len) return;
    begin_delta(out, c, a);
    fm_str_puts(out, "\"content\":");
    fm__put_text(out, a->said.text, a->said.len);
    fm_str_puts(out, ",\"reasoning_content\":null");
    end_delta(out, c, a, 0);
    fm_str_clear(&a->said);
}

static void say_call(fm_str *out, const fm__call *c, fm__answer *a, int i)
{
    fm__tool_call *t = &a->call[i];
    if (!t->announced) {
        begin_delta(out, c, a);
        fm_str_printf(
            out,
            "\"content\":null,\"reasoning_content\":null,\"tool_calls\":[{\"index\":%d,\"id\":", i);
        fm__put_word(out, t->id.text);
        fm_str_puts(out, ",\"type\":\"function\",\"function\":{\"name\":");
        fm__put_word(out, t->name.text);
        fm_str_puts(out, ",\"arguments\":\"\"}}]");
        end_delta(out, c, a, 0);
        t->announced = 1;
    }
    if (!t->arguments.len) return;
    begin_delta(out, c, a);
    fm_str_printf(
        out,
        "\"content\":null,\"reasoning_content\":null,\"tool_calls\":[{\"index\":%d,\"id\":null,"
        "\"type\":\"function\",\"function\":{\"name\":null,\"arguments\":",
        i);
    fm__put_text(out, t->arguments.text, t->arguments.len);
    fm_str_puts(out, "}}]");
    end_delta(out, c, a, 0);
    fm_str_clear(&t->arguments);
}

/* Tokens whose text is held back (part of a character, perhaps of a tag or a stop string) report
 * their log-probabilities at once: what was sent then follows from the tokens alone, so that a
 * stream can be resumed behind any of them. */
static void say_logprobs(fm_str *out, const fm__call *c, fm__answer *a)
{
    if (!a->sampling->logprobs || !a->n_lp || a->finish != FM_FINISH_NONE) return;
    begin_delta(out, c, a);
    fm_str_puts(out, "\"content\":\"\",\"reasoning_content\":null");
    end_delta(out, c, a, 0);
}

static void say(fm__call *c, fm__answer *a, fm_str *out)
{
    if (!a->begun) say_role(out, c, a);
    a->begun = 1;
    say_thought(out, c, a);
    say_text(out, c, a);
    for (int i = 0; i < a->n_call; i++) say_call(out, c, a, i);
    say_logprobs(out, c, a);
    if (a->finish == FM_FINISH_NONE || a->ended) return;
    begin_delta(out, c, a);
    fm_str_puts(out, "\"content\":null,\"reasoning_content\":null");
    end_delta(out, c, a, 1);
    a->ended = 1;
}

static void finish(fm__call *c, fm_str *out)
{
    fm__end_choices(out, c, chunk);
}

static void put_calls(fm_str *out, const fm__answer *a)
{
    if (!a->n_call) {
        fm_str_puts(out, "null");
        return;
    }
    for (int i = 0; i < a->n_call; i++) {
        const fm__tool_call *t = &a->call[i];
        fm_str_puts(out, i ? ",{\"id\":" : "[{\"id\":");
        fm__put_word(out, t->id.text);
        fm_str_printf(out, ",\"index\":%d,\"type\":\"function\",\"function\":{\"name\":", i);
        fm__put_word(out, t->name.text);
        fm_str_puts(out, ",\"arguments\":");
        fm__put_text(out, t->arguments.text ? t->arguments.text : "", t->arguments.len);
        fm_str_puts(out, "}}");
    }
    fm_str_puts(out, "]");
}

static void put_choice(fm_str *out, const fm__call *c, fm__answer *a)
{
    fm_str_printf(out, "{\"index\":%d,\"message\":{\"role\":\"assistant\",\"content\":", a->slot);
    if (a->said.len || !a->n_call) fm__put_text(out, a->said.text ? a->said.text : "", a->said.len);
    else fm_str_puts(out, "null");
    fm_str_puts(out, ",\"reasoning_content\":");
    if (a->thought.len) fm__put_text(out, a->thought.text, a->thought.len);
    else fm_str_puts(out, "null");
    fm_str_puts(out, ",\"tool_calls\":");
    put_calls(out, a);
    fm_str_puts(out, "},\"logprobs\":");
    put_logprobs(out, c, a);
    fm__end_choice(out, a, fm__answer_finish_name(a));
}

static void whole(fm__call *c, fm_str *out)
{
    fm__open_choices(out, c, "chat.completion");
    fm__put_choices(out, c, put_choice);
}

const fm__dialect fm__dialect_chat = {
    .id_prefix  = "chatcmpl-",
    .read       = fm__read_chat,
    .say        = say,
    .finish     = finish,
    .whole      = whole,
    .error      = fm__put_error,
    .late_error = fm__put_late_error,
};
