/* SPDX-License-Identifier: Apache-2.0 */
/* The host as a place for bytes and work: big blocks of memory, how much of
 * it is free, and how many cores this process may keep busy. */
#ifndef FM_DEVICE_HOST_H
#define FM_DEVICE_HOST_H

#include <stddef.h>

#include "base/status.h"

/* Zeroed, page-aligned, in huge pages where the system has them.  Pages are
 * placed on the NUMA node of the thread that touches them first. */
fm_status fm_host_alloc(void **out, size_t bytes, const char *what);
void      fm_host_free(void *p, size_t bytes); /* NULL is fine */

/* Bytes this process can still take without pushing anything out: the least of
 * the system's available memory, what its control groups leave and what ulimit
 * -v and -d leave.  Limits count in the total, too. */
size_t fm_host_available(void);
size_t fm_host_total(void);
/* The control group, with its limit, that leaves less than the system has: "; the control group
 * FOLDER allows 2.00 GiB".  "" where no group is in the way. */
void   fm_host_limit_words(char *out, size_t size);
size_t fm_host_resident(void); /* bytes this process holds now */

#endif
