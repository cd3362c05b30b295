/* SPDX-License-Identifier: Apache-2.0 */
/* Links measured by messages of the world's group.  Two ranks of one machine that may use the same
 * CPUs are put on different ones meanwhile: on one CPU they share its caches and wait for each
 * other to be scheduled, which makes another link of it. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "probe/link_wire.h"

enum {
    MOST_STEPS  = 1500,
    PINGS       = 100,
    FIRST_BYTES = 256 << 10,
    MOST_BYTES  = 4 << 20,
    PIECE       = 64 << 10 /* all-to-all: to each rank */
};
#define PING_S 1.5e-3   /* after that, no more pings */
#define ENOUGH_S 1.5e-3 /* a message that takes this long is long enough */

typedef struct {
    fm_link_wire base;
    fm_world    *world;
    fm_comm     *comm;
    char        *buffer; /* [MOST_BYTES] */
} message_wire;

/* --- CPUs ----------------------------------------------------------------------- */

/* Where this thread may run; n 0: not known, nothing is changed. */
typedef struct {
    cpu_set_t all;
    int       n;
} cpus;

static int nth_cpu(const cpus *c, int nth)
{
    int cpu = 0;
    while (!CPU_ISSET(cpu, &c->all) || nth-- > 0) cpu++;
    return cpu;
}

/* The lower rank takes the first of its CPUs, the other the last of its. */
static cpus part_from(const message_wire *w, int peer)
{
    const int me = w->comm->rank;
    cpus      c  = {.n = 0};
    cpu_set_t one;
    if (fm_world_machine(w->world, me) != fm_world_machine(w->world, peer)) return c;
    if (sched_getaffinity(0, sizeof c.all, &c.all) != 0) return c;
    c.n = CPU_COUNT(&c.all);
    CPU_ZERO(&one);
    CPU_SET(nth_cpu(&c, me < peer ? 0 : c.n - 1), &one);
    (void)sched_setaffinity(0, sizeof one, &one);
    return c;
}

static void roam(const cpus *c)
{
    if (c->n > 0) (void)sched_setaffinity(0, sizeof c->all, &c->all);
}

typedef struct {
    fm_comm *comm;
    char    *buffer;
    int      peer;
} pair;

/* What the leading side of a pair asks the other to do next. */
typedef struct {
    long long bytes; /* to receive and acknowledge; 0: answer this; -1: it is over */
} order;

/* --- one pair ------------------------------------------------------------------ */

static fm_status send_order(const pair *p, long long bytes)
{
    const order o = {bytes};
    return fm_send(p->comm, &o, sizeof o, p->peer, 0);
}

static fm_status ping(const pair *p, double *took)
{
    order        echo;
    const double began = fm_now();
    FM_TRY(send_order(p, 0));
    FM_TRY(fm_recv(p->comm, &echo, sizeof echo, p->peer, 0));
    *took = 0.5 * (fm_now() - began);
    return FM_OK;
}

static fm_status lead_pings(const pair *p, double *latency)
{
    double       one_way[PINGS];
    int          n     = 0;
    const double began = fm_now();
    FM_TRY(ping(p, latency)); /* wakes the other side */
    while (n < PINGS && (n < 3 || fm_now() - began < PING_S)) FM_TRY(ping(p, &one_way[n++]));
    fm_rate_of_times(one_way, n); /* sorts them */
    *latency = one_way[n / 10];   /* time of the link; the rest is time in which a rank was not
                                   * running */
    return FM_OK;
}

static fm_status push(const pair *p, size_t bytes, double *took)
{
    order        echo;
    const double began = fm_now();
    FM_TRY(send_order(p, (long long)bytes));
    FM_TRY(fm_send(p->comm, p->buffer, bytes, p->peer, 0));
    FM_TRY(fm_recv(p->comm, &echo, sizeof echo, p->peer, 0));
    *took = fm_now() - began;
    return FM_OK;
}

/* Longer and longer messages, until one takes long enough to be measured; the best of three. */
static fm_status lead_long(const pair *p, double latency, double *bandwidth)
{
    size_t bytes = FIRST_BYTES;
    double took  = 0, again;
    FM_TRY(push(p, bytes, &took)); /* buffers are made, windows open */
    for (;; bytes *= 4) {
        FM_TRY(push(p, bytes, &took));
        if (took > ENOUGH_S || bytes >= MOST_BYTES) break;
    }
    for (int i = 0; i < 2; i++) {
        FM_TRY(push(p, bytes, &again));
        if (again < took) took = again;
    }
    *bandwidth = (double)bytes / (took > 2 * latency ? took - latency : took);
    return FM_OK;
}

static pair pair_of(fm_link_wire *w, int peer)
{
    const message_wire *m = (const message_wire *)w;
    return (pair){m->comm, m->buffer, peer};
}

static fm_status lead_pair(const pair *p, double *latency, double *bandwidth)
{
    FM_TRY(lead_pings(p, latency));
    FM_TRY(lead_long(p, *latency, bandwidth));
    return send_order(p, -1);
}

static fm_status lead(fm_link_wire *w, int peer, double *latency, double *bandwidth)
{
    const pair      p  = pair_of(w, peer);
    const cpus      c  = part_from((message_wire *)w, peer);
    const fm_status rc = lead_pair(&p, latency, bandwidth);
    roam(&c);
    return rc;
}

static fm_status serve_pair(const pair *p)
{
    for (;;) {
        order o;
        FM_TRY(fm_recv(p->comm, &o, sizeof o, p->peer, 0));
        if (o.bytes < 0) return FM_OK;
        if (o.bytes > MOST_BYTES) return fm_fail(FM_E_COMM, "rank %d sends nonsense", p->peer);
        if (o.bytes > 0) FM_TRY(fm_recv(p->comm, p->buffer, (size_t)o.bytes, p->peer, 0));
        FM_TRY(fm_send(p->comm, &o, sizeof o, p->peer, 0));
    }
}

static fm_status serve(fm_link_wire *w, int peer)
{
    const pair      p  = pair_of(w, peer);
    const cpus      c  = part_from((message_wire *)w, peer);
    const fm_status rc = serve_pair(&p);
    roam(&c);
    return rc;
}

/* --- all to all ------------------------------------------------------------------- */

static fm_status exchange_once(fm_comm *c, char *to, const char *from, const size_t *bytes,
                               double *rate)
{
    FM_TRY(fm_barrier(c));
    const double began = fm_now();
    FM_TRY(fm_all_to_all(c, to, bytes, from, bytes));
    *rate = (double)(c->n_rank - 1) * PIECE / (fm_now() - began);
    return fm_barrier(c);
}

static fm_status all_to_all(fm_link_wire *w, double *rate, int n_round)
{
    fm_comm     *c    = ((message_wire *)w)->comm;
    const size_t n    = (size_t)c->n_rank;
    char        *from = calloc(n, PIECE), *to = calloc(n, PIECE);
    size_t      *bytes = calloc(n, sizeof *bytes);
    fm_status    rc    = from && to && bytes ? FM_OK : fm_fail(FM_E_OOM, "all-to-all");
    for (size_t i = 0; rc == FM_OK && i < n; i++) bytes[i] = PIECE;
    if (rc == FM_OK) rc = exchange_once(c, to, from, bytes, &rate[0]); /* buffers are made */
    for (int i = 0; rc == FM_OK && i < n_round; i++)
        rc = exchange_once(c, to, from, bytes, &rate[i]);
    free(from);
    free(to);
    free(bytes);
    return rc;
}

fm_status fm_links_measure(fm_links *out, const fm_turns *turns)
{
    message_wire w = {
        .base  = {.lead = lead, .serve = serve, .all_to_all = all_to_all, .most_steps = MOST_STEPS},
        .world = turns->world,
        .comm  = fm_world_comm(turns->world)};
    w.buffer = calloc(1, MOST_BYTES);
    if (!w.buffer) return fm_fail(FM_E_OOM, "a message of %d bytes", MOST_BYTES);
    const fm_status rc = fm_links_measure_by(out, turns, &w.base);
    free(w.buffer);
    return rc;
}
