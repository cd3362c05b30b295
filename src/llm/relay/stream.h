/* SPDX-License-Identifier: Apache-2.0 */
/* How a router names a stream, so that whichever server writes it, or goes on
 * with it, gives it the same identifier, time, tool call ids and random numbers.
 *
 *     x-fathom-stream: KEY CREATED     with every request that may be resumed.  KEY is
 *         64 random bits in hexadecimal.  The reply's identifiers are derived from it,
 *         and so are the seeds of prompts that bring none.
 *     x-fathom-resume: BYTES EVENTS    with a request that another server began: the
 *         body begins with BYTES of a token list (relay/tokens.h), then comes the
 *         original request.  The server replays these tokens without computing or
 *         sending them and streams what follows; EVENTS numbered events were sent.
 *     x-fathom-frames: 1               in the reply: its body is frames (relay/frame.h). */
#ifndef FM_LLM_RELAY_STREAM_H
#define FM_LLM_RELAY_STREAM_H

#include <stddef.h>
#include <stdint.h>

#define FM_RELAY_STREAM_HEADER "x-fathom-stream"
#define FM_RELAY_RESUME_HEADER "x-fathom-resume"
#define FM_RELAY_FRAMES_HEADER "x-fathom-frames"

typedef struct {
    uint64_t key;
    int64_t  created; /* seconds since 1970 */
} fm_relay_stream;

typedef struct {
    size_t n_byte;
    int    n_event;
} fm_relay_resume;

enum { FM_RELAY_HEADER_ROOM = 64 };
void fm_relay_stream_write(char out[FM_RELAY_HEADER_ROOM], const fm_relay_stream *s);
void fm_relay_resume_write(char out[FM_RELAY_HEADER_ROOM], const fm_relay_resume *r);

/* 0: the text is no such value; NULL is none. */
int fm_relay_stream_read(fm_relay_stream *s, const char *text);
int fm_relay_resume_read(fm_relay_resume *r, const char *text);

/* The identifier of the reply: prefix and 32 hexadecimal digits. */
void fm_relay_name(char *out, size_t room, const char *prefix, uint64_t key);

/* The seed of prompt i where the request has none. */
uint64_t fm_relay_seed(uint64_t key, int prompt);

#endif
