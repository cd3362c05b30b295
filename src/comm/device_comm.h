/* SPDX-License-Identifier: Apache-2.0 */
/* A group's collectives on device memory, in the order of a stream.  Beside each
 * group of comm/comm.h whose ranks have GPUs stands one of these:
 *
 *     nccl/    put into the stream like a kernel; the host goes on, and a stream
 *              may be recorded
 *     staged/  device -> pinned host memory -> the group -> device: waits for the
 *              stream at every call; for machines without NCCL, and for tests
 *
 * All ranks of a group make the same calls in the same order.  Bytes are moved,
 * nothing is added.  Zero bytes are legal everywhere.
 *
 * A rank that is lost does not wake a thread that waits for the device: while
 * waiting, ask fm_device_comm_check() from time to time.  Its fault is
 * FM_E_COMM and ends the group. */
#ifndef FM_COMM_DEVICE_COMM_H
#define FM_COMM_DEVICE_COMM_H

#include "comm/comm.h"
#include "device/cuda/stream.h"

typedef struct fm_device_comm fm_device_comm;

/* Piece i of src goes to rank i, piece i of dst comes from rank i. */
typedef struct {
    const void   *src;
    void         *dst;
    const size_t *send_at, *send_n; /* [n_rank] bytes before a piece, and its bytes */
    const size_t *recv_at, *recv_n;
} fm_device_exchange;

typedef struct {
    const char *name;
    int         can_record; /* a recorded stream takes these calls */
    fm_status (*all_gather)(fm_device_comm *c, void *dst, const void *src, const size_t *bytes,
                            fm_stream s);
    fm_status (*all_to_all)(fm_device_comm *c, const fm_device_exchange *x, fm_stream s);
    fm_status (*send)(fm_device_comm *c, const void *src, size_t bytes, int to, fm_stream s);
    fm_status (*recv)(fm_device_comm *c, void *dst, size_t bytes, int from, fm_stream s);
    fm_status (*broadcast)(fm_device_comm *c, void *buf, size_t bytes, int root, fm_stream s);
    fm_status (*check)(fm_device_comm *c);
    void (*abort)(fm_device_comm *c, const char *why);
    void (*close)(fm_device_comm *c);
} fm_device_comm_ops;

struct fm_device_comm {
    const fm_device_comm_ops *ops;
    fm_comm                  *group; /* borrowed */
};

/* Pinned memory through which staged calls go, one for all groups of a run.
 * `bytes` hold what one call sends and what it receives, together. */
typedef struct {
    char  *bytes;
    size_t size;
} fm_staging;

/* By all ranks of the group.  FM_E_NOSUP: this build has no NCCL. */
fm_status fm_device_comm_open_staged(fm_device_comm **out, fm_comm *group, fm_staging room);
fm_status fm_device_comm_open_nccl(fm_device_comm **out, fm_comm *group);

/* As fm_device_comm_open_nccl, for callers who can do without: a failure, now or later, breaks the
 * group, but the job goes on.  Every rank must have found NCCL before. */
fm_status fm_device_comm_try_nccl(fm_device_comm **out, fm_comm *group);

/* Is NCCL there?  FM_E_NOSUP, saying why not. */
fm_status fm_device_comm_find_nccl(void);

static inline void fm_device_comm_close(fm_device_comm *c) /* NULL is fine */
{
    if (c) c->ops->close(c);
}

/* Pieces of dst lie one behind the other in rank order; the own one may already
 * be in its place. */
static inline fm_status fm_device_all_gather(fm_device_comm *c, void *dst, const void *src,
                                             const size_t *bytes, fm_stream s)
{
    return c->ops->all_gather(c, dst, src, bytes, s);
}

static inline fm_status fm_device_all_to_all(fm_device_comm *c, const fm_device_exchange *x,
                                             fm_stream s)
{
    return c->ops->all_to_all(c, x, s);
}

/* In the order of calls; the buffer is free again in the order of the stream. */
static inline fm_status fm_device_send(fm_device_comm *c, const void *src, size_t bytes, int to,
                                       fm_stream s)
{
    return bytes ? c->ops->send(c, src, bytes, to, s) : FM_OK;
}

static inline fm_status fm_device_recv(fm_device_comm *c, void *dst, size_t bytes, int from,
                                       fm_stream s)
{
    return bytes ? c->ops->recv(c, dst, bytes, from, s) : FM_OK;
}

static inline fm_status fm_device_broadcast(fm_device_comm *c, void *buf, size_t bytes, int root,
                                            fm_stream s)
{
    return bytes ? c->ops->broadcast(c, buf, bytes, root, s) : FM_OK;
}

static inline fm_status fm_device_comm_check(fm_device_comm *c)
{
    return c->ops->check(c);
}

/* Ends this rank's work that waits for other ranks on the device; later calls fail with
 * FM_E_COMM. */
static inline void fm_device_comm_abort(fm_device_comm *c, const char *why)
{
    c->ops->abort(c, why);
}

#endif
