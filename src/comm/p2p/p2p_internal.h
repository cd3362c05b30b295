/* SPDX-License-Identifier: Apache-2.0 */
/* A group over sends and receives: its members, the state of each job in flight, and the
 * step functions of the collectives. */
#ifndef FM_COMM_P2P_P2P_INTERNAL_H
#define FM_COMM_P2P_P2P_INTERNAL_H

#include "comm/p2p/p2p.h"

/* Up to this many bytes a sum takes log2(n) rounds of whole messages; above,
 * every rank adds its own block and the blocks are gathered: twice the
 * message over the wire, however many ranks.  The bits are the same. */
enum { FM__SHORT_SUM_BYTES = 16 << 10 };

typedef struct {
    fm_wire_request request;
    int             peer;  /* in the group */
    size_t          bytes; /* a receive must bring exactly these; FM__IS_SEND for sends */
} fm__message;

#define FM__IS_SEND ((size_t)-1)

/* What one job in flight needs. */
typedef struct {
    int          in_use, tag;
    int          step; /* of the collective's function */
    size_t       at;   /* bytes already dealt with, by sums longer than the scratch */
    int          n_message, n_arrived;
    fm__message *message; /* [2 n_rank] */
    void       **part;    /* [n_rank] */
    char        *scratch; /* [n_rank * piece] */
} fm__flight;

typedef struct fm__group {
    fm_comm  comm; /* first: a group is an fm_comm */
    fm_wire *wire;
    int     *member; /* [n_rank] world ranks */
    int      context;
    unsigned n_collective;
    size_t   piece; /* bytes of one rank's block that the scratch can take */
    fm__flight slot[FM_COMM_IN_FLIGHT];
    void    *block; /* holds all of the above arrays */

    struct fm__group *next_abandoned;
} fm__group;

/* Set *more to 0 when the collective is complete. */
typedef fm_status fm__step(fm__group *g, fm__flight *s, const fm_comm_call *call, int *more);

fm__step fm__barrier_step, fm__broadcast_step, fm__all_gather_step, fm__all_to_all_step;
fm__step fm__send_step, fm__recv_step;
fm__step fm__all_reduce_step;

/* Messages of the current step; zero bytes are sent like any other. */
fm_status fm__post_send(fm__group *g, fm__flight *s, int to, const void *p, size_t bytes);
fm_status fm__post_recv(fm__group *g, fm__flight *s, int from, void *p, size_t bytes);

#endif
