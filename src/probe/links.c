/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/links.h"

#include <stdlib.h>

#include "base/clock.h"
#include "probe/pairs.h"

enum {
    MOST_STEPS  = 1500, /* pairs that come one after the other */
    MOST_SWEEPS = 5,
    PINGS       = 100,
    FIRST_BYTES = 256 << 10,
    MOST_BYTES  = 4 << 20,
    PIECE       = 64 << 10, /* all-to-all: to each rank */
    ROUNDS      = 7
};
#define PING_S 1.5e-3   /* after that, no more pings */
#define ENOUGH_S 1.5e-3 /* a message that takes this long is long enough */

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

static fm_status lead(const pair *p, double *latency, double *bandwidth)
{
    FM_TRY(lead_pings(p, latency));
    FM_TRY(lead_long(p, *latency, bandwidth));
    return send_order(p, -1);
}

static fm_status serve(const pair *p)
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

/* Each side leads once: the lower rank first. */
static fm_status run_pair(const pair *p, double *latency, double *bandwidth)
{
    if (p->comm->rank > p->peer) FM_TRY(serve(p));
    FM_TRY(lead(p, latency, bandwidth));
    return p->comm->rank < p->peer ? serve(p) : FM_OK;
}

/* --- all pairs -------------------------------------------------------------------- */

/* What this rank sends: [n_rank, MOST_SWEEPS] each. */
typedef struct {
    double *latency, *bandwidth;
    int     n_sweep;
} row;

static fm_status sweep(const fm_turns *turns, const fm_pairs_plan *plan, pair *p, row *r)
{
    for (int s = 0; s < plan->n_step; s++) {
        p->peer = plan->partner[(size_t)s * (size_t)plan->n_rank + (size_t)p->comm->rank];
        FM_TRY(fm_turns_meet(turns));
        if (p->peer < 0) continue;
        const size_t at = (size_t)p->peer * MOST_SWEEPS + (size_t)r->n_sweep;
        FM_TRY(run_pair(p, &r->latency[at], &r->bandwidth[at]));
    }
    r->n_sweep++;
    return fm_turns_meet(turns);
}

static fm_status gather_rows(fm_links *l, fm_comm *c, row *r)
{
    const size_t n     = (size_t)l->n_rank;
    fm_rate     *mine  = calloc(2 * n, sizeof *mine);
    size_t      *bytes = calloc(n, sizeof *bytes);
    fm_status    rc    = mine && bytes ? FM_OK : fm_fail(FM_E_OOM, "links of %zu ranks", n);
    for (size_t j = 0; rc == FM_OK && j < n; j++) {
        bytes[j] = n * sizeof *mine;
        if (r->latency[j * MOST_SWEEPS] <= 0) continue;
        mine[j]     = fm_rate_of_times(r->latency + j * MOST_SWEEPS, r->n_sweep);
        mine[n + j] = fm_rate_of(r->bandwidth + j * MOST_SWEEPS, r->n_sweep);
    }
    if (rc == FM_OK) rc = fm_all_gather(c, l->latency, mine, bytes);
    if (rc == FM_OK) rc = fm_all_gather(c, l->bandwidth, mine + n, bytes);
    free(mine);
    free(bytes);
    return rc;
}

static fm_status measure_pairs(fm_links *l, const fm_turns *turns, const fm_pairs_plan *plan,
                               char *buffer)
{
    fm_comm     *c       = fm_world_comm(turns->world);
    const size_t n       = (size_t)c->n_rank * MOST_SWEEPS;
    const int    n_sweep = plan->n_step * MOST_SWEEPS <= MOST_STEPS ? MOST_SWEEPS : 1;
    pair         p       = {.comm = c, .buffer = buffer};
    row          r       = {calloc(n, sizeof(double)), calloc(n, sizeof(double)), 0};
    fm_status    rc      = r.latency && r.bandwidth ? FM_OK : fm_fail(FM_E_OOM, "links");
    while (rc == FM_OK && r.n_sweep < n_sweep) rc = sweep(turns, plan, &p, &r);
    if (rc == FM_OK) rc = gather_rows(l, c, &r);
    free(r.latency);
    free(r.bandwidth);
    return rc;
}

/* --- all to all --------------------------------------------------------------------- */

static fm_status measure_all_to_all(fm_links *l, const fm_turns *turns)
{
    fm_comm     *c    = fm_world_comm(turns->world);
    const size_t n    = (size_t)c->n_rank;
    char        *from = calloc(n, PIECE), *to = calloc(n, PIECE);
    size_t      *bytes = calloc(n, sizeof *bytes);
    double       rate[ROUNDS];
    fm_status    rc = from && to && bytes ? FM_OK : fm_fail(FM_E_OOM, "all-to-all");
    for (size_t i = 0; rc == FM_OK && i < n; i++) bytes[i] = PIECE;
    for (int i = -1; rc == FM_OK && i < ROUNDS; i++) { /* the first time, buffers are made */
        rc                 = fm_barrier(c);
        const double began = fm_now();
        if (rc == FM_OK) rc = fm_all_to_all(c, to, bytes, from, bytes);
        double took = fm_now() - began;
        if (rc == FM_OK) rc = fm_barrier(c);
        if (i >= 0) rate[i] = (double)(n - 1) * PIECE / took;
    }
    if (rc == FM_OK) l->all_to_all = fm_rate_of(rate, ROUNDS);
    free(from);
    free(to);
    free(bytes);
    return rc;
}

/* --- the whole ------------------------------------------------------------------------ */

fm_status fm_links_init(fm_links *l, int n_rank)
{
    const size_t n = (size_t)n_rank * (size_t)n_rank;
    *l             = (fm_links){.n_rank    = n_rank,
                                .latency   = calloc(n, sizeof *l->latency),
                                .bandwidth = calloc(n, sizeof *l->bandwidth)};
    if (l->latency && l->bandwidth) return FM_OK;
    fm_links_fini(l);
    return fm_fail(FM_E_OOM, "links of %d ranks", n_rank);
}

void fm_links_fini(fm_links *l)
{
    free(l->latency);
    free(l->bandwidth);
    *l = (fm_links){0};
}

static fm_status measure(fm_links *l, const fm_turns *turns)
{
    const int     n       = l->n_rank;
    int          *machine = calloc((size_t)n, sizeof *machine);
    char         *buffer  = calloc(1, MOST_BYTES);
    fm_pairs_plan plan    = {0};
    fm_status     rc      = machine && buffer ? FM_OK : fm_fail(FM_E_OOM, "links of %d ranks", n);
    for (int i = 0; rc == FM_OK && i < n; i++) machine[i] = fm_world_machine(turns->world, i);
    if (rc == FM_OK) rc = fm_pairs_plan_make(&plan, machine, n, MOST_STEPS);
    if (rc == FM_OK) rc = measure_pairs(l, turns, &plan, buffer);
    if (rc == FM_OK) rc = measure_all_to_all(l, turns);
    fm_pairs_plan_fini(&plan);
    free(machine);
    free(buffer);
    return rc;
}

fm_status fm_links_measure(fm_links *out, const fm_turns *turns)
{
    fm_links l = {0};
    FM_TRY(fm_links_init(&l, fm_world_comm(turns->world)->n_rank));
    const fm_status rc = l.n_rank > 1 ? measure(&l, turns) : FM_OK;
    if (rc == FM_OK)
        *out = l;
    else
        fm_links_fini(&l);
    return rc;
}
