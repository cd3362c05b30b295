/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request as it arrives: a known length, or chunks. */
#ifndef FM_NET_HTTP_BODY_H
#define FM_NET_HTTP_BODY_H

#include <stddef.h>
#include <stdint.h>

struct evbuffer;

typedef enum { FM_CHUNK_SIZE, FM_CHUNK_DATA, FM_CHUNK_END, FM_CHUNK_TRAILER } fm_chunk_state;

typedef struct {
    struct evbuffer *data; /* owned; what has arrived */
    int              chunked;
    size_t           left; /* of the length, or of this chunk */
    size_t           trailer_bytes;
    fm_chunk_state   at;
} fm_http_body;

void fm_http_body_begin(fm_http_body *b, int chunked, size_t length);
void fm_http_body_fini(fm_http_body *b);

/* Takes from `in` what belongs to the body.  Returns 1 when it is complete, 0
 * when more must come, else the status to refuse it with. */
int fm_http_body_take(fm_http_body *b, struct evbuffer *in, size_t max_bytes);

#endif
