/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/completions: chunks have the shape of the whole. */
#include "llm/serve/loop/call.h"
#include "llm/serve/reply/write.h"

/* A token as the key of an object: its text, or its bytes where that is none. */
static void put_key(fm_str *out, const fm__call *c, int32_t id)
{
    size_t      n    = 0;
    const char *text = c->tokenizer ? fm_token_bytes(c->tokenizer, id, &n) : "";
    if (n && fm__is_utf8(text, n)) {
        fm__put_text(out, text, n);
        return;
    }
    fm_str_puts(out, "\"bytes:");
    for (size_t i = 0; i < n; i++) fm_str_printf(out, "\\\\x%02x", (unsigned char)text[i]);
    if (!n) fm_str_printf(out, "token_id:%d", (int)id);
    fm_str_puts(out, "\"");
}

static void put_top(fm_str *out, const fm__call *c, const fm__answer *a, const fm__logprob *lp)
{
    fm_str_puts(out, "{");
    for (int k = 0; k < lp->n_top; k++) {
        const fm_top_logprob *t = &a->top[lp->top_at + (size_t)k];
        if (k) fm_str_puts(out, ",");
        put_key(out, c, t->id);
        fm_str_puts(out, ":");
        fm__put_number(out, t->logprob);
    }
    fm_str_puts(out, "}");
}

/* Is it left out of the text, as special tokens are? */
static int is_hidden(const fm__call *c, const fm__answer *a, int32_t id)
{
    return c->tokenizer && fm_token_is_special(c->tokenizer, id) &&
           !fm__ask_params(a->ask, a->prompt)->keep_special;
}

/* Characters a token adds to the text. */
static size_t n_char(const fm__call *c, const fm__answer *a, int32_t id)
{
    size_t      n = 0, chars = 0;
    const char *text = c->tokenizer ? fm_token_bytes(c->tokenizer, id, &n) : "";
    if (is_hidden(c, a, id)) return 0;
    for (size_t i = 0; i < n; i++) chars += ((unsigned char)text[i] & 0xc0) != 0x80;
    return chars;
}

static void put_logprobs(fm_str *out, const fm__call *c, fm__answer *a)
{
    if (!a->sampling->logprobs) {
        fm_str_puts(out, "null");
        return;
    }
    fm_str_puts(out, "{\"tokens\":[");
    for (size_t i = 0; i < a->n_lp; i++) {
        if (i) fm_str_puts(out, ",");
        if (is_hidden(c, a, a->lp[i].id))
            fm_str_puts(out, "\"\""); /* joined, they are the text */
        else
            put_key(out, c, a->lp[i].id);
    }
    fm_str_puts(out, "],\"token_logprobs\":[");
    for (size_t i = 0; i < a->n_lp; i++) {
        if (i) fm_str_puts(out, ",");
        if (a->lp[i].is_first) fm_str_puts(out, "null");
        else fm__put_number(out, a->lp[i].logprob);
    }
    fm_str_puts(out, "],\"top_logprobs\":[");
    for (size_t i = 0; i < a->n_lp; i++) {
        if (i) fm_str_puts(out, ",");
        if (a->lp[i].is_first) fm_str_puts(out, "null");
        else put_top(out, c, a, &a->lp[i]);
    }
    fm_str_puts(out, "],\"text_offset\":[");
    for (size_t i = 0; i < a->n_lp; i++) {
        fm_str_printf(out, i ? ",%zu" : "%zu", a->said_chars);
        a->said_chars += n_char(c, a, a->lp[i].id);
    }
    fm_str_puts(out, "]}");
    fm__answer_clear_logprobs(a);
}

static const char object[] = "text_completion";

static void put_choice(fm_str *out, const fm__call *c, fm__answer *a)
{
    const int last = a->finish != FM_FINISH_NONE;
    fm_str_printf(out, "{\"index\":%d,\"text\":", a->slot);
    fm__put_text(out, a->said.text ? a->said.text : "", a->said.len);
    fm_str_puts(out, ",\"logprobs\":");
    put_logprobs(out, c, a);
    fm__end_choice(out, a, last ? fm_finish_name(a->finish) : NULL);
}

/* Log-probabilities do not wait for text that is held back: what was sent follows from the tokens
 * alone, so that a stream can be resumed behind any of them. */
static void say(fm__call *c, fm__answer *a, fm_str *out)
{
    const int last = a->finish != FM_FINISH_NONE;
    if (a->ended || (!a->said.len && !a->n_lp && !last)) return;
    fm__open_chunk(out, c, object);
    put_choice(out, c, a);
    fm__close_chunk(out, c);
    fm_str_clear(&a->said);
    a->ended = last;
}

static void finish(fm__call *c, fm_str *out)
{
    fm__end_choices(out, c, object);
}

static void whole(fm__call *c, fm_str *out)
{
    fm__open_choices(out, c, object);
    fm__put_choices(out, c, put_choice);
}

const fm__dialect fm__dialect_completion = {
    .id_prefix  = "cmpl-",
    .read       = fm__read_completion,
    .say        = say,
    .finish     = finish,
    .whole      = whole,
    .error      = fm__put_error,
    .late_error = fm__put_late_error,
};
