/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request that the engine answers, from its first byte to its last. */
#ifndef FM_LLM_SERVE_LOOP_CALL_H
#define FM_LLM_SERVE_LOOP_CALL_H

#include "base/id_table.h"
#include "llm/relay/stream.h"
#include "llm/serve/reply/answer.h"
#include "net/http.h"

typedef struct fm__call    fm__call;
typedef struct fm__dialect fm__dialect;

/* The reply format of an API (OpenAI, Anthropic, ...).  Streams: `say` writes what is new in
 * an answer, after one event or, when the loop is behind the engine, after several; `finish`
 * closes the stream. */
struct fm__dialect {
    const char  *id_prefix;
    fm__read_fn *read;
    void (*say)(fm__call *c, fm__answer *a, fm_str *out);
    void (*finish)(fm__call *c, fm_str *out);
    void (*whole)(fm__call *c, fm_str *out); /* the reply in one piece */
    void (*error)(fm_str *out, int status, const char *why);
    void (*late_error)(fm_str *out, int status, const char *why); /* inside a stream */
    const char *stream_type;                                      /* NULL: server-sent events */
};

extern const fm__dialect fm__dialect_chat, fm__dialect_completion;
extern const fm__dialect fm__dialect_generate, fm__dialect_messages, fm__dialect_responses;
extern const fm__dialect fm__dialect_ollama_chat, fm__dialect_ollama_generate;

/* What a router in front asked for. */
typedef struct {
    int             is_on; /* its stream is written in frames */
    fm_relay_stream stream;
    fm_relay_tokens begun; /* what the client has; moves to the ask */
    int             n_event; /* of the stream so far, before this server */
    fm_relay_tokens fresh; /* tokens since the last frame */
} fm__relay;

/* /cache_feed: what the reader knows, since when and until when it waits for more. */
typedef struct {
    uint64_t epoch, since;
    double   from, until;
} fm__feed_ask;

/* A name by which a client may abort. */
typedef struct {
    fm_id_link link; /* first: under the hash of the name */
    fm__call  *call;
    int        prompt; /* of the call, that it stands for; -1: all */
} fm__call_name;

struct fm__call {
    fm_id_link         by_id; /* first */
    uint64_t           id;
    fm_exchange       *x;
    const fm__dialect *dialect; /* NULL: a job for a worker or the engine alone */
    fm__ask           *ask;     /* NULL until the worker is done */
    fm__answer        *answer;  /* [n_answer] */
    int                n_answer, n_ended, load; /* load: answers it counts for at admission */
    int                with_engine, streaming;
    int                aborted;      /* before it was with the engine: all of it, */
    fm_str             aborted_rids; /* or what bears one of these names, a NUL behind each */
    int                incremental; /* /generate */
    int                probe;       /* a health check: an empty reply, no load */
    fm__feed_ask      *feed;        /* owned; it waits for the cache to change, no load */
    const fm_tokenizer *tokenizer;
    struct fm__responses *responses; /* where it is kept */
    int                   n_event;   /* of a stream that numbers them */
    double             began;
    int64_t            created; /* seconds since 1970 */
    char               name[FM__MAX_NAME + 16]; /* chatcmpl-…, or the client's rid */
    fm__relay          relay;
    fm_str             out; /* stream bytes not yet handed to HTTP */
    size_t             last_write; /* bytes handed over the last time */
    int               *unsent; /* [n_unsent] answers with text or an end that the stream lacks */
    int                n_unsent, dirty;
    struct fm__call_list *list; /* that it is in */
    fm__call             *next_dirty, *prev, *next;
    fm__call_name        *name_of; /* [n_name] with the engine: its own, those of its prompts */
    int                   n_name;
};

typedef struct fm__call_list {
    fm__call *first, *last; /* oldest first */
} fm__call_list;

typedef struct {
    int64_t prompt, output, cached, thought;
} fm__usage;

fm__usage fm__call_usage(const fm__call *c);
void      fm__put_usage(fm_str *out, const fm__call *c); /* {"prompt_tokens": …} */

/* Replies with "choices", of chat and of completions, which differ in the name of their object.  Open
 * up to the first choice; the end of a choice (reason NULL: it goes on); the end of a stream. */
void fm__open_choices(fm_str *out, const fm__call *c, const char *object);
void fm__end_choice(fm_str *out, const fm__answer *a, const char *reason);
void fm__end_choices(fm_str *out, const fm__call *c, const char *object);

/* A chunk of a stream of these: open, a choice, close, which adds "usage": null where a last chunk
 * brings the usage, or the usage so far where every chunk does. */
void fm__open_chunk(fm_str *out, const fm__call *c, const char *object);
void fm__close_chunk(fm_str *out, const fm__call *c);

/* The end of a whole reply with "choices":[ open: one by `put` for each answer, then usage. */
void fm__put_choices(fm_str *out, fm__call *c,
                     void (*put)(fm_str *out, const fm__call *c, fm__answer *a));

/* {"token":…,"bytes":…,"logprob":…} without its closing brace. */
void fm__put_token(fm_str *out, const fm__call *c, int32_t id, double logprob);
void fm__put_late_error(fm_str *out, int status, const char *why); /* data: {…}, then the end */
/* A call's arguments as an object: what is none is the text of a member. */
void fm__put_arguments(fm_str *out, const fm_str *arguments);
void fm__put_matched(fm_str *out, const fm__answer *a); /* matched_stop: an id, a string or null */

#endif
