/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fathom/observe.h"

enum { WIDTH = 30 };

static fm_progress_fn *watcher; /* NULL: stderr */
static void           *watcher_ctx;

void fm_on_progress(fm_progress_fn *fn, void *ctx)
{
    watcher     = fn;
    watcher_ctx = ctx;
}

int fm_progress_is_watched(void)
{
    return watcher != NULL;
}

static double part_of(const fm_progress *p, double done)
{
    return p->total > 0 ? (done < p->total ? done / p->total : 1.0) : 1.0;
}

static void draw(const fm_progress *p, double done, const char *note, const char *end)
{
    const double part = part_of(p, done);
    char         bar[WIDTH + 1];
    memset(bar, ' ', WIDTH);
    memset(bar, '#', (size_t)(part * WIDTH));
    bar[WIDTH] = 0;
    fprintf(stderr, "\r%s [%s] %3.0f%% %.1fs %s\033[K%s", p->label, bar, part * 100,
            fm_now() - p->began, note ? note : "", end);
    fflush(stderr);
}

fm_progress fm_progress_begin(const char *label, double total)
{
    return (fm_progress){label, total, fm_now(), 0};
}

void fm_progress_show(fm_progress *p, double done, const char *note)
{
    const double now = fm_now();
    if ((!watcher && !isatty(STDERR_FILENO)) || now - p->drawn < 0.1) return;
    p->drawn = now;
    if (watcher)
        watcher(watcher_ctx, p->label, part_of(p, done));
    else
        draw(p, done, note, "");
}

void fm_progress_end(fm_progress *p, const char *note)
{
    if (watcher)
        watcher(watcher_ctx, p->label, 1);
    else if (isatty(STDERR_FILENO))
        draw(p, p->total, note, "\n");
    else
        fprintf(stderr, "%s: done in %.1fs %s\n", p->label, fm_now() - p->began, note ? note : "");
}
