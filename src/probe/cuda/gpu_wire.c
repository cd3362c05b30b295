/* SPDX-License-Identifier: Apache-2.0 */
/* Links measured by NCCL from GPU to GPU.
 *
 * The leader of a pair announces each measurement to its server by a message; both record
 * the same sends and receives as a graph, as a decode step has them, so that the time a host needs
 * to launch each is not part of the result.  The server launches all repeats at once and waits on
 * the device; the leader times each but the first.
 *
 * A failure of NCCL goes to `why` and aborts the communicator; orders are still answered, so that
 * both sides of a pair come to its end. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "comm/device_comm.h"
#include "device/cuda/device.h"
#include "device/cuda/graph.h"
#include "probe/gpu_wire.h"

enum {
    TAG         = 1,
    SHORT_BYTES = 8,
    FIRST_BYTES = 1 << 20,
    MOST_BYTES  = 64 << 20,
    BURST       = 8, /* long messages, one behind the other */
    MOST_ROUNDS = 50,
    REPEATS     = 3,
    PIECE_BYTES = 1 << 20, /* all-to-all: to each rank, at most */
    EXCHANGES   = 8        /* all-to-alls in a graph */
};
#define PING_S 2e-3     /* for the pings of a graph */
#define ENOUGH_S 2e-3   /* a burst that takes this long is long enough */
#define PATIENCE_S 20.0 /* for work on the device; less than a host waits for an order */

typedef struct {
    fm_link_wire    base;
    fm_comm        *comm; /* the world's: carries orders */
    const int      *group_rank;
    fm_device_comm *nccl;
    fm_stream       stream;
    char           *from, *to; /* [MOST_BYTES] on the device */
    double          patience;
} gpu_wire;

static gpu_wire *of(fm_link_wire *w) { return (gpu_wire *)w; }

/* What the leader asks for: `rounds` times, `burst` messages of `bytes` from it, then a short one
 * back. */
typedef struct {
    int64_t bytes;
    int32_t burst, rounds;
    int32_t launches;  /* of what was recorded; 0: it is over */
    int32_t is_direct; /* not recorded: connections are made by the first messages */
} order;

/* --- on the device ------------------------------------------------------------------ */

static fm_status wait_for_device(const gpu_wire *w)
{
    const double until = fm_now() + w->patience;
    for (int done = 0;;) {
        FM_TRY(fm_cuda_stream_is_done(w->stream, &done));
        if (done) return FM_OK;
        FM_TRY(fm_device_comm_check(w->nccl));
        if (fm_now() > until)
            return fm_fail(FM_E_DEVICE, "NCCL: no answer from another GPU for %.3g s", w->patience);
        sched_yield();
    }
}

static fm_status put_messages(const gpu_wire *w, const order *o, int peer, int leads)
{
    const size_t bytes = (size_t)o->bytes;
    for (int r = 0; r < o->rounds; r++) {
        for (int b = 0; b < o->burst; b++)
            FM_TRY(leads ? fm_device_send(w->nccl, w->from, bytes, peer, w->stream)
                         : fm_device_recv(w->nccl, w->to, bytes, peer, w->stream));
        FM_TRY(leads ? fm_device_recv(w->nccl, w->to, SHORT_BYTES, peer, w->stream)
                     : fm_device_send(w->nccl, w->from, SHORT_BYTES, peer, w->stream));
    }
    return FM_OK;
}

static fm_status record(const gpu_wire *w, const order *o, int peer, int leads, fm_graph *out)
{
    FM_TRY(fm_cuda_record_begin(w->stream));
    const fm_status rc    = put_messages(w, o, peer, leads);
    const fm_status ended = fm_cuda_record_end(w->stream, out);
    return rc != FM_OK ? rc : ended;
}

/* Seconds of the fastest launch; the first waits for the other side to begin and does not count. */
static fm_status time_launches(const gpu_wire *w, fm_graph g, int n, double *best)
{
    for (int i = 0; i < n; i++) {
        const double began = fm_now();
        FM_TRY(fm_cuda_graph_start(g, w->stream));
        FM_TRY(wait_for_device(w));
        const double took = fm_now() - began;
        if (i == 1 || (i > 1 && took < *best)) *best = took;
    }
    return FM_OK;
}

static fm_status launch_all(const gpu_wire *w, fm_graph g, int n)
{
    for (int i = 0; i < n; i++) FM_TRY(fm_cuda_graph_start(g, w->stream));
    return wait_for_device(w);
}

static fm_status carry_out(const gpu_wire *w, const order *o, int peer, int leads, double *best)
{
    fm_graph g = NULL;
    if (o->is_direct) {
        FM_TRY(put_messages(w, o, peer, leads));
        return wait_for_device(w);
    }
    fm_status rc = record(w, o, peer, leads, &g);
    if (rc == FM_OK)
        rc = leads ? time_launches(w, g, o->launches, best) : launch_all(w, g, o->launches);
    fm_cuda_graph_destroy(g);
    return rc;
}

/* What happened here concerns NCCL and this GPU, not the world's group. */
static void settle(gpu_wire *w, fm_status rc)
{
    if (rc == FM_OK || w->base.why[0]) return;
    snprintf(w->base.why, sizeof w->base.why, "%.159s", fm_why());
    fm_device_comm_abort(w->nccl, w->base.why);
}

/* --- one pair ------------------------------------------------------------------------- */

static fm_status ask(gpu_wire *w, int peer, order o, double *best)
{
    *best = 0;
    if (w->base.why[0]) return FM_OK;
    FM_TRY(fm_send(w->comm, &o, sizeof o, peer, TAG));
    settle(w, carry_out(w, &o, w->group_rank[peer], 1, best));
    return FM_OK;
}

static fm_status lead_pings(gpu_wire *w, int peer, double *latency)
{
    double took = 0;
    FM_TRY(ask(w, peer, (order){SHORT_BYTES, 1, 1, 1, 1}, &took));
    FM_TRY(ask(w, peer, (order){SHORT_BYTES, 1, 1, 2, 0}, &took));
    const int rounds = took * MOST_ROUNDS < PING_S ? MOST_ROUNDS
                       : took < PING_S             ? (int)(PING_S / took)
                                                   : 1;
    FM_TRY(ask(w, peer, (order){SHORT_BYTES, 1, rounds, 1 + REPEATS, 0}, &took));
    *latency = took / (2 * rounds);
    return FM_OK;
}

/* Longer and longer messages, until a burst takes long enough to be measured. */
static fm_status lead_long(gpu_wire *w, int peer, double latency, double *bandwidth)
{
    int64_t bytes = FIRST_BYTES;
    double  took  = 0;
    for (;; bytes *= 4) {
        FM_TRY(ask(w, peer, (order){bytes, BURST, 1, 2, 0}, &took));
        if (took > ENOUGH_S || bytes >= MOST_BYTES) break;
    }
    FM_TRY(ask(w, peer, (order){bytes, BURST, 1, 1 + REPEATS, 0}, &took));
    const double moving = took > 2 * latency ? took - latency : took;
    if (moving > 0) *bandwidth = (double)bytes * BURST / moving;
    return FM_OK;
}

static fm_status lead(fm_link_wire *base, int peer, double *latency, double *bandwidth)
{
    gpu_wire   *w    = of(base);
    const order over = {0};
    FM_TRY(lead_pings(w, peer, latency));
    FM_TRY(lead_long(w, peer, *latency, bandwidth));
    return fm_send(w->comm, &over, sizeof over, peer, TAG);
}

static int is_sound(const order *o)
{
    return o->bytes >= SHORT_BYTES && o->bytes <= MOST_BYTES && o->burst > 0 && o->burst <= BURST &&
           o->rounds > 0 && o->rounds <= MOST_ROUNDS && o->launches <= 1 + REPEATS;
}

static fm_status serve(fm_link_wire *base, int peer)
{
    gpu_wire *w = of(base);
    for (;;) {
        order o;
        FM_TRY(fm_recv(w->comm, &o, sizeof o, peer, TAG));
        if (o.launches == 0) return FM_OK;
        if (!is_sound(&o)) return fm_fail(FM_E_COMM, "rank %d sends nonsense", peer);
        if (!w->base.why[0]) settle(w, carry_out(w, &o, w->group_rank[peer], 0, NULL));
    }
}

/* --- all to all --------------------------------------------------------------------------- */

static fm_status record_exchanges(const gpu_wire *w, const fm_device_exchange *x, fm_graph *out)
{
    fm_status rc = fm_device_all_to_all(w->nccl, x, w->stream); /* makes the connections */
    if (rc == FM_OK) rc = wait_for_device(w);
    FM_TRY(rc);
    FM_TRY(fm_cuda_record_begin(w->stream));
    for (int i = 0; rc == FM_OK && i < EXCHANGES; i++)
        rc = fm_device_all_to_all(w->nccl, x, w->stream);
    const fm_status ended = fm_cuda_record_end(w->stream, out);
    return rc != FM_OK ? rc : ended;
}

/* Ranks begin together: each launch ends when all have sent, and the first does not count. */
static fm_status time_exchanges(const gpu_wire *w, const fm_device_exchange *x, double bytes,
                                double *rate, int n)
{
    fm_graph  g  = NULL;
    fm_status rc = record_exchanges(w, x, &g);
    for (int i = -1; rc == FM_OK && i < n; i++) {
        const double began = fm_now();
        rc                 = fm_cuda_graph_start(g, w->stream);
        if (rc == FM_OK) rc = wait_for_device(w);
        if (i >= 0) rate[i] = EXCHANGES * bytes / (fm_now() - began);
    }
    fm_cuda_graph_destroy(g);
    return rc;
}

static fm_status all_to_all(fm_link_wire *base, double *rate, int n_round)
{
    gpu_wire    *w = of(base);
    const int    n = w->nccl->group->n_rank, me = w->nccl->group->rank;
    const size_t piece = MOST_BYTES / n < PIECE_BYTES ? (size_t)(MOST_BYTES / n) : PIECE_BYTES;
    size_t      *at = calloc((size_t)n, sizeof *at), *bytes = calloc((size_t)n, sizeof *bytes);
    fm_status    rc = at && bytes ? FM_OK : fm_fail(FM_E_OOM, "all-to-all of %d GPUs", n);
    for (int i = 0; rc == FM_OK && i < n; i++) {
        at[i]    = (size_t)i * piece;
        bytes[i] = i == me ? 0 : piece;
    }
    const fm_device_exchange x = {w->from, w->to, at, bytes, at, bytes};
    if (rc == FM_OK) rc = time_exchanges(w, &x, (double)(n - 1) * (double)piece, rate, n_round);
    settle(w, rc);
    free(at);
    free(bytes);
    return FM_OK;
}

/* --- life ------------------------------------------------------------------------------ */

fm_status fm_gpu_wire_find(void) { return fm_device_comm_find_nccl(); }

static fm_status open_wire(gpu_wire *w, fm_comm *group)
{
    FM_TRY(fm_cuda_stream_create(&w->stream));
    FM_TRY(fm_cuda_alloc((void **)&w->from, MOST_BYTES, "messages to another GPU"));
    FM_TRY(fm_cuda_alloc((void **)&w->to, MOST_BYTES, "messages of another GPU"));
    FM_TRY(fm_cuda_clear(w->from, MOST_BYTES, w->stream));
    FM_TRY(fm_cuda_stream_wait(w->stream));
    return fm_device_comm_try_nccl(&w->nccl, group);
}

fm_status fm_gpu_wire_open(fm_link_wire **out, const fm_turns *turns, fm_comm *group,
                           const int *group_rank)
{
    const double third = turns->patience / 3;
    gpu_wire    *w     = calloc(1, sizeof *w);
    if (!w) return fm_fail(FM_E_OOM, "links between GPUs");
    *w = (gpu_wire){.base       = {.lead = lead, .serve = serve, .all_to_all = all_to_all},
                    .comm       = fm_world_comm(turns->world),
                    .group_rank = group_rank,
                    .patience   = third < PATIENCE_S ? third : PATIENCE_S};
    const fm_status rc = open_wire(w, group);
    if (rc == FM_OK)
        *out = &w->base;
    else
        fm_gpu_wire_close(&w->base);
    return rc;
}

void fm_gpu_wire_close(fm_link_wire *base)
{
    gpu_wire *w = of(base);
    if (!w) return;
    fm_device_comm_close(w->nccl);
    fm_cuda_free(w->from);
    fm_cuda_free(w->to);
    fm_cuda_stream_destroy(w->stream);
    free(w);
}
