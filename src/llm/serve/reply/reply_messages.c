/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/messages: Anthropic's form, content as a list of typed blocks. */

#include "llm/serve/loop/call.h"
#include "llm/serve/reply/write.h"

/* What kind of block is open in a stream; calls are BLOCK_CALL + their index. */
enum { BLOCK_NONE, BLOCK_THINKING, BLOCK_TEXT, BLOCK_CALL };

static const char *stop_reason(const fm__answer *a)
{
    if (a->finish == FM_FINISH_LENGTH) return "max_tokens";
    if (a->finish == FM_FINISH_STOP && a->n_call) return "tool_use";
    if (a->finish == FM_FINISH_STOP && a->matched_stop >= 0) return "stop_sequence";
    return "end_turn";
}

static void put_stop(fm_str *out, const fm__answer *a)
{
    fm_str_printf(out, "\"stop_reason\":\"%s\",\"stop_sequence\":", stop_reason(a));
    if (a->matched_stop >= 0) fm__put_matched(out, a);
    else fm_str_puts(out, "null");
}

static void put_usage(fm_str *out, const fm__call *c, int output)
{
    const fm__usage u = fm__call_usage(c);
    fm_str_printf(
        out,
        "{\"input_tokens\":%lld,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":%lld,"
        "\"output_tokens\":%lld}",
        (long long)(u.prompt - u.cached), (long long)u.cached, (long long)(output ? u.output : 0));
}

static void put_opening(fm_str *out, const fm__call *c)
{
    fm_str_puts(out, "{\"id\":");
    fm__put_word(out, c->name);
    fm_str_puts(out, ",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    fm__put_word(out, c->ask->model);
}

static void close_block(fm__answer *a, fm_str *out)
{
    if (a->block == BLOCK_NONE) return;
    fm_str_printf(
        out, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":%d}\n\n",
        a->n_block - 1);
    a->block = BLOCK_NONE;
}

static void open_block(fm__answer *a, int kind, fm_str *out)
{
    if (a->block == kind) return;
    close_block(a, out);
    a->block = kind;
    fm_str_printf(out,
                  "event: content_block_start\ndata: "
                  "{\"type\":\"content_block_start\",\"index\":%d,\"content_block\":",
                  a->n_block++);
    if (kind == BLOCK_THINKING)
        fm_str_puts(out, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
    else if (kind == BLOCK_TEXT) fm_str_puts(out, "{\"type\":\"text\",\"text\":\"\"}");
    else {
        const fm__tool_call *t = &a->call[kind - BLOCK_CALL];
        fm_str_puts(out, "{\"type\":\"tool_use\",\"id\":");
        fm__put_word(out, t->id.text);
        fm_str_puts(out, ",\"name\":");
        fm__put_word(out, t->name.text);
        fm_str_puts(out, ",\"input\":{}}");
    }
    fm_str_puts(out, "}\n\n");
}

static void say_delta(fm__answer *a, int kind, const char *type, const char *field, fm_str *text,
                      fm_str *out)
{
    open_block(a, kind, out);
    if (!text->len) return;
    fm_str_printf(out,
                  "event: content_block_delta\ndata: "
                  "{\"type\":\"content_block_delta\",\"index\":%d,\"delta\":"
                  "{\"type\":\"%s\",\"%s\":",
                  a->n_block - 1, type, field);
    fm__put_text(out, text->text, text->len);
    fm_str_puts(out, "}}\n\n");
    fm_str_clear(text);
}

static void say_start(const fm__call *c, fm_str *out)
{
    fm_str_puts(out, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":");
    put_opening(out, c);
    fm_str_puts(out, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":");
    put_usage(out, c, 0);
    fm_str_puts(out, "}}\n\n");
}

static void say(fm__call *c, fm__answer *a, fm_str *out)
{
    if (!a->begun) say_start(c, out);
    a->begun = 1;
    if (a->thought.len)
        say_delta(a, BLOCK_THINKING, "thinking_delta", "thinking", &a->thought, out);
    if (a->said.len) say_delta(a, BLOCK_TEXT, "text_delta", "text", &a->said, out);
    for (int i = 0; i < a->n_call; i++) {
        fm__tool_call *t = &a->call[i];
        if (t->announced && !t->arguments.len) continue;
        t->announced = 1;
        say_delta(a, BLOCK_CALL + i, "input_json_delta", "partial_json", &t->arguments, out);
    }
    if (a->finish == FM_FINISH_NONE || a->ended) return;
    if (!a->n_block) open_block(a, BLOCK_TEXT, out);
    close_block(a, out);
    fm_str_puts(out, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{");
    put_stop(out, a);
    fm_str_puts(out, "},\"usage\":");
    put_usage(out, c, 1);
    fm_str_puts(out, "}\n\n");
    a->ended = 1;
}

static void finish(fm__call *c, fm_str *out)
{
    (void)c;
    fm_str_puts(out, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void put_content(fm_str *out, const fm__answer *a)
{
    int n = 0;
    if (a->thought.len) {
        fm_str_puts(out, "{\"type\":\"thinking\",\"thinking\":");
        fm__put_text(out, a->thought.text, a->thought.len);
        fm_str_puts(out, ",\"signature\":\"\"}");
        n++;
    }
    if (a->said.len || (!n && !a->n_call)) {
        fm_str_puts(out, n++ ? ",{\"type\":\"text\",\"text\":" : "{\"type\":\"text\",\"text\":");
        fm__put_text(out, a->said.text ? a->said.text : "", a->said.len);
        fm_str_puts(out, "}");
    }
    for (int i = 0; i < a->n_call; i++) {
        fm_str_puts(out,
                    n++ ? ",{\"type\":\"tool_use\",\"id\":" : "{\"type\":\"tool_use\",\"id\":");
        fm__put_word(out, a->call[i].id.text);
        fm_str_puts(out, ",\"name\":");
        fm__put_word(out, a->call[i].name.text);
        fm_str_puts(out, ",\"input\":");
        fm__put_arguments(out, &a->call[i].arguments);
        fm_str_puts(out, "}");
    }
}

static void whole(fm__call *c, fm_str *out)
{
    put_opening(out, c);
    fm_str_puts(out, ",\"content\":[");
    put_content(out, &c->answer[0]);
    fm_str_puts(out, "],");
    put_stop(out, &c->answer[0]);
    fm_str_puts(out, ",\"usage\":");
    put_usage(out, c, 1);
    fm_str_puts(out, "}");
}

static void late_error(fm_str *out, int status, const char *why)
{
    fm_str_puts(out, "event: error\ndata: ");
    fm__put_messages_error(out, status, why);
    fm_str_puts(out, "\n\n");
}

const fm__dialect fm__dialect_messages = {
    .id_prefix  = "msg_",
    .read       = fm__read_messages,
    .say        = say,
    .finish     = finish,
    .whole      = whole,
    .error      = fm__put_messages_error,
    .late_error = late_error,
};
