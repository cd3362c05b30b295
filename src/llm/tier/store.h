/* SPDX-License-Identifier: Apache-2.0 */
/* The file tier of the KV cache: pages as files in a directory, read and written by
 * threads of its own, so that no caller ever waits for a disk.
 *
 *     has ──> read: a page of the directory into a slot ──> READY | FAILED
 *     take a buffer, fill it ──> write: the buffer becomes a file, the buffer is free again
 *
 * A file that is short, altered, of another model or unreadable is a miss: counted, logged
 * once per kind, forgotten.  A directory that is read-only serves what it has, and one line
 * says that nothing is written.  When writing fails otherwise, when the directory is gone, or
 * when a call takes longer than `patience`, the tier switches itself off with one line: it
 * has no pages from then on, and what was under way counts as failed.  Nothing here
 * ever returns an error once it is open.
 *
 * Processes share the directory freely: pages are named by their content and become visible
 * whole, by rename.  Pages that others write are found by looking at the directory again
 * every few seconds.  Of the pages of all models the least recently used go first when the
 * directory is larger than its limit.
 *
 * One thread calls; `has`, `slot` and the statistics lock for nanoseconds. */
#ifndef FM_LLM_TIER_STORE_H
#define FM_LLM_TIER_STORE_H

#include "base/status.h"
#include "llm/tier/page_file.h"

typedef struct fm_store fm_store;

typedef struct {
    const char    *dir;   /* kept */
    const char    *about; /* what the model is, for people; copied into the directory */
    fm_page_format format;
    double         limit;    /* bytes of the whole directory; 0: none */
    double         patience; /* seconds one file may take; 0: 10 */
    int            n_thread; /* 0: 4 */
    int            n_slot, n_buffer;
    char          *memory; /* [n_slot + n_buffer] times fm_page_file_bytes, 4096-aligned; kept */
    double         fault_rate; /* for tests: of I/O calls that fail; then it never switches off */
} fm_store_options;

typedef enum { FM_SLOT_IDLE, FM_SLOT_BUSY, FM_SLOT_READY, FM_SLOT_FAILED } fm_slot_state;

typedef struct {
    int64_t n_read, n_written; /* pages */
    int64_t n_gone, n_short, n_foreign, n_altered,
        n_unreadable; /* misses of pages that were listed */
    int64_t n_failed; /* writes */
    int64_t n_pruned;
    int64_t n_listed, index_bytes; /* pages that can be read, and memory for their names */
    int     n_queued;              /* files to be read and written */
    double  read_bytes, written_bytes, scan_seconds;
    int     is_on;
    int64_t n_call, n_fault; /* with a fault rate: system calls, and those that were made to fail */
} fm_store_stats;

/* FM_E_OOM, FM_E_ARG: the directory's name is too long.  A directory that cannot be used is no
 * error: the tier is off then.  Waits up to `patience` for the first look at the directory. */
fm_status fm_store_open(fm_store **out, const fm_store_options *o);

/* Finishes what is queued as long as that takes no longer than `patience`.  NULL is fine.  Returns
 * 0 if a thread hangs in the directory: then `memory` must not be freed. */
int fm_store_close(fm_store *s);

int  fm_store_is_on(const fm_store *s);
int  fm_store_can_write(const fm_store *s); /* it is on, and its directory is not read-only */
int  fm_store_has(fm_store *s, fm_page_hash key);
void fm_store_forget(fm_store *s, fm_page_hash key); /* another rank could not read it */

typedef struct {
    fm_page_hash   key;
    const int32_t *token; /* [page_size] copied */
    int32_t depth; /* pages before it in its text: of those used together the last go first */
    const fm_hash128 *sum; /* of the planes that are to be written: others are not.  NULL: unknown */
    const char *from; /* the planes, copied by the thread that writes them, with `sum`: if other bytes are
                       * there by then, nothing is written.  NULL: the buffer has them */
} fm_store_page;

/* Reads a page into an idle slot. */
void          fm_store_read(fm_store *s, int slot, const fm_store_page *p);
fm_slot_state fm_store_slot(const fm_store *s, int slot);
void          fm_store_clear_slot(fm_store *s, int slot);       /* READY or FAILED: idle again */
char         *fm_store_slot_image(const fm_store *s, int slot); /* of a READY one */

/* A buffer for one page, and what makes it a file.  NULL: none is free, or nothing is
 * written. */
char *fm_store_take_buffer(fm_store *s);
int   fm_store_free_buffers(const fm_store *s);
void  fm_store_write(fm_store *s, char *image, const fm_store_page *p);

/* Waits until a file has been read or written since the last call, or for so long. */
void fm_store_wait(fm_store *s, double seconds);
void fm_store_drain(fm_store *s); /* until nothing is queued, or the tier is off */

fm_store_stats fm_store_get_stats(const fm_store *s);

#endif
