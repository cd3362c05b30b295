/* SPDX-License-Identifier: Apache-2.0 */
/* The libevent base of a loop, for the other files of this room. */
#ifndef FM_NET_LOOP_INTERNAL_H
#define FM_NET_LOOP_INTERNAL_H

#include <event2/event.h>
#include <sys/time.h>

#include "net/loop.h"

struct fm_loop {
    struct event_base *base;
};

static inline struct timeval fm__timeval(double seconds)
{
    const long whole = (long)seconds;
    return (struct timeval){whole, (long)((seconds - (double)whole) * 1e6)};
}

#endif
