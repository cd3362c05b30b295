/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory: one copy that several processes of a host read, filled by one of them.
 *
 *     the maker                                  the others
 *     fm_host_share_create ──── ticket, by any way ────> fm_host_share_join
 *     writes base[0..bytes)
 *     fm_host_share_settle ──── "it is filled" ────────> fm_host_share_settle
 *
 * The memory is a memfd without a name in any file system: it is freed with the last
 * process that maps it, however that process ends.  A process that joins can neither
 * write nor resize it; after fm_host_share_settle its creator cannot, either. */
#ifndef FM_DEVICE_HOST_SHARE_H
#define FM_DEVICE_HOST_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* What a joining process must know; plain bytes, valid until the maker settles. */
typedef struct {
    int32_t  pid, fd; /* the maker's; pid 0: there is nothing to join */
    uint64_t device, inode, bytes;
} fm_host_ticket;

typedef struct {
    void  *base; /* owned mapping, at a border of huge pages; NULL: none */
    size_t bytes;
    int    fd; /* the maker's until it settles, otherwise -1 */
} fm_host_share;

/* Zeroed.  FM_E_NOSUP where the system has no such memory: use fm_host_alloc. */
fm_status fm_host_share_create(fm_host_share *out, fm_host_ticket *ticket, size_t bytes,
                               const char *what);

/* FM_E_NOSUP when the ticket's memory cannot be reached or is not what the
 * ticket says: another container, another user, a maker that is gone. */
fm_status fm_host_share_join(fm_host_share *out, const fm_host_ticket *ticket);

/* The maker first, then those who joined: from here on read-only, in huge pages
 * where the system can still make them.  `n_thread` work on that; each thread's
 * pages come from its own NUMA node, so that blocks are interleaved over the nodes. */
void fm_host_share_settle(fm_host_share *s, int n_thread);

void fm_host_share_close(fm_host_share *s); /* NULL and never opened are fine */

/* A window: shared memory that all processes may write while it is open; zeroed, small
 * pages.  Errors and closing as above; fm_host_share_settle is not called. */
fm_status fm_host_window_create(fm_host_share *out, fm_host_ticket *ticket, size_t bytes,
                                const char *what);
fm_status fm_host_window_join(fm_host_share *out, const fm_host_ticket *ticket);

#endif
