/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/responses: a stream of typed events about the items of the output, or the whole.
 *
 *     created, in_progress, { item added, (part added, deltas, part done), item done }*, completed
 *
 * Texts grow in the answer and are told from `told` on, since the event that ends an
 * item repeats all of it. */
#include "llm/serve/reply/responses_object.h"
#include "llm/serve/reply/write.h"

static void begin_event(fm_str *out, fm__call *c, const char *type)
{
    fm_str_printf(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d", type, type,
                  c->n_event++);
}

static void end_event(fm_str *out) { fm_str_puts(out, "}\n\n"); }

static void say_response(fm_str *out, fm__call *c, const char *type, int in_progress)
{
    begin_event(out, c, type);
    fm_str_puts(out, ",\"response\":");
    fm__put_response(out, c, in_progress);
    end_event(out);
}

/* The item that is open: its place is the last one. */
typedef struct {
    fm__item_kind        kind;
    int                  at;
    const fm__tool_call *call;
    const fm_str        *text;
    size_t               from; /* of the text: where the item begins */
} item;

static item open_item_of(const fm__answer *a)
{
    item i = {.kind = FM__ITEM_NONE, .at = a->n_block - 1, .from = a->item_from};
    if (a->block == FM__ITEM_NONE) return i;
    i.kind = a->block < FM__ITEM_CALL ? (fm__item_kind)a->block : FM__ITEM_CALL;
    if (i.kind == FM__ITEM_CALL) i.call = &a->call[a->block - FM__ITEM_CALL];
    i.text = i.kind == FM__ITEM_THOUGHT ? &a->thought
             : i.kind == FM__ITEM_TEXT  ? &a->said
                                        : &i.call->arguments;
    return i;
}

static void put_place(fm_str *out, const fm__call *c, const item *i, int with_part)
{
    fm_str_puts(out, ",\"item_id\":");
    fm__put_item_id(out, c, i->kind, i->at);
    fm_str_printf(out, ",\"output_index\":%d", i->at);
    if (with_part) fm_str_puts(out, ",\"content_index\":0");
}

static void say_item(fm_str *out, fm__call *c, const item *i, const char *type, const char *text,
                     size_t len, const char *status)
{
    begin_event(out, c, type);
    fm_str_printf(out, ",\"output_index\":%d,\"item\":", i->at);
    fm__put_item(out, c, i->kind, i->at, i->call, text, len, status);
    end_event(out);
}

static void say_part(fm_str *out, fm__call *c, const item *i, const char *type, const char *text,
                     size_t len)
{
    begin_event(out, c, type);
    put_place(out, c, i, 1);
    fm_str_puts(out, ",\"part\":");
    fm__put_part(out, i->kind, text, len);
    end_event(out);
}

/* The name of an event about the item's text. */
static const char *about_text(fm__item_kind kind, int is_done)
{
    static const char *const name[][2] = {
        {"", ""},
        {"response.reasoning_text.delta", "response.reasoning_text.done"},
        {"response.output_text.delta", "response.output_text.done"},
        {"response.function_call_arguments.delta", "response.function_call_arguments.done"},
    };
    return name[kind][is_done];
}

static void say_text(fm_str *out, fm__call *c, const item *i, int is_done, const char *text,
                     size_t len)
{
    begin_event(out, c, about_text(i->kind, is_done));
    put_place(out, c, i, i->kind != FM__ITEM_CALL);
    fm_str_printf(out, ",\"%s\":",
                  !is_done                   ? "delta"
                  : i->kind == FM__ITEM_CALL ? "arguments"
                                             : "text");
    fm__put_text(out, text, len);
    if (i->kind == FM__ITEM_TEXT) fm_str_puts(out, ",\"logprobs\":[]");
    end_event(out);
}

static void close_item(fm__call *c, fm__answer *a, fm_str *out)
{
    const item i = open_item_of(a);
    if (i.kind == FM__ITEM_NONE) return;
    const char  *text   = i.text->text ? i.text->text + i.from : "";
    const size_t len    = i.text->len - i.from;
    const int    is_cut = a->finish != FM_FINISH_NONE && a->finish != FM_FINISH_STOP;
    say_text(out, c, &i, 1, text, len);
    if (i.kind != FM__ITEM_CALL) say_part(out, c, &i, "response.content_part.done", text, len);
    say_item(out, c, &i, "response.output_item.done", text, len,
             is_cut ? "incomplete" : "completed");
    a->block = FM__ITEM_NONE;
}

static void open_item(fm__call *c, fm__answer *a, int block, size_t from, fm_str *out)
{
    if (a->block == block) return;
    close_item(c, a, out);
    a->block     = block;
    a->item_from = from;
    a->n_block++;
    const item i = open_item_of(a);
    say_item(out, c, &i, "response.output_item.added", NULL, 0, "in_progress");
    if (i.kind != FM__ITEM_CALL) say_part(out, c, &i, "response.content_part.added", "", 0);
}

/* What is new of a text. */
static void tell(fm__call *c, fm__answer *a, int block, const fm_str *text, size_t *told,
                 fm_str *out)
{
    if (text->len == *told) return;
    open_item(c, a, block, *told, out);
    const item i = open_item_of(a);
    say_text(out, c, &i, 0, text->text + *told, text->len - *told);
    *told = text->len;
}

static void say(fm__call *c, fm__answer *a, fm_str *out)
{
    if (!a->begun) {
        say_response(out, c, "response.created", 1);
        say_response(out, c, "response.in_progress", 1);
    }
    a->begun = 1;
    tell(c, a, FM__ITEM_THOUGHT, &a->thought, &a->told_thought, out);
    tell(c, a, FM__ITEM_TEXT, &a->said, &a->told_said, out);
    for (int i = 0; i < a->n_call; i++) {
        fm__tool_call *t = &a->call[i];
        if (!t->announced) open_item(c, a, FM__ITEM_CALL + i, 0, out);
        t->announced = 1;
        tell(c, a, FM__ITEM_CALL + i, &t->arguments, &t->told, out);
    }
    if (a->finish == FM_FINISH_NONE || a->ended) return;
    if (!a->n_block) open_item(c, a, FM__ITEM_TEXT, 0, out);
    close_item(c, a, out);
    a->ended = 1;
}

static void finish(fm__call *c, fm_str *out)
{
    say_response(
        out, c,
        c->answer[0].finish == FM_FINISH_STOP ? "response.completed" : "response.incomplete", 0);
    fm__keep_response(c);
}

static void whole(fm__call *c, fm_str *out)
{
    fm__put_response(out, c, 0);
    fm__keep_response(c);
}

static void late_error(fm_str *out, int status, const char *why)
{
    fm_str_printf(
        out, "event: error\ndata: {\"type\":\"error\",\"code\":\"%s\",\"param\":null,\"message\":",
        status >= 500 ? "server_error" : "invalid_request_error");
    fm__put_word(out, why);
    end_event(out);
}

const fm__dialect fm__dialect_responses = {
    .id_prefix  = "resp_",
    .read       = fm__read_responses,
    .say        = say,
    .finish     = finish,
    .whole      = whole,
    .error      = fm__put_error,
    .late_error = late_error,
};
