/* SPDX-License-Identifier: Apache-2.0 */
/* The router's own state; the loop's thread alone touches it. */
#ifndef FM_LLM_ROUTE_ROUTE_INTERNAL_H
#define FM_LLM_ROUTE_ROUTE_INTERNAL_H

#include <stdio.h>

#include "llm/relay/frame.h"
#include "llm/relay/stream.h"
#include "llm/route/affinity.h"
#include "llm/route/policy.h"
#include "llm/route/route.h"
#include "llm/route/worker.h"
#include "llm/serve/loop/call.h"
#include "llm/serve/loop/cors.h"
#include "net/http.h"

typedef struct fm__gather  fm__gather;  /* a request that all workers are asked about (gather.h) */
typedef struct fm__prompts fm__prompts; /* a tokenizer and how requests are read */

typedef enum {
    FM__CALL_READING, /* a thread tokenises it */
    FM__CALL_QUEUED,  /* waits for a worker, perhaps not before a certain time */
    FM__CALL_SENT,    /* a worker has it */
} fm__call_state;

enum { FM__MAX_AVOID = 4 };

/* One request of a client, from its first byte to its last. */
typedef struct fm__rcall fm__rcall;
struct fm__rcall {
    fm_route          *route;
    uint64_t           id;
    fm_exchange       *x;
    const fm__dialect *dialect; /* NULL: no answer is generated, it is passed on as it is */
    fm__call_state     state;

    char           *body; /* owned */
    size_t          body_len;
    fm_str          target; /* path and query for the worker */
    fm_relay_stream stream;

    double     began, queued, not_before; /* fm_now() */
    double     sent;                      /* when the worker got it */
    int        n_try;                     /* since the last progress */
    int        n_tries, n_resume;         /* in all */
    int        n_own_error;               /* errors that workers answered with, since then */
    int        avoid[FM__MAX_AVOID];      /* ids of workers that failed it lately; 0: none */
    int        pinned;                    /* id of the only worker that may have it; 0: any */
    fm_worker *worker;
    fm_fetch  *fetch;

    int             streaming;     /* the client has the reply's head */
    int             resumable;     /* and what it has came in frames */
    int             framed, heard; /* this worker's reply: in frames; its head is there */
    int             status;
    fm_str          type, headers; /* of the reply, for the client */
    fm_str          collected;     /* a reply of known length, until it is whole */
    fm_relay_reader reader;
    fm_relay_tokens tokens; /* that the client has */
    int             n_event;
    fm_str          last_error; /* a worker's error event, sent if no other goes on */
    int             paused;

    fm_ids    prompt;   /* tokens of the first prompt, if they were read */
    int32_t   n_output; /* tokens that the answer may have */
    int64_t   counted;  /* in the worker's pending_tokens */
    uint64_t *page;     /* [n_page] identities of the prompt's pages of page_size tokens; owned */
    int       n_page, page_size;
    double    expected; /* until then the pages count as cached at the worker */

    fm__rcall *prev, *next; /* all calls */
    fm__rcall *queue_prev, *queue_next;
};

typedef struct {
    int64_t n_request, n_refused, n_limited; /* refused: the queue is full; limited: by rate */
    int64_t n_retry, n_resume, n_failed;     /* failed: answered with an error of the router */
    int64_t n_status[6];                     /* replies by hundred */
} fm__route_counts;

/* Requests per second, a second's worth at once. */
typedef struct {
    double tokens, filled;
} fm__bucket;

struct fm_route {
    const fm_route_options *opt;
    fm_route_hooks          hooks;
    fm_route_policy         policy;
    fm_policy_state         policy_state;
    fm_breaker_options      breaker;
    fm_loop                *loop;
    fm_http                *http;
    fm_loop_event          *tick, *terminate, *interrupt, *hangup;
    fm__cors                cors;
    const char            **key; /* [n_key] into opt->keys */
    int                     n_key;

    fm_worker *workers; /* in the order they joined; leaving ones too */
    int        next_worker_id;

    fm__rcall          *calls;
    int                 n_call, n_active; /* active: at a worker */
    fm__rcall          *queue_head, *queue_tail;
    int                 n_queued, pumping;
    double              scanned; /* when calls were last looked at for their time */
    fm__bucket          bucket;
    fm_affinity         responses; /* who keeps which */
    fm__gather         *gathers;   /* under way */
    fm__prompts        *prompts;   /* NULL: prompts are not read */
    struct fm__workers *readers;   /* the thread for long prompts, or NULL */
    fm_loop_event      *read;      /* it has read one */
    uint64_t            next_call_id;
    fm__route_counts    counts;
    uint64_t            random_key, n_named, n_keyed;
    double              started;

    int       draining;
    double    drain_began, quiet_since;
    fm_status result;
};

/* routes.c: the router's end of the HTTP room. */
int  fm__route_admit(void *ctx, fm_exchange *x);
void fm__route_handle(void *ctx, fm_exchange *x);
void fm__route_gone(void *ctx, fm_exchange *x);
void fm__route_ended(void *ctx, const fm_exchange *x);
void fm__route_refusal(void *ctx, const fm_exchange *x, int status, const char *why, fm_str *body);

/* roster.c: the table of workers. */
fm_status  fm__roster_add(fm_route *r, const char *url, const char *api_key, int from_file,
                          fm_worker **out);              /* FM_E_ARG: the URL is wrong or taken */
void       fm__roster_remove(fm_route *r, fm_worker *w); /* after its last request */
fm_worker *fm__roster_find(const fm_route *r, const char *name); /* an id or a URL */
fm_worker *fm__roster_by_id(const fm_route *r, int id);
fm_status  fm__roster_read_file(fm_route *r); /* workers that are no longer listed leave */
void       fm__roster_sweep(fm_route *r);     /* frees those that have left */
int        fm__roster_n_up(const fm_route *r);
int        fm__split_words(char *line, char **word, int most); /* up to a comment; how many */
/* take(): a line's words, up to three.  Errors name the file and the line. */
typedef fm_status fm__take_line(fm_route *r, char **word, int n);
fm_status fm__read_lines(fm_route *r, FILE *f, const char *path, fm__take_line *take);

/* state.c: what requests changed in the table, kept over a restart. */
fm_status fm__state_read(fm_route *r);
void      fm__state_write(const fm_route *r); /* a failure is said, no more */

/* health.c */
void fm__health_tick(fm_route *r);
void fm__health_fail(fm_worker *w, const char *fmt, ...) /* it is down from now on */
    __attribute__((format(printf, 2, 3)));

/* progress.c: engines that hang behind an HTTP loop that answers. */
void fm__progress_tick(fm_route *r);

/* calls.c: the life of a call. */
void fm__rcall_begin(fm_route *r, fm_exchange *x, const fm__dialect *d, int pinned);
void fm__rcall_drop(fm__rcall *c); /* forgets it; its worker is told by the close */
void fm__rcall_fail(fm__rcall *c, int status,
                    const char *why); /* tells the client, then drops it */
void fm__rcall_admit(fm__rcall *c);   /* its prompt is read, or will not be: queues it */
void fm__rcalls_pump(fm_route *r);    /* sends what can be sent */
void fm__rcalls_tick(fm_route *r);
void fm__rcalls_leave(fm_route *r, fm_worker *w);   /* it is down: its calls go elsewhere */
void fm__rcall_requeue(fm__rcall *c, double delay); /* at the front */

/* choose.c: a worker for a call; NULL: none may have it now. */
fm_worker *fm__choose_worker(fm_route *r, fm__rcall *c, int32_t *n_cached);

/* attempt.c: one try at a worker. */
void fm__attempt_begin(fm__rcall *c, fm_worker *w, int32_t n_cached);
void fm__attempt_end(fm__rcall *c);                               /* lets go of the worker */
void fm__attempt_fail(fm__rcall *c, int status, const char *why); /* tries again, or gives up */

/* headers.c */
void fm__put_encoded(fm_str *out, const char *path); /* percent-encoded */
void fm__target_of(fm_str *out, const fm_exchange *x);
void fm__headers_for_worker(fm_str *out, const fm__rcall *c, const fm_worker *w);
void fm__headers_for_client(fm_str *out, const fm_http_head *h);

/* responses.c: what refers to a response that some worker keeps. */
void fm__responses_begin(fm_route *r, fm_exchange *x,
                         const fm__dialect *d); /* there, or anywhere */
void fm__responses_note(const fm__rcall *c);    /* its worker will keep it */

/* prompt.c: the tokens of requests. */
fm_status fm__prompts_open(fm__prompts **out, const char *path, const fm_route_options *o);
void      fm__prompts_close(fm__prompts *p); /* NULL is fine */
/* Does nothing where they cannot be known.  1: a thread reads them, and the call is admitted
 * when it is done. */
int       fm__prompt_read(fm__rcall *c);
fm_status fm__prompts_start(fm_route *r); /* the thread, once there is a tokenizer */
void      fm__prompts_stop(fm_route *r);
int32_t   fm__prompt_cached(fm__rcall *c, const fm_worker *w);   /* tokens of it that w has */
void      fm__prompt_expect(fm__rcall *c, fm_worker *w);         /* w will have all of it */
void      fm__prompt_unexpect(const fm__rcall *c, fm_worker *w); /* it will not: it failed there */

/* worker_info.c */
void fm__ask_worker_info(fm_worker *w); /* once while it is up */
/* The first other worker with other settings, and which; NULL: they agree, or are not known. */
const fm_worker *fm__worker_differs(fm_str *how, const fm_worker *w);

/* feed.c */
void fm__feed_tick(fm_route *r);
int  fm__feed_read(fm_worker_feed *f, const char *text); /* a reply; 0: it is none */
void fm__feed_forget(fm_worker *w);                      /* what was known of its cache */

/* admin.c: /workers */
int  fm__is_admin_path(const char *path);
void fm__admin_handle(fm_route *r, fm_exchange *x);

/* broadcast.c: requests that concern every worker. */
void fm__broadcast(fm_route *r, fm_exchange *x);

/* gather.c */
void fm__gathers_gone(fm_route *r, const fm_exchange *x); /* the client has left */
void fm__gathers_tick(fm_route *r);                       /* ends those whose time is over */
void fm__gathers_fini(fm_route *r);

/* engine_metrics.c */
void fm__engine_metrics(fm_route *r, fm_exchange *x);

/* report.c */
void fm__reply_route_metrics(fm_route *r, fm_exchange *x);
void fm__put_workers(fm_str *out, const fm_route *r); /* JSON list */
void fm__put_worker(fm_str *out, const fm_worker *w);
void fm__log_access(const fm_route *r, const fm_exchange *x);

void fm__say(const fm_route *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
