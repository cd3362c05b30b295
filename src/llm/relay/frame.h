/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a streamed reply that a router can take over: frames, each with
 * the bytes meant for the client and the tokens these bytes were made of.
 *
 *     LENGTH EVENTS TOKENS \n <LENGTH bytes for the client>
 *
 * EVENTS counts the numbered events written so far; -1 marks an error, which
 * ends the stream.  A router passes on whole frames alone, so what the client has
 * and what the router knows of the answer are always the same. */
#ifndef FM_LLM_RELAY_FRAME_H
#define FM_LLM_RELAY_FRAME_H

#include "llm/relay/tokens.h"

enum { FM_RELAY_ERROR = -1, FM_RELAY_MAX_FRAME = 64 << 20 };

void fm_relay_frame_write(fm_str *out, const fm_relay_tokens *fresh, int n_event, const char *data,
                          size_t len);

typedef struct {
    const char *data; /* [len] borrowed, during the call */
    size_t      len;
    int         n_event;
} fm_relay_frame;

typedef struct {
    fm_str held;   /* the beginning of a frame */
} fm_relay_reader; /* {0} is a fresh one */

/* Takes bytes as they come.  For every complete frame its tokens are added to
 * *tokens, then `fn` is called; when fn returns 0 the reader stops there, and must
 * not be used again.  FM_E_FORMAT: these are no frames. */
typedef int fm_relay_frame_fn(void *ctx, const fm_relay_frame *f);
fm_status   fm_relay_reader_push(fm_relay_reader *r, const char *bytes, size_t n,
                                 fm_relay_tokens *tokens, fm_relay_frame_fn *fn, void *ctx);
int         fm_relay_reader_is_between(const fm_relay_reader *r); /* no frame is incomplete */
void        fm_relay_reader_fini(fm_relay_reader *r);

#endif
