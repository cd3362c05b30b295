/* SPDX-License-Identifier: Apache-2.0 */
/* The watch detects failed ranks by heartbeats: one thread per rank.
 *
 *     rank 1 ──┐
 *     rank 2 ──┼──TCP── rank 0     every 100 ms, both ways: alive, and doing this
 *     rank 3 ──┘
 *
 * A rank is lost when its connection ends without a goodbye frame, or when no heartbeat
 * has arrived for comm_silence seconds.  Rank 0 decides, informs the others and prints; if
 * rank 0 is lost, each rank decides for itself and rank 1 prints.  The watch does not use
 * the transport of the collectives, so it works when they are stuck. */
#ifndef FM_COMM_WATCH_H
#define FM_COMM_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "comm/comm.h"

typedef struct fm__watch fm__watch;

enum { FM__DOOR_ADDRESSES = 16 };

/* Where rank 0 listens, as it is sent to the other ranks. */
typedef struct {
    uint64_t cookie; /* strangers do not know it */
    uint32_t port;   /* 0: rank 0 could not listen */
    uint32_t n_address;
    struct {
        uint32_t is_v6;
        uint8_t  at[16];
    } address[FM__DOOR_ADDRESSES];
} fm__door;

typedef struct {
    int         rank, n_rank;
    double      silence_s;
    const char *interface;                         /* rank 0: name, or NULL */
    const char *(*host)(const void *of, int rank); /* of any rank, for messages */
    const void *of;
} fm__watch_plan;

fm_status fm__watch_create(fm__watch **out, const fm__watch_plan *plan);
fm_status fm__watch_listen(fm__watch *w, fm__door *door);     /* rank 0 */
fm_status fm__watch_link(fm__watch *w, const fm__door *door); /* all; rank 0 waits for the others */
fm_status fm__watch_start(fm__watch *w);
void      fm__watch_close(fm__watch *w); /* says goodbye; NULL is fine */

void fm__watch_doing(fm__watch *w, const char *text);
void fm__watch_count(fm__watch *w);
void fm__watch_waits(fm__watch *w, fm_comm_kind k, int for_rank);

/* The next number of counter `key` in `round`, from rank 0's table: at once on
 * rank 0, by one message there and back elsewhere.  Any thread. */
fm_status fm__watch_number(fm__watch *w, uint64_t key, uint64_t round, double timeout_s,
                           uint64_t *number);

/* Tells all ranks; this process has exited when it returns, at most two seconds later. */
_Noreturn void fm__watch_abort(fm__watch *w, const char *text);

#endif
