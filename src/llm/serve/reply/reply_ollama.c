/* SPDX-License-Identifier: Apache-2.0 */
/* Ollama's /api/chat and /api/generate: a line of JSON per event, the last with `done`
 * and what it took. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "llm/serve/loop/call.h"
#include "llm/serve/reply/write.h"

static int is_chat(const fm__call *c) { return c->dialect == &fm__dialect_ollama_chat; }

static void put_opening(fm_str *out, const fm__call *c)
{
    struct timespec now;
    struct tm       utc;
    char            text[32] = "";
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    fm_str_puts(out, "{\"model\":");
    fm__put_word(out, c->ask->model);
    fm_str_printf(out, ",\"created_at\":\"%s.%06ldZ\"", text, now.tv_nsec / 1000);
}

static void put_calls(fm_str *out, const fm__answer *a)
{
    for (int i = 0; i < a->n_call; i++) {
        fm_str_puts(out,
                    i ? ",{\"function\":{\"name\":" : ",\"tool_calls\":[{\"function\":{\"name\":");
        fm__put_word(out, a->call[i].name.text);
        fm_str_puts(out, ",\"arguments\":");
        fm__put_arguments(out, &a->call[i].arguments);
        fm_str_puts(out, "}}");
    }
    if (a->n_call) fm_str_puts(out, "]");
}

/* What is there of the answer; a stream forgets what it has sent. */
static void put_text(fm_str *out, const fm__call *c, const fm__answer *a, int with_calls)
{
    fm_str_puts(out, is_chat(c) ? ",\"message\":{\"role\":\"assistant\",\"content\":"
                                : ",\"response\":");
    fm__put_text(out, a->said.text ? a->said.text : "", a->said.len);
    if (a->thought.len) {
        fm_str_puts(out, ",\"thinking\":");
        fm__put_text(out, a->thought.text, a->thought.len);
    }
    if (with_calls) put_calls(out, a);
    if (is_chat(c)) fm_str_puts(out, "}");
}

static long long nanoseconds(double seconds)
{
    return seconds > 0 ? (long long)(seconds * 1e9) : 0;
}

static void put_end(fm_str *out, const fm__call *c, const fm__answer *a)
{
    const fm__usage u = fm__call_usage(c);
    fm_str_printf(
        out,
        ",\"done\":true,\"done_reason\":\"%s\",\"total_duration\":%lld,\"load_duration\":0,"
        "\"prompt_eval_count\":%lld,\"prompt_eval_duration\":%lld,\"eval_count\":%lld,"
        "\"eval_duration\":%lld}",
        fm_finish_name(a->finish), nanoseconds(fm_now() - c->began), (long long)u.prompt,
        nanoseconds(a->first_token - c->began), (long long)u.output,
        nanoseconds(a->last_token - a->first_token));
}

static void say(fm__call *c, fm__answer *a, fm_str *out)
{
    const int ends = a->finish != FM_FINISH_NONE;
    if (a->ended) return;
    if (a->said.len || a->thought.len || (ends && a->n_call)) {
        put_opening(out, c);
        put_text(out, c, a, ends);
        fm_str_puts(out, ",\"done\":false}\n");
        fm_str_clear(&a->said);
        fm_str_clear(&a->thought);
    }
    if (!ends) return;
    put_opening(out, c);
    put_text(out, c, a, 0);
    put_end(out, c, a);
    fm_str_puts(out, "\n");
    a->ended = 1;
}

static void finish(fm__call *c, fm_str *out)
{
    (void)c;
    (void)out;
}

static void put_loaded(fm_str *out, const fm__call *c)
{
    const fm__answer nothing = {0};
    put_text(out, c, &nothing, 0);
    fm_str_puts(out, ",\"done\":true,\"done_reason\":\"load\"}");
}

static void whole(fm__call *c, fm_str *out)
{
    put_opening(out, c);
    if (c->ask->is_load) {
        put_loaded(out, c);
        return;
    }
    put_text(out, c, &c->answer[0], 1);
    put_end(out, c, &c->answer[0]);
}

static void late_error(fm_str *out, int status, const char *why)
{
    fm__put_ollama_error(out, status, why);
    fm_str_puts(out, "\n");
}

const fm__dialect fm__dialect_ollama_chat = {
    .id_prefix   = "",
    .read        = fm__read_ollama_chat,
    .say         = say,
    .finish      = finish,
    .whole       = whole,
    .error       = fm__put_ollama_error,
    .late_error  = late_error,
    .stream_type = "application/x-ndjson",
};
const fm__dialect fm__dialect_ollama_generate = {
    .id_prefix   = "",
    .read        = fm__read_ollama_generate,
    .say         = say,
    .finish      = finish,
    .whole       = whole,
    .error       = fm__put_ollama_error,
    .late_error  = late_error,
    .stream_type = "application/x-ndjson",
};
