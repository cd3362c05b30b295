/* SPDX-License-Identifier: Apache-2.0 */
/* A non-blocking message queue between two ranks.
 *
 *     put frame, frame, ... ──> parcels ──> frames, in order
 *
 * One parcel per direction is in flight at a time and carries all frames put before it
 * was sent: a sender never waits for its receiver, and a receiver that polls seldom gets
 * many frames at once.  There is no progress thread: both sides call fm_mailbox_move. */
#ifndef FM_LLM_RANK_MAILBOX_H
#define FM_LLM_RANK_MAILBOX_H

#include <stdint.h>

#include "base/str.h"
#include "comm/comm.h"

typedef struct fm_mailbox fm_mailbox;

/* `pair` is a group of two, borrowed. */
fm_status fm_mailbox_create(fm_mailbox **out, fm_comm *pair);

void      fm_mailbox_destroy(fm_mailbox *m); /* NULL is fine; both have hung up, or the group broke */

/* A frame is what is added to the string between begin and end. */
fm_str   *fm_mailbox_begin(fm_mailbox *m, uint32_t kind);
fm_status fm_mailbox_end(fm_mailbox *m);

/* Sends and receives what can be without waiting. */
fm_status fm_mailbox_move(fm_mailbox *m);

fm_status fm_mailbox_flush(fm_mailbox *m); /* waits until all is sent */
fm_status fm_mailbox_wait(fm_mailbox *m);  /* until something comes, for hours if need be */

typedef struct {
    uint32_t    kind;
    const char *data; /* [bytes] aligned to 8, valid until the next call */
    size_t      bytes;
} fm_frame;
int fm_mailbox_next(fm_mailbox *m, fm_frame *f); /* 0: none has come whole */

int fm_mailbox_is_over(const fm_mailbox *m); /* the other side has hung up */

/* Sends what is left, says that nothing follows, and waits for the other side
 * to do the same; what it says meanwhile is not read. */
fm_status fm_mailbox_hang_up(fm_mailbox *m);

#endif
