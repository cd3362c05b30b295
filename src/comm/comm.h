/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks.  A group is some of the processes of a job; its transport is a
 * record of functions, one folder each:
 *
 *     self/   a group of one: nothing to send, costs nothing
 *     p2p/    every collective, written over sends and receives
 *     mpi/    the sends and receives p2p/ needs, by MPI
 *
 *     fm_comm_call ──start──> fm_comm_job ──test, wait──> done
 *
 * A call is a value that describes what to do; starting it gives a job in the
 * caller's storage, and up to FM_COMM_IN_FLIGHT jobs of a group may overlap
 * with each other and with computing.  A job moves when it is tested or waited
 * for; nothing moves it in the background.  All ranks of a group start the
 * same collectives in the same order.  Zero bytes are legal everywhere.
 *
 * Sums are exact in this sense: the ranks' numbers are added in the binary
 * tree of comm/tree.h, by rank, whatever the message's length and whichever
 * algorithm carried it, so every rank holds the same bits.
 *
 * Threads: one thread at a time uses the groups of a world.
 *
 * Ownership: buffers and count arrays are borrowed until the job is done.
 * No call allocates; scratch and requests are made with the group.
 *
 * Every call returns FM_E_COMM, with a sentence naming the rank, when a peer
 * failed or did not answer in time; none ever hangs.  Such a group is broken:
 * later calls on it fail at once. */
#ifndef FM_COMM_COMM_H
#define FM_COMM_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct fm_comm       fm_comm;
typedef struct fm_world      fm_world;
typedef struct fm_comm_stats fm_comm_stats;

#define FM_COMM_KIND_MAP(X)                                                                        \
    X(BARRIER, "barrier")                                                                          \
    X(BROADCAST, "broadcast")                                                                      \
    X(ALL_REDUCE, "all_reduce")                                                                    \
    X(ALL_REDUCE_F64, "all_reduce_f64")                                                            \
    X(ALL_GATHER, "all_gather")                                                                    \
    X(ALL_TO_ALL, "all_to_all")                                                                    \
    X(SEND, "send")                                                                                \
    X(RECV, "recv")

typedef enum {
#define FM_COMM_KIND_ENUM(name, text) FM_COMM_##name,
    FM_COMM_KIND_MAP(FM_COMM_KIND_ENUM)
#undef FM_COMM_KIND_ENUM
    FM_N_COMM_KIND
} fm_comm_kind;

enum { FM_COMM_IN_FLIGHT = 4, FM_COMM_MAX_TAG = 127 };

/* What to do.  Pieces of src and dst lie one after the other in rank order. */
typedef struct {
    fm_comm_kind  kind;
    int           peer; /* BROADCAST: root; SEND, RECV: the other side */
    int           tag;  /* SEND, RECV: 0..FM_COMM_MAX_TAG */
    const void   *src;
    void         *dst;
    size_t        n;      /* ALL_REDUCE: numbers; BROADCAST, SEND, RECV: bytes */
    const size_t *send_n; /* [n_rank] ALL_TO_ALL: bytes to each rank */
    const size_t *recv_n; /* [n_rank] bytes from each rank */
} fm_comm_call;

/* A call under way.  Callers look at nothing inside. */
typedef struct {
    fm_comm     *comm;
    fm_comm_call call;
    int          slot; /* the transport's */
    int          is_done;
    uint32_t     serial; /* counts the collectives of the group, alike on its ranks */
    double       began;  /* fm_now() of the start */
    double       busy_s; /* spent in start, test and wait so far */
} fm_comm_job;

typedef struct {
    int         color;         /* ranks of one colour form a group; negative: in none */
    int         key;           /* order in the new group; ties by rank */
    const char *name;          /* for reports and messages, at most 15 characters */
    size_t      scratch_bytes; /* per job; longer sums go through it in pieces */
} fm_comm_part;

typedef struct {
    const char *name;
    fm_status (*start)(fm_comm *c, fm_comm_job *job); /* FM_E_FULL: all jobs are in flight */
    fm_status (*poll)(fm_comm *c, fm_comm_job *job);  /* sets is_done */
    int (*awaits)(const fm_comm *c, const fm_comm_job *job); /* a world rank; -1: none */
    fm_status (*split)(fm_comm *c, const fm_comm_part *part, fm_comm **out);
    void (*close)(fm_comm *c);
} fm_comm_ops;

struct fm_comm {
    const fm_comm_ops *ops;
    int                rank, n_rank;
    fm_world          *world; /* borrowed; NULL outside a world */
    fm_comm_stats     *stats; /* borrowed; NULL: calls are not counted */
    int                is_broken;
    uint32_t           id;       /* of the group, alike on its ranks; 0: a group of one */
    uint32_t           n_serial; /* collectives started */
};

fm_comm fm_comm_self(void); /* the group of this process alone, outside any world */

/* The same call on all ranks of `parent`.  *out is NULL for a negative
 * colour.  FM_E_ARG where ranks of one colour ask for different scratch. */
fm_status fm_comm_split(fm_comm *parent, const fm_comm_part *part, fm_comm **out);
void      fm_comm_close(fm_comm *c); /* what split gave; NULL is fine; no job may be in flight */

fm_status fm_comm_start(fm_comm *c, fm_comm_job *job, fm_comm_call call);
fm_status fm_comm_test(fm_comm_job *job, int *done);
fm_status fm_comm_wait(fm_comm_job *job);

/* Without a limit, for a rank that may have nothing to do for hours; nearly no
 * processor time passes.  A rank that is lost still ends it. */
fm_status fm_comm_wait_idle(fm_comm_job *job);
fm_status fm_comm_run(fm_comm *c, fm_comm_call call); /* start and wait */

const char *fm_comm_kind_name(fm_comm_kind k);

/* Calls.  dst and src may not overlap, except that the own piece of an
 * all-gather may already be in its place. */
static inline fm_comm_call fm_call_barrier(void)
{
    return (fm_comm_call){.kind = FM_COMM_BARRIER};
}

static inline fm_comm_call fm_call_broadcast(void *buf, size_t bytes, int root)
{
    return (fm_comm_call){.kind = FM_COMM_BROADCAST, .dst = buf, .n = bytes, .peer = root};
}

static inline fm_comm_call fm_call_all_reduce_f32(float *x, size_t n) /* in place */
{
    return (fm_comm_call){.kind = FM_COMM_ALL_REDUCE, .dst = x, .n = n};
}

static inline fm_comm_call fm_call_all_reduce_f64(double *x, size_t n) /* in place */
{
    return (fm_comm_call){.kind = FM_COMM_ALL_REDUCE_F64, .dst = x, .n = n};
}

static inline fm_comm_call fm_call_all_gather(void *dst, const void *src, const size_t *bytes)
{
    return (fm_comm_call){.kind = FM_COMM_ALL_GATHER, .dst = dst, .src = src, .recv_n = bytes};
}

static inline fm_comm_call fm_call_all_to_all(void *dst, const size_t *recv_bytes, const void *src,
                                              const size_t *send_bytes)
{
    return (fm_comm_call){.kind   = FM_COMM_ALL_TO_ALL,
                          .dst    = dst,
                          .src    = src,
                          .recv_n = recv_bytes,
                          .send_n = send_bytes};
}

static inline fm_comm_call fm_call_send(const void *buf, size_t bytes, int to, int tag)
{
    return (fm_comm_call){.kind = FM_COMM_SEND, .src = buf, .n = bytes, .peer = to, .tag = tag};
}

static inline fm_comm_call fm_call_recv(void *buf, size_t bytes, int from, int tag)
{
    return (fm_comm_call){.kind = FM_COMM_RECV, .dst = buf, .n = bytes, .peer = from, .tag = tag};
}

/* The same, waited for. */
static inline fm_status fm_barrier(fm_comm *c)
{
    return c->n_rank == 1 ? FM_OK : fm_comm_run(c, fm_call_barrier());
}

static inline fm_status fm_broadcast(fm_comm *c, void *buf, size_t bytes, int root)
{
    return c->n_rank == 1 ? FM_OK : fm_comm_run(c, fm_call_broadcast(buf, bytes, root));
}

static inline fm_status fm_all_reduce_f32(fm_comm *c, float *x, size_t n)
{
    return c->n_rank == 1 ? FM_OK : fm_comm_run(c, fm_call_all_reduce_f32(x, n));
}

static inline fm_status fm_all_reduce_f64(fm_comm *c, double *x, size_t n)
{
    return c->n_rank == 1 ? FM_OK : fm_comm_run(c, fm_call_all_reduce_f64(x, n));
}

static inline fm_status fm_all_gather(fm_comm *c, void *dst, const void *src, const size_t *bytes)
{
    return fm_comm_run(c, fm_call_all_gather(dst, src, bytes));
}

static inline fm_status fm_all_to_all(fm_comm *c, void *dst, const size_t *recv_bytes,
                                      const void *src, const size_t *send_bytes)
{
    return fm_comm_run(c, fm_call_all_to_all(dst, recv_bytes, src, send_bytes));
}

static inline fm_status fm_send(fm_comm *c, const void *buf, size_t bytes, int to, int tag)
{
    return fm_comm_run(c, fm_call_send(buf, bytes, to, tag));
}

static inline fm_status fm_recv(fm_comm *c, void *buf, size_t bytes, int from, int tag)
{
    return fm_comm_run(c, fm_call_recv(buf, bytes, from, tag));
}

#endif
