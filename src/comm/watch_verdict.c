/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a job: one line, printed once, and every rank leaves. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/watch_internal.h"
#include "comm/world.h"

enum { LINE_BYTES = 1024 };

static const char *host(const fm__watch *w, int rank)
{
    return w->plan.host(w->plan.of, rank);
}

/* "step 12, in all_reduce (call 345), waiting for rank 1" */
static void add_state(char *line, const fm__frame *last)
{
    const size_t n = strlen(line);
    if (last->waits_for < 0)
        snprintf(line + n, LINE_BYTES - n, "%s (after %llu calls)", last->doing,
                 (unsigned long long)last->calls);
    else
        snprintf(line + n, LINE_BYTES - n, "%s, in %s (call %llu), waiting for rank %d",
                 last->doing, fm_comm_kind_name((fm_comm_kind)last->in_call),
                 (unsigned long long)last->calls, last->waits_for);
}

static void print(const char *line)
{
    dprintf(STDERR_FILENO, "fathom: %s\n", line); /* one write: lines of ranks do not mix */
}

/* The other ranks exit first where they can: a launcher that sees one exit sends signals to
 * all, and by then none should still be waiting for the verdict. */
static void tell_all(fm__watch *w, const char *line)
{
    const fm__frame f = fm__watch_frame(w, FM__VERDICT, line);
    for (int i = 0; i < w->n_link; i++) fm__frame_send(w->link[i].fd, &f);
}

_Noreturn void fm__watch_obeys(void)
{
    _exit(FM_WORLD_EXIT);
}

/* Rank 0 decides for all. Without rank 0 every rank decides alone: rank 1 prints the line, and the
 * others exit a little later. */
static _Noreturn void end_job(fm__watch *w, const char *line)
{
    const int speaks = w->plan.rank == 0 || w->plan.rank == 1;
    if (speaks) print(line);
    tell_all(w, line);
    poll(NULL, 0, speaks ? 50 : 300);
    _exit(FM_WORLD_EXIT);
}

_Noreturn void fm__watch_lost(fm__watch *w, const fm__watched *l, const char *how)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "rank %d on %s %s; it was: ", l->rank, host(w, l->rank), how);
    add_state(line, &l->last);
    end_job(w, line);
}

/* Waiting ranks wait for others that wait; at the end of the chain is one
 * that does not, and that is what is reported. */
static const fm__frame *end_of_chain(const fm__watch *w, int from)
{
    const fm__frame *found = NULL;
    for (int hops = 0; hops < w->plan.n_rank && from > 0; hops++) {
        found = NULL;
        for (int i = 0; i < w->n_link; i++)
            if (w->link[i].rank == from) found = &w->link[i].last;
        if (!found || found->waits_for < 0) break;
        from = found->waits_for;
    }
    return found;
}

_Noreturn void fm__watch_gives_up(fm__watch *w, const fm__frame *last)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "rank %d on %s: %s; it was: ", last->rank, host(w, last->rank),
             last->text);
    add_state(line, last);
    const fm__frame *behind = last->waits_for > 0 ? end_of_chain(w, last->waits_for) : NULL;
    if (behind && behind->rank != last->rank) {
        const size_t n = strlen(line);
        snprintf(line + n, sizeof line - n, "; rank %d on %s was: ", behind->rank,
                 host(w, behind->rank));
        add_state(line, behind);
    }
    end_job(w, line);
}
