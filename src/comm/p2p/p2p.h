/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over sends and receives.
 *
 * A wire moves messages between the ranks of a world; a transport that has
 * one gets every collective from here.  Each collective is a function that is
 * called whenever all messages of its last step have arrived: it does the
 * arithmetic, posts the next step's messages and returns, so a job never
 * blocks and several can run side by side.
 *
 *     poll: while (no message pending) step(): post, post, post ... or finished
 *
 * Messages between two ranks with one tag arrive in the order they were sent;
 * nothing else is asked of a wire. */
#ifndef FM_COMM_P2P_P2P_H
#define FM_COMM_P2P_P2P_H

#include "comm/comm.h"

typedef struct fm_wire fm_wire;

/* A message under way, in the wire's own words. */
typedef union {
    void *pointer;
    int   number;
} fm_wire_request;

typedef struct {
    fm_status (*send)(fm_wire *w, const void *p, size_t bytes, int to, int tag, fm_wire_request *r);
    fm_status (*recv)(fm_wire *w, void *p, size_t bytes, int from, int tag, fm_wire_request *r);
    fm_status (*test)(fm_wire *w, fm_wire_request *r, int *done,
                      size_t *bytes); /* bytes: of a receive */
} fm_wire_ops;

struct fm_wire {
    const fm_wire_ops *ops;
    int                max_tag;      /* at least 2^15 - 1 */
    int                next_context; /* groups made so far; part of their tags */
};

typedef struct {
    const char *name;
    const int  *member; /* [n_rank] world ranks; copied */
    int         rank, n_rank;
    int         context; /* distinct among groups that share two ranks */
    size_t      scratch_bytes;
    fm_world   *world; /* or NULL */
} fm__group_plan;

/* A group of two or more.  Borrows the wire. */
fm_status fm__group_create(fm_comm **out, fm_wire *wire, const fm__group_plan *plan);

#endif
