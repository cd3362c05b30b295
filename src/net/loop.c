/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "net/loop_internal.h"

struct fm_loop_event {
    struct event *event;
    int           bell; /* its eventfd, or -1 */
    fm_loop_fn   *fn;
    void         *ctx;
};

fm_status fm_loop_create(fm_loop **out)
{
    fm_loop *l = calloc(1, sizeof *l);
    if (!l) return fm_fail(FM_E_OOM, "event loop");
    signal(SIGPIPE, SIG_IGN);
    /* Threads talk to the loop through eventfds alone, so it needs no locks. */
    struct event_config *config = event_config_new();
    if (config) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
        l->base = event_base_new_with_config(config);
        event_config_free(config);
    }
    if (!l->base) {
        free(l);
        return fm_fail(FM_E_OOM, "event loop");
    }
    *out = l;
    return FM_OK;
}

void fm_loop_destroy(fm_loop *l)
{
    if (!l) return;
    /* Connections that were closed with a callback pending are freed by it. */
    for (int i = 0; i < 4; i++) event_base_loop(l->base, EVLOOP_NONBLOCK);
    event_base_free(l->base);
    free(l);
}

void fm_loop_run(fm_loop *l)
{
    event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

void fm_loop_stop(fm_loop *l)
{
    event_base_loopbreak(l->base);
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    fm_loop_event *e = arg;
    (void)fd;
    (void)what;
    uint64_t rings;
    if (e->bell >= 0 && read(e->bell, &rings, sizeof rings) < 0) return; /* already answered */
    e->fn(e->ctx);
}

static fm_status add(fm_loop_event **out, fm_loop *l, int fd, short what, double period, int bell,
                     fm_loop_fn *fn, void *ctx)
{
    fm_loop_event *e = calloc(1, sizeof *e);
    if (e) {
        *e       = (fm_loop_event){.bell = bell, .fn = fn, .ctx = ctx};
        e->event = event_new(l->base, fd, what | EV_PERSIST, on_event, e);
    }
    const struct timeval every = fm__timeval(period);
    if (!e || !e->event || event_add(e->event, period > 0 ? &every : NULL) != 0) {
        fm_loop_event_destroy(e);
        return fm_fail(FM_E_OOM, "event");
    }
    *out = e;
    return FM_OK;
}

fm_status fm_loop_timer(fm_loop_event **out, fm_loop *l, double period, fm_loop_fn *fn, void *ctx)
{
    return add(out, l, -1, 0, period, -1, fn, ctx);
}

fm_status fm_loop_signal(fm_loop_event **out, fm_loop *l, int number, fm_loop_fn *fn, void *ctx)
{
    return add(out, l, number, EV_SIGNAL, 0, -1, fn, ctx);
}

fm_status fm_loop_bell(fm_loop_event **out, fm_loop *l, fm_loop_fn *fn, void *ctx)
{
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) return fm_fail(FM_E_IO, "eventfd: %s", strerror(errno));
    const fm_status rc = add(out, l, fd, EV_READ, 0, fd, fn, ctx);
    if (rc != FM_OK) close(fd);
    return rc;
}

void fm_loop_event_destroy(fm_loop_event *e)
{
    if (!e) return;
    if (e->event) event_free(e->event);
    if (e->event && e->bell >= 0) close(e->bell);
    free(e);
}

void fm_loop_ring(fm_loop_event *bell)
{
    const uint64_t one = 1;
    /* Fails only when 2^64 rings are unanswered; it is answered then, too. */
    while (write(bell->bell, &one, sizeof one) < 0 && errno == EINTR) continue;
}
