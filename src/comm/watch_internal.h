/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the watch (watch.h): the frames that ranks send each other, the links, and the
 * counters that rank 0 serves.  The thread is watch_thread.c; connecting is watch_link.c; the end
 * of a job is watch_verdict.c; counters are watch_count.c. */
#ifndef FM_COMM_WATCH_INTERNAL_H
#define FM_COMM_WATCH_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/watch.h"

enum { FM__FRAME_TEXT = 360, FM__DOING_BYTES = 120 };

#define FM__FRAME_MAGIC 0x666d7763u

typedef enum {
    FM__HELLO, /* first of a link, both ways; `calls` is the door's cookie */
    FM__ALIVE,
    FM__ABORT,   /* to rank 0; text: why */
    FM__VERDICT, /* the job is over */
    FM__BYE,     /* an end of the connection from here on is no loss */
    FM__COUNT,   /* to rank 0: request for the next number of a shared counter */
    FM__NUMBER,  /* the answer */
} fm__frame_kind;

/* A request for a number of a shared counter, and its answer. */
typedef struct {
    uint64_t key;    /* of the counter */
    uint64_t round;  /* numbers of a later round begin at 0 again */
    uint64_t number; /* in the answer */
    uint64_t ticket; /* an answer carries the request's */
} fm__count;

typedef struct {
    uint32_t magic, kind;
    int32_t  rank, waits_for; /* -1: computing */
    uint64_t calls;
    int32_t  in_call, unused; /* fm_comm_kind of the wait */
    char     doing[FM__DOING_BYTES];
    union {
        char      text[FM__FRAME_TEXT];
        fm__count count; /* FM__COUNT, FM__NUMBER */
    };
} fm__frame;

/* A connection to one rank, and what it last said. */
typedef struct {
    int       fd, rank;
    int       has_left; /* it said goodbye */
    double    heard;    /* fm_now() of its last word */
    fm__frame last;     /* its latest FM__ALIVE */
    size_t    n_read;   /* bytes of `incoming` so far */
    fm__frame incoming;
} fm__watched;

/* A counter that rank 0 serves. */
typedef struct {
    uint64_t         key;
    _Atomic uint64_t word; /* fm__counter_take */
} fm__served;

enum { FM__SERVED_MAX = 64 };

struct fm__watch {
    fm__watch_plan plan;
    int            door_fd; /* rank 0, until all are linked */
    int            n_link;
    fm__watched      *link;    /* [n_link] rank 0: all others; others: rank 0 */
    int            wake[2]; /* a byte here wakes the thread: signal handler, close, abort */
    pthread_t      thread;
    int            is_running, has_signal;

    _Atomic int      is_closing, is_terminated;
    _Atomic uint64_t calls;
    _Atomic int      waits_for, in_call;
    pthread_mutex_t  lock; /* for the texts */
    char             doing[FM__DOING_BYTES];
    char             abort_text[FM__FRAME_TEXT]; /* empty: no abort was requested */

    /* Shared counters: rank 0's table; the answer another rank's thread waits for. */
    pthread_mutex_t count_lock, ask_lock; /* ask_lock: one request of this rank at a time */
    pthread_cond_t  answered;
    fm__served      served[FM__SERVED_MAX];
    int             n_served;
    fm__count       answer;
    uint64_t        n_ticket;
};

void *fm__watch_loop(void *watch); /* the thread */

/* Counters: what rank 0's thread does with a request, another's with an answer. */
void fm__watch_serve(fm__watch *w, fm__watched *l, const fm__count *request);
void fm__watch_answered(fm__watch *w, const fm__count *answer);

fm__frame fm__watch_frame(fm__watch *w, fm__frame_kind kind, const char *text);
int       fm__frame_send(int fd, const fm__frame *f); /* whole or not at all; 0: sent */

/* These end this process, and the job. */
_Noreturn void fm__watch_lost(fm__watch *w, const fm__watched *l, const char *how);
_Noreturn void fm__watch_gives_up(fm__watch *w, const fm__frame *abort); /* rank 0 */
_Noreturn void fm__watch_obeys(void);

#endif
