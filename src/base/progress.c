/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { WIDTH = 30 };

static void draw(const fm_progress *p, double done, const char *note, const char *end)
{
    const double part = p->total > 0 ? (done < p->total ? done / p->total : 1.0) : 1.0;
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
    if (!isatty(STDERR_FILENO) || now - p->drawn < 0.1) return;
    p->drawn = now;
    draw(p, done, note, "");
}

void fm_progress_end(fm_progress *p, const char *note)
{
    if (isatty(STDERR_FILENO))
        draw(p, p->total, note, "\n");
    else
        fprintf(stderr, "%s: done in %.1fs %s\n", p->label, fm_now() - p->began, note ? note : "");
}
