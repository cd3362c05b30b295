/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop: sockets, timers, signals, and a bell by which other threads wake
 * it.  One thread runs it and makes every call here but fm_loop_ring(). */
#ifndef FM_NET_LOOP_H
#define FM_NET_LOOP_H

#include "base/status.h"

typedef struct fm_loop       fm_loop;
typedef struct fm_loop_event fm_loop_event; /* a timer, a signal or a bell */
typedef void                 fm_loop_fn(void *ctx);

/* Also ignores SIGPIPE: writing to a closed connection is then an error code. */
fm_status fm_loop_create(fm_loop **out);
void      fm_loop_destroy(fm_loop *l); /* NULL is fine; its events must be gone */
void      fm_loop_run(fm_loop *l);     /* until fm_loop_stop() */
void      fm_loop_stop(fm_loop *l);

fm_status fm_loop_timer(fm_loop_event **out, fm_loop *l, double period, fm_loop_fn *fn, void *ctx);
fm_status fm_loop_signal(fm_loop_event **out, fm_loop *l, int number, fm_loop_fn *fn, void *ctx);
fm_status fm_loop_bell(fm_loop_event **out, fm_loop *l, fm_loop_fn *fn, void *ctx);
void      fm_loop_event_destroy(fm_loop_event *e); /* NULL is fine */

/* From any thread: `fn` runs on the loop's thread, once for all rings before it
 * runs. */
void fm_loop_ring(fm_loop_event *bell);

#endif
