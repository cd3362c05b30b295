/* SPDX-License-Identifier: Apache-2.0 */
/* Prefaulting: memory of a large pool is backed by pages before it is written, so that the writer
 * does not wait for page faults.  A page fault zeroes a page (2 MiB if it is huge); in a virtual
 * machine whose host has not backed the memory either, it takes milliseconds.
 *
 *     pool    layer 0  part 0 |###.........|  part 1 |#...........|   a unit has bytes in every
 *             layer 1  part 0 |###.........|  part 1 |#...........|   layer of one part
 *             ...                ^        ^
 *                                |        backed up to here, in all parts: by fm_prefault_create,
 *                                |        then by a thread
 *                                highest unit written so far (fm_prefault_reach), and `ahead` more
 *
 * Units of a part are written in about ascending order.  No more than `ahead` units beyond the
 * highest one are backed, rounded up to a huge page in each layer, and none when the host's memory
 * is short.  The thread works only while nothing else does (between fm_prefault_pause and
 * fm_prefault_resume it waits), a huge page at a time.  Contents never change.  Where the system
 * cannot prefault (before Linux 5.14), nothing happens. */
#ifndef FM_DEVICE_HOST_PREFAULT_H
#define FM_DEVICE_HOST_PREFAULT_H

#include <stddef.h>

#include "base/status.h"
#include "device/host_threads.h"

/* Backs [p, p + bytes) by n_thread threads; stops after `seconds`, and before the host's memory
 * gets short.  How many bytes, from the start, are backed; 0 where the system cannot. */
size_t fm_host_prefault(void *p, size_t bytes, int n_thread, double seconds);

typedef struct {
    char             *base; /* of fm_host_alloc; borrowed */
    int               n_layer, n_part;
    size_t            layer_bytes, unit_bytes; /* of a unit in a layer */
    int               n_unit;                  /* of a part */
    int               ahead;                   /* units */
    int               n_thread;                /* of fm_prefault_create itself, */
    double            seconds;                 /* which takes at most about so long */
    const fm_threads *team; /* the thread does not keep to its places; may be NULL */
} fm_prefault_options;

typedef struct fm_prefault fm_prefault;

/* Backs the first `ahead` units of all parts, and starts the thread if there are more. */
fm_status fm_prefault_create(fm_prefault **out, const fm_prefault_options *o);
void      fm_prefault_destroy(fm_prefault *p); /* before the memory is freed; NULL is fine */

/* Units [0, n_unit) of a part are about to be written.  By one thread, as the next two; none
 * allocates. */
void fm_prefault_reach(fm_prefault *p, int n_unit);
void fm_prefault_pause(fm_prefault *p);
void fm_prefault_resume(fm_prefault *p);

int fm_prefault_backed(fm_prefault *p); /* first units of a part that are backed in all layers */

#endif
