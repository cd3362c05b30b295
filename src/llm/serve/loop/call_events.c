/* SPDX-License-Identifier: Apache-2.0 */
/* From the engine's events to bytes on the wire. */
#include <string.h>

#include "base/log.h"
#include "llm/serve/loop/serve_internal.h"

static const size_t large_write = (size_t)1 << 20;

#define STREAM_HEADERS "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"

static void measure(fm_serve *s, const fm__call *c, fm__answer *a, const fm_event *ev)
{
    fm__metrics *m = &s->metrics;
    if (ev->token >= 0) {
        m->n_output_token++;
        if (a->last_token == 0) { /* the first that was computed here */
            a->first_token = ev->when;
            fm__histogram_add(&m->ttft, ev->when - c->began, 1);
        } else {
            fm__histogram_add(&m->itl, ev->when - a->last_token, 1);
        }
        a->last_token = ev->when;
    }
    if (ev->finish == FM_FINISH_NONE) return;
    fm__histogram_add(&m->e2e, ev->when - c->began, 1);
    fm__histogram_add(&m->queue_time, a->queue_seconds, 1);
    fm__histogram_add(&m->generation_tokens, a->n_output, 1);
    if (a->index == 0) {
        fm__histogram_add(&m->prompt_tokens, a->n_prompt, 1);
        m->n_prompt_token += a->n_prompt;
        m->n_cached_token += a->n_cached;
        m->n_cached_host += a->n_cached_host;
        m->n_cached_storage += a->n_cached_storage;
    }
    if (ev->finish == FM_FINISH_ABORT) m->n_aborted++;
    if (ev->finish == FM_FINISH_ERROR) m->n_nonfinite++;
    m->n_request++;
}

static void note_unsent(fm_serve *s, fm__call *c, fm__answer *a)
{
    if (!a->unsent) c->unsent[c->n_unsent++] = a->slot;
    a->unsent = 1;
    if (c->dirty) return;
    c->dirty      = 1;
    c->next_dirty = s->dirty;
    s->dirty      = c;
}

void fm__call_send_whole(fm_serve *s, fm__call *c)
{
    fm_str body = {0};
    c->dialect->whole(c, &body);
    fm_exchange_reply(c->x, 200, "application/json", NULL, body.text, body.len);
    fm_str_fini(&body);
    fm__call_drop(s, c);
}

/* The engine has done what it was told, such as flushing its cache, or could not. */
static void end_order(fm_serve *s, fm__call *c, const fm__notice *n, const char *words)
{
    if (n->status == FM_OK)
        fm_exchange_reply(c->x, 200, "text/plain", NULL, words, strlen(words));
    else
        fm__reply_error(c->x, 400, words);
    fm__call_drop(s, c);
}

void fm__call_take_notice(fm_serve *s, fm__call *c, const fm__notice *n)
{
    const char *words = s->from_engine.words.text + n->words_at;
    if (!c->ask) end_order(s, c, n, words);
    else fm__call_fail(s, c, n->status == FM_E_ARG || n->status == FM_E_NOSUP ? 400 : 500, words);
}

/* No token could be chosen for one of its answers: the request as a whole has failed. */
static void end_in_error(fm_serve *s, fm__call *c, const char *why)
{
    FM_WARN("serve", "request %s failed: %s", c->name, why);
    if (c->probe)
        fm__probes_end(s, why);
    else
        fm__call_fail(s, c, 500, why);
}

void fm__call_take_event(fm_serve *s, fm__call *c, const fm_event *ev)
{
    const int   prompt = (int)(ev->id & ((1u << FM__PROMPT_BITS) - 1));
    fm__answer *a      = &c->answer[prompt * c->ask->n + ev->index];
    fm__answer_add(a, ev);
    c->n_ended += ev->finish != FM_FINISH_NONE;
    if (fm__relay_replays(c, a, ev)) {
        if (c->n_ended == c->n_answer) note_unsent(s, c, a); /* nothing but the stream's end */
        return;
    }
    measure(s, c, a, ev);
    fm__relay_note(c, a, ev);
    if (ev->finish == FM_FINISH_ERROR) {
        end_in_error(s, c, fm_finish_why(ev->finish));
        return;
    }
    if (c->ask->stream) {
        if (ev->prompt_at < 0) note_unsent(s, c, a); /* the prompt's logprobs come with the answer */
    } else if (c->n_ended == c->n_answer) {
        if (c->probe)
            fm__probes_end(s, NULL);
        else fm__call_send_whole(s, c);
    }
}

static void say_unsent(fm__call *c)
{
    for (int i = 0; i < c->n_unsent; i++) {
        fm__answer *a = &c->answer[c->unsent[i]];
        a->unsent       = 0;
        c->dialect->say(c, a, &c->out);
    }
    c->n_unsent = 0;
}

/* Events that repeat what was said can be so large that no client keeps up
 * with one per token: behind a large one the next waits and tells of several. */
static int must_wait(const fm__call *c)
{
    return c->streaming && c->last_write > large_write && fm_exchange_unread(c->x) > 0;
}

static void flush_call(fm_serve *s, fm__call *c)
{
    say_unsent(c);
    if (!c->streaming && !c->out.len && c->n_ended < c->n_answer) return;
    if (!c->streaming)
        fm_exchange_begin(c->x, 200,
                          c->dialect->stream_type ? c->dialect->stream_type
                                                  : "text/event-stream; charset=utf-8",
                          c->relay.is_on ? STREAM_HEADERS FM_RELAY_FRAMES_HEADER ": 1\r\n"
                                         : STREAM_HEADERS);
    c->streaming   = 1;
    const int last = c->n_ended == c->n_answer;
    if (last) c->dialect->finish(c, &c->out);
    if (fm__relay_write(c, &c->out, 0) != FM_OK) {
        fm__call_drop(s, c); /* it read too slowly and was cut off */
        return;
    }
    c->last_write = c->out.len;
    fm_str_clear(&c->out);
    if (!last) return;
    fm_exchange_end(c->x);
    fm__call_drop(s, c);
}

void fm__calls_flush(fm_serve *s)
{
    fm__call **at = &s->dirty;
    while (*at) {
        fm__call *c = *at;
        if (must_wait(c)) {
            at = &c->next_dirty;
            continue;
        }
        *at           = c->next_dirty;
        c->dirty      = 0;
        c->next_dirty = NULL;
        flush_call(s, c);
    }
}
