/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that are the same on several ranks: one block for all of them that are
 * on one host.
 *
 *     open ──> the rank that `fills` writes base ──> ready ──> all read ──> close
 *
 * Ranks say by a number whether theirs is the same content.  Where a block
 * cannot be shared, a rank gets memory of its own and fills it itself; the
 * caller sees no difference but `fills`.
 *
 * open and ready are collective over the world.  Nothing is touched by open:
 * memory is only taken when it is filled, so a plan may still say no. */
#ifndef FM_COMM_SHARED_H
#define FM_COMM_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "comm/world.h"
#include "device/host_share.h"

typedef struct {
    void  *base; /* [bytes] owned; writable while `fills`, until ready */
    size_t bytes;
    int    fills;     /* this rank writes the content; the others only read it */
    int    n_sharer;  /* ranks that read these pages, this one included */
    size_t total;     /* memory of this host this rank may count as its own when it */
    size_t available; /* plans, its block included: the host's, less all blocks (each
                       * once), divided by the ranks there; plus the own block */
    fm_world     *world; /* borrowed */
    fm_host_share share; /* private; base NULL: memory of its own */
} fm_shared;

/* Blocks with the same `content` and size hold the same bytes.  `what` is for
 * messages. */
fm_status fm_shared_open(fm_shared *out, fm_world *w, uint64_t content, size_t bytes,
                         const char *what);

/* After filling; `n_thread` may help.  Waits, without limit, until all blocks
 * of the world are filled. */
fm_status fm_shared_ready(fm_shared *s, int n_thread);

void fm_shared_close(fm_shared *s); /* NULL and never opened are fine; not collective */

#endif
