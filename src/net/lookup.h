/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous DNS lookup: the addresses of a host.  A numeric address is known at once; a name is
 * resolved by a thread, since the system's resolver may take seconds and a loop must not wait.
 *
 *     create ──> is_pending ... ──> address, or why there is none
 *                    ^                  │ it does not answer
 *                    └──────────────────┘ fail: the next address, or a new lookup
 *
 * One thread calls; the thread that looks up belongs to the module. */
#ifndef FM_NET_LOOKUP_H
#define FM_NET_LOOKUP_H

#include <sys/socket.h>

#include "base/status.h"

typedef struct fm_lookup fm_lookup;

/* The host is copied.  FM_E_OOM, or no thread could be started; an unknown name is no error. */
fm_status fm_lookup_create(fm_lookup **out, const char *host, int port);
void      fm_lookup_destroy(fm_lookup *l); /* NULL is fine; does not wait */

int fm_lookup_is_pending(fm_lookup *l); /* nothing is known yet */

/* NULL: none is known, and `why` says so.  Valid until the next call. */
const struct sockaddr *fm_lookup_address(fm_lookup *l, socklen_t *len, const char **why);

/* Connecting to the address failed: the next call gives another one, if the host has several. */
void fm_lookup_fail(fm_lookup *l);

#endif
