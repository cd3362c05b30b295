/* SPDX-License-Identifier: Apache-2.0 */
/* The file tier's state: jobs, one per slot and buffer, the queues of those that wait for
 * a thread, and the set of pages that the directory is known to have. */
#ifndef FM_LLM_TIER_STORE_INTERNAL_H
#define FM_LLM_TIER_STORE_INTERNAL_H

#include <pthread.h>

#include "llm/tier/disk.h"
#include "llm/tier/key_set.h"
#include "llm/tier/page_dir.h"
#include "llm/tier/store.h"

enum { FM__NO_JOB = -1, FM__STORE_THREADS = 64 };

typedef struct {
    fm_slot_state state; /* of buffers IDLE or BUSY */
    fm_page_hash  key;
    int32_t       depth;
    int32_t       token[FM_PAGE_HASH_TOKENS];
    int           has_sum;
    fm_hash128    sum;
    const char   *from; /* what is written is copied from here, unless NULL */
    double        began; /* a thread works on it since then; 0: none does */
    int           next;  /* in its queue */
} fm__job;

typedef struct {
    int head, tail;
} fm__job_queue;

struct fm_store {
    fm_store_options opt;
    char             dir[FM_PAGE_PATH - 128];
    char            *about;
    size_t           file_bytes;
    uint64_t         nonce; /* of temporary names: no other process has it */
    fm_disk          disk;

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t  work; /* something is queued, or the end */
    pthread_cond_t  done; /* something was finished */
    pthread_cond_t  keep; /* the keeper has to look */
    pthread_t       thread[FM__STORE_THREADS], keeper;
    int             n_thread, has_keeper, is_scanned;
    _Atomic int     is_on, is_closing;
    _Atomic int     is_read_only; /* the directory: pages are read, none is written */
    int             n_left;       /* threads that have ended */

    fm__job       *job; /* [n_slot + n_buffer] */
    fm__job_queue  reads, writes, free_buffers;
    int            n_free_buffer, n_queued, n_finished;
    _Atomic char   has_folder[FM_PAGE_FOLDERS];
    fm_key_set     listed;
    double         written_since; /* bytes since the directory was last measured */
    fm_store_stats stats;
};

static inline char *fm__store_file(const fm_store *s, int job)
{
    return s->opt.memory + (size_t)job * s->file_bytes;
}

/* One line, once; the tier has no pages from then on. */
void fm__store_give_up(fm_store *s, const char *what, int err);

/* One line, once; pages are read from then on, but none is written. */
void fm__store_stop_writing(fm_store *s, int err);
int  fm__store_is_refused(int err); /* for the directory's permissions or a read-only mount */

/* store_files.c; by threads, without the lock */
fm_slot_state fm__store_read_file(fm_store *s, int job);
void          fm__store_write_file(fm_store *s, int job);

/* store_keeper.c: scans the directory, looks at it again, prunes it. */
void *fm__store_keeper(void *store);

#endif
