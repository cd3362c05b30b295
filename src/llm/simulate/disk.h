/* SPDX-License-Identifier: Apache-2.0 */
/* A disk in a simulation: which pages it holds, and when those that are being read and written are
 * done.  One page at a time moves at the disk's rate, reads before writes, as in tier/store.h; the
 * page used longest ago makes room when the disk is full.  It begins empty. */
#ifndef FM_LLM_SIMULATE_DISK_H
#define FM_LLM_SIMULATE_DISK_H

#include "llm/tier/store.h"
#include "llm/tier_policy/host_books.h"

typedef struct {
    fm_page_hash   key;
    double         asked; /* when */
    fm_slot_state *slot;  /* a read: becomes FM_SLOT_READY */
    int           *free;  /* a write: so many buffers are free; one more then */
} fm__disk_job;

typedef struct {
    fm__disk_job *job; /* [cap] a ring; owned */
    int           cap, first, n;
} fm__disk_queue;

typedef struct {
    double         read_s, write_s; /* seconds of a page */
    fm_host_books  held;
    fm__disk_queue reads, writes;
    fm__disk_job   now;  /* being read or written, while is_busy */
    double         ends; /* when that is done, or the last one was */
    int            is_busy;
} fm__disk;

/* n_page: that it can hold; at most so many reads and writes are asked for at once. */
fm_status fm__disk_open(fm__disk *d, int32_t n_page, int n_read, int n_write);
void      fm__disk_close(fm__disk *d); /* {0} is fine */

void fm__disk_read(fm__disk *d, fm_page_hash key, double now, fm_slot_state *slot);
void fm__disk_write(fm__disk *d, fm_page_hash key, double now, int *free);

void   fm__disk_advance(fm__disk *d, double now); /* what is done by then is done */
double fm__disk_next(const fm__disk *d);          /* when the next page is done; INFINITY: none */

#endif
