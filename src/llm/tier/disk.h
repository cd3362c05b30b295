/* SPDX-License-Identifier: Apache-2.0 */
/* Every system call the file tier makes on its directory, in one place: results
 * are 0 or an errno value, and faults can be injected into each of them.
 *
 * An injected fault is what a disk or a network file system does when it fails:
 * an error, fewer bytes than asked for, or other bytes than were written. */
#ifndef FM_LLM_TIER_DISK_H
#define FM_LLM_TIER_DISK_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
    double           rate; /* of calls that fail; 0: none */
    uint64_t         seed;
    _Atomic uint64_t n_call, n_fault;
} fm_disk; /* {0}: no faults */

int fm_disk_make_dir(fm_disk *d, const char *path);  /* one that is there already is fine */
int fm_disk_make_dirs(fm_disk *d, const char *path); /* with those above it */

/* The whole file of n bytes into `to`.  EPROTO: it is shorter or longer. */
int fm_disk_read(fm_disk *d, const char *path, void *to, size_t n);
int fm_disk_touch(fm_disk *d, const char *path, double age); /* it was used so many seconds ago */

/* Writes n bytes to `temporary`, then renames that to `path`, so that a reader of `path` sees the
 * whole file or none. After an error neither is left behind. */
int fm_disk_write(fm_disk *d, const char *temporary, const char *path, const void *from, size_t n);

int fm_disk_remove(fm_disk *d, const char *path);

typedef struct {
    int    is_dir, is_file;
    double bytes, changed; /* seconds since 1970 */
} fm_disk_facts;

/* Of a path, or of a name in an open directory; there a link is not followed. */
int fm_disk_look(fm_disk *d, const char *path, fm_disk_facts *out);
int fm_disk_look_in(fm_disk *d, DIR *dir, const char *name, fm_disk_facts *out);

/* closedir() ends it.  The next name is NULL behind the last. */
int fm_disk_open_dir(fm_disk *d, const char *path, DIR **out);
int fm_disk_next_name(fm_disk *d, DIR *dir, const char **name);

#endif
