/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "comm/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "comm/mpi/mpi_wire.h"
#include "comm/self/self.h"
#include "comm/world_internal.h"

enum { WORLD_SCRATCH_BYTES = 1 << 20, DOING_BYTES = 120 };

#define WORLD_KNOB(KIND, field, ...) FM_KNOB(fm_world_options, KIND, field, __VA_ARGS__)

const fm_knob fm_world_knobs[] = {
    WORLD_KNOB(REAL, comm_timeout, "comm-timeout", "300", 0.1, 86400, "SECONDS",
               "longest wait for other ranks in one call"),
    WORLD_KNOB(REAL, comm_silence, "comm-silence", "5", 0.5, 3600, "SECONDS",
               "a rank not heard from for this long is lost"),
    WORLD_KNOB(FLAG, comm_report, "comm-report", NULL, 0, 0, NULL,
               "print calls, bytes, time and waiting of every collective and rank"),
    WORLD_KNOB(FLAG, no_launch, "no-launch", NULL, 0, 0, NULL,
               "do not start the ranks of one host by mpirun, but ask for it"),
    WORLD_KNOB(WORD, comm_interface, "comm-interface", NULL, 0, 0, "NAME",
               "network interface over which ranks watch each other"),
};
const int fm_n_world_knob = (int)(sizeof fm_world_knobs / sizeof fm_world_knobs[0]);

/* --- what the rest of the room asks a world -------------------------------- */

fm_comm_stats *fm__world_stats(fm_world *w, const char *name)
{
    if (!w) return NULL;
    for (int i = 0; i < w->n_stats; i++)
        if (!strncmp(w->stats[i].name, name, sizeof w->stats[i].name - 1)) return &w->stats[i];
    if (w->n_stats == FM__MAX_STATS) return &w->stats[FM__MAX_STATS - 1];
    fm_comm_stats *s = &w->stats[w->n_stats++];
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

double fm__world_timeout(const fm_world *w)
{
    return w ? w->options.comm_timeout : 300;
}

int fm__world_reports(const fm_world *w)
{
    return w && w->options.comm_report;
}

void fm__world_blame(fm_world *w)
{
    if (w && !w->why[0]) snprintf(w->why, sizeof w->why, "%s", fm_why());
}

void fm__world_count(fm_world *w)
{
    if (w && w->watch) fm__watch_count(w->watch);
}

void fm__world_waits(fm_world *w, fm_comm_kind k, int for_rank)
{
    if (w && w->watch) fm__watch_waits(w->watch, k, for_rank);
}

void fm__world_tell_observer(const fm_comm *c, const fm_comm_job *job)
{
    const fm_world *w = c->world;
    if (!w || !w->observer) return;
    const fm_comm_note n = {.group  = c->stats ? c->stats->name : "?",
                            .id     = c->id,
                            .serial = job->serial,
                            .kind   = job->call.kind,
                            .peer   = job->call.peer,
                            .bytes  = fm__call_bytes(c, &job->call),
                            .began  = job->began,
                            .ended  = fm_now(),
                            .busy_s = job->busy_s};
    w->observer(w->observer_ctx, &n);
}

fm_status fm__world_timed_out(const fm_comm *c, const fm_comm_job *job, double waited)
{
    const int   peer = c->ops->awaits(c, job);
    const char *kind = fm_comm_kind_name(job->call.kind);
    return fm_fail(FM_E_COMM, "%s of %zu bytes in group %s: nothing from rank %d on %s for %.1f s",
                   kind, fm__call_bytes(c, &job->call), c->stats ? c->stats->name : "?", peer,
                   c->world ? fm_world_host(c->world, peer) : "?", waited);
}

fm_status fm__world_gather(fm_world *w, void *all, const void *mine, size_t bytes)
{
    for (int i = 0; i < w->comm->n_rank; i++) w->bytes[i] = bytes;
    return fm_all_gather(w->comm, all, mine, w->bytes);
}

/* --- opening --------------------------------------------------------------- */

static fm_status copy_options(fm_world_options *to, const fm_world_options *from)
{
    if (!from) return fm_knobs_init(fm_world_knobs, fm_n_world_knob, to);
    *to = *from;
    if (from->comm_interface && !(to->comm_interface = strdup(from->comm_interface)))
        return fm_fail(FM_E_OOM, "world");
    return FM_OK;
}

static fm_status make_group(fm_world *w, int rank, int n_rank)
{
    int *member = malloc((size_t)n_rank * sizeof *member);
    if (!member) return fm_fail(FM_E_OOM, "world");
    for (int i = 0; i < n_rank; i++) member[i] = i;
    const fm__group_plan plan = {
        "world", member, rank, n_rank, w->wire->next_context++, WORLD_SCRATCH_BYTES, w};
    const fm_status rc = fm__group_create(&w->comm, w->wire, &plan);
    free(member);
    return rc;
}

/* Rank 0's options hold for all ranks: a barrier in which only some take part would hang. */
static fm_status share_options(fm_world *w)
{
    char           *interface = w->options.comm_interface; /* a pointer: not for others */
    const fm_status rc        = fm_broadcast(w->comm, &w->options, sizeof w->options, 0);
    w->options.comm_interface = interface;
    return rc;
}

static fm_status share_seats(fm_world *w)
{
    fm__seat mine;
    fm__seat_find(&mine);
    return fm__world_gather(w, w->seat, &mine, sizeof mine);
}

static const char *host_of(const void *world, int rank)
{
    return fm_world_host(world, rank);
}

static fm_status start_watch(fm_world *w)
{
    const fm__watch_plan plan = {w->comm->rank,
                                 w->comm->n_rank,
                                 w->options.comm_silence,
                                 w->options.comm_interface,
                                 host_of,
                                 w};
    fm__door             door = {0};
    FM_TRY(fm__watch_create(&w->watch, &plan));
    fm_status listening = FM_OK; /* rank 0 tells the others even if it failed */
    if (w->comm->rank == 0) listening = fm__watch_listen(w->watch, &door);
    FM_TRY(fm_broadcast(w->comm, &door, sizeof door, 0));
    FM_TRY(listening);
    FM_TRY(fm__watch_link(w->watch, &door));
    return fm__watch_start(w->watch);
}

static fm_status open_many(fm_world *w, int rank, int n_rank)
{
    w->seat  = calloc((size_t)n_rank, sizeof *w->seat);
    w->bytes = calloc((size_t)n_rank, sizeof *w->bytes);
    if (!w->seat || !w->bytes) return fm_fail(FM_E_OOM, "world");
    FM_TRY(make_group(w, rank, n_rank));
    FM_TRY(share_seats(w));
    FM_TRY(share_options(w));
    return start_watch(w);
}

static fm_status open_one(fm_world *w)
{
    w->seat  = calloc(1, sizeof *w->seat);
    w->bytes = calloc(1, sizeof *w->bytes);
    if (!w->seat || !w->bytes) return fm_fail(FM_E_OOM, "world");
    fm__seat_find(&w->seat[0]);
    return fm__self_create(&w->comm, w);
}

static void free_world(fm_world *w)
{
    fm__watch_close(w->watch);
    fm_comm_close(w->comm);
    fm_knobs_fini(fm_world_knobs, fm_n_world_knob, &w->options);
    free(w->seat);
    free(w->bytes);
    free(w);
}

fm_status fm_world_open(fm_world **out, const fm_world_options *o)
{
    fm_world *w = calloc(1, sizeof *w);
    if (!w) return fm_fail(FM_E_OOM, "world");
    int       rank = 0, n_rank = 1;
    fm_status rc = copy_options(&w->options, o);
    if (rc == FM_OK) rc = fm__mpi_open(&w->wire, w->options.comm_timeout, &rank, &n_rank);
    if (rc == FM_OK) rc = n_rank > 1 ? open_many(w, rank, n_rank) : open_one(w);
    if (rc != FM_OK) {
        free_world(w); /* not the wire: others may be waiting in it */
        return rc;
    }
    w->began = fm_now();
    *out     = w;
    return FM_OK;
}

/* Leaving is watched, too: a rank that never arrives here is named. */
void fm_world_close(fm_world *w)
{
    if (!w) return;
    if (w->watch) {
        fm_world_doing(w, "closing");
        if (w->why[0] || fm_barrier(w->comm) != FM_OK) fm__watch_abort(w->watch, w->why);
    }
    fm__mpi_close(w->wire);
    free_world(w);
}

/* --- small things ---------------------------------------------------------- */

fm_comm *fm_world_comm(fm_world *w)
{
    return w->comm;
}

const char *fm_world_host(const fm_world *w, int rank)
{
    return rank < 0 || rank >= w->comm->n_rank ? "unknown" : w->seat[rank].host;
}

int fm__world_same_host(const fm_world *w, int a, int b)
{
    return w->seat[a].boot == w->seat[b].boot && !strcmp(w->seat[a].host, w->seat[b].host);
}

void fm_world_library(char *out, size_t size)
{
    fm__mpi_version(out, size);
}

int fm_world_machine(const fm_world *w, int rank)
{
    for (int i = 0; i < rank; i++)
        if (w->seat[i].boot ? w->seat[i].boot == w->seat[rank].boot
                            : fm__world_same_host(w, i, rank))
            return i;
    return rank;
}

/* Ranks on this host, those with the same CPUs alone if asked for. */
static int count_near(const fm_world *w, int same_cpus, int *index)
{
    const int me = w->comm->rank;
    int       n  = 0;
    for (int i = 0; i < w->comm->n_rank; i++) {
        if (!fm__world_same_host(w, i, me)) continue;
        if (same_cpus && w->seat[i].cpus != w->seat[me].cpus) continue;
        if (i == me) *index = n;
        n++;
    }
    return n;
}

int fm_world_on_host(const fm_world *w, int *index)
{
    return count_near(w, 0, index);
}

int fm_world_on_cpus(const fm_world *w, int *index)
{
    return count_near(w, 1, index);
}

void fm_world_observe(fm_world *w, fm_comm_observer *fn, void *ctx)
{
    w->observer     = fn;
    w->observer_ctx = ctx;
}

void fm_world_doing(fm_world *w, const char *fmt, ...)
{
    if (!w->watch) return;
    char    text[DOING_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fm__watch_doing(w->watch, text);
}

_Noreturn void fm_world_abort(fm_world *w, const char *fmt, ...)
{
    char    text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (w->watch) fm__watch_abort(w->watch, text);
    dprintf(STDERR_FILENO, "fathom: %s\n", text);
    _exit(FM_WORLD_EXIT);
}

fm_status fm_world_report(fm_world *w, fm_str *out)
{
    const double   wall_s = fm_now() - w->began;
    const int      n      = w->comm->n_rank;
    fm_comm_stats *all    = malloc((size_t)n * sizeof w->stats);
    if (!all) return fm_fail(FM_E_OOM, "communication report");
    fm_comm_stats mine[FM__MAX_STATS];
    memcpy(mine, w->stats, sizeof mine); /* the gather counts itself */
    const fm_status       rc    = fm__world_gather(w, all, mine, sizeof mine);
    const fm__stats_table table = {all, n, FM__MAX_STATS, wall_s, w->options.comm_report};
    if (rc == FM_OK && w->comm->rank == 0 && n > 1) fm__stats_print(out, &table);
    if (rc == FM_OK && n == 1) fm_str_puts(out, "one rank: no collectives\n");
    free(all);
    return rc;
}
