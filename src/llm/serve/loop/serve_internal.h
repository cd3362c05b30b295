/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own state; the loop's thread alone touches it. */
#ifndef FM_LLM_SERVE_LOOP_SERVE_INTERNAL_H
#define FM_LLM_SERVE_LOOP_SERVE_INTERNAL_H

#include "llm/serve/loop/call.h"
#include "llm/serve/loop/cors.h"
#include "llm/serve/loop/engine_thread.h"
#include "llm/serve/reply/error.h"
#include "llm/serve/reply/metrics.h"
#include "llm/serve/serve.h"
#include "llm/serve/loop/workers.h"

struct fm_serve {
    const fm_serve_options *opt;
    const fm_options       *engine_opt;
    fm_serve_hooks          hooks;
    fm_loop                *loop;
    fm_http                *http;
    fm_loop_event          *bell, *tick, *terminate, *interrupt, *hangup;
    fm_engine              *engine; /* borrowed; its thread's while that runs */
    fm__engine_thread      *engine_thread;
    fm__workers            *workers;
    fm__facts               facts;
    char                    model[FM__MAX_NAME];
    int                     max_running;
    fm__cors                cors;
    struct fm__responses   *responses;

    fm__call_list reading; /* a worker has them, */
    fm__call_list calls;   /* the engine has them; the oldest first, as in all lists */
    fm__call_list asides; /* health checks and readers of the cache feed, which have times of their
                           * own and count as no load */
    fm_id_table by_id;   /* all calls */
    fm_id_table by_name; /* fm__call_name of those that the engine has */
    fm__call  *dirty;
    fm__call  *probe; /* the one that the engine works on for all health checks, or NULL */
    fm__outbox from_engine; /* what is being handed out */
    int        load;
    uint64_t   next_id, key;
    uint64_t   n_named; /* requests that got a name of ours */

    fm__metrics metrics;
    double      started;
    int64_t     started_at; /* seconds since 1970 */
    int         draining;
    double      drain_began;
    fm_status   result;
};

/* routes.c: the server's end of the HTTP room. */
int  fm__serve_admit(void *ctx, fm_exchange *x);
void fm__serve_handle(void *ctx, fm_exchange *x);
void fm__serve_gone(void *ctx, fm_exchange *x);
void fm__serve_ended(void *ctx, const fm_exchange *x);
void fm__serve_refusal(void *ctx, const fm_exchange *x, int status, const char *why, fm_str *body);

/* calls.c */
void fm__call_begin(fm_serve *s, fm_exchange *x, const fm__dialect *d);
void fm__call_begin_text(fm_serve *s, fm_exchange *x, fm__text_fn *text);
fm__call *fm__call_begin_aside(fm_serve *s, fm_exchange *x, const fm__dialect *d);
void fm__call_begin_flush(fm_serve *s, fm_exchange *x);
void fm__call_begin_profile(fm_serve *s, fm_exchange *x, const char *file, int64_t n_step);
void fm__call_begin_probe(fm_serve *s, fm_exchange *x); /* one token, to see that all works */
void fm__probes_end(fm_serve *s, const char *why); /* answers every waiting health check: 200, or
                                                      503 with the reason why no token came */
void fm__call_fail(fm_serve *s, fm__call *c, int status, const char *why);
void fm__call_drop(fm_serve *s, fm__call *c); /* forgets it; the engine stops working on it */
void fm__calls_abort(fm_serve *s, const char *rid); /* NULL: all */
/* One that the engine has, by its own name; or NULL. */
fm__call *fm__call_named(const fm_serve *s, const char *name, const fm__dialect *d);
void fm__calls_bell(void *ctx);                     /* workers or engine have something */
void fm__calls_check_time(fm_serve *s);

/* cache_feed.c: what the cache holds, for a router. */
void fm__call_begin_feed(fm_serve *s, fm_exchange *x);
void fm__feed_check(fm_serve *s, fm__call *c, double now); /* replies when it is time */

/* call_relay.c: requests that come through a router (relay/stream.h). */
/* Reads the headers and takes what stands before the request off the body.  0: they are
 * malformed, *why says so. */
int  fm__relay_begin(fm__call *c, char *body, size_t *body_len, const char **why);
void fm__relay_fini(fm__relay *r);
void fm__relay_name_ask(fm__call *c); /* its ask gets the key and the tokens */
/* Is this event of a token that the client has?  It only brings the answer up to date. */
int       fm__relay_replays(fm__call *c, fm__answer *a, const fm_event *ev);
void      fm__relay_note(fm__call *c, const fm__answer *a, const fm_event *ev);
fm_status fm__relay_write(fm__call *c, const fm_str *bytes, int is_error); /* as a frame, or plain */

/* call_events.c: what an engine event does to its call. */
void fm__call_send_whole(fm_serve *s, fm__call *c); /* the reply in one piece; then dropped */
void fm__call_take_event(fm_serve *s, fm__call *c, const fm_event *ev);
void fm__call_take_notice(fm_serve *s, fm__call *c, const fm__notice *n);
void fm__calls_flush(fm_serve *s); /* hands streams what was written */

/* responses_routes.c: /v1/responses/ID and /v1/responses/ID/cancel */
int  fm__is_response_path(const fm_exchange *x); /* with a method that it knows */
void fm__handle_response(fm_serve *s, fm_exchange *x);

/* info.c */
void fm__reply_models(fm_serve *s, fm_exchange *x);
void fm__reply_one_model(fm_serve *s, fm_exchange *x, const char *id);
void fm__reply_model_info(fm_serve *s, fm_exchange *x);
void fm__reply_server_info(fm_serve *s, fm_exchange *x);
void fm__reply_metrics(fm_serve *s, fm_exchange *x);
void fm__reply_loads(fm_serve *s, fm_exchange *x);
void fm__reply_openapi(fm_serve *s, fm_exchange *x); /* openapi.c */

/* ollama_info.c */
void fm__reply_ollama_tags(fm_serve *s, fm_exchange *x);
void fm__reply_ollama_show(fm_serve *s, fm_exchange *x);
void fm__reply_version(fm_serve *s, fm_exchange *x);

/* facts.c: what readers must know, from the engine and the options. */
fm_status fm__facts_fill(fm_serve *s);
fm_status fm__facts_check_words(const fm_serve_options *opt);

#endif
