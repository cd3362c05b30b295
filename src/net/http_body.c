/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_body.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { MAX_LINE = 256, MAX_TRAILER = 8192 };

void fm_http_body_begin(fm_http_body *b, int chunked, size_t length)
{
    *b = (fm_http_body){.data = evbuffer_new(), .chunked = chunked, .left = chunked ? 0 : length};
    FM_BUG_UNLESS(b->data != NULL);
}

void fm_http_body_fini(fm_http_body *b)
{
    if (b->data) evbuffer_free(b->data);
    *b = (fm_http_body){0};
}

static void take_bytes(fm_http_body *b, struct evbuffer *in)
{
    const size_t there = evbuffer_get_length(in);
    const size_t n     = there < b->left ? there : b->left;
    evbuffer_remove_buffer(in, b->data, n);
    b->left -= n;
}

/* One CR LF line; 0: not there yet, else 1 or 400. */
static int take_line(struct evbuffer *in, char line[MAX_LINE], size_t *len)
{
    size_t                    eol;
    const struct evbuffer_ptr at = evbuffer_search_eol(in, NULL, &eol, EVBUFFER_EOL_CRLF_STRICT);
    if (at.pos < 0) return evbuffer_get_length(in) < MAX_LINE ? 0 : 400;
    if (at.pos >= MAX_LINE) return 400;
    *len = (size_t)at.pos;
    evbuffer_remove(in, line, *len);
    line[*len] = 0;
    evbuffer_drain(in, eol);
    return 1;
}

/* "1f;extension": the number of bytes that follow. */
static int parse_size(const char *line, size_t *size)
{
    size_t n = 0, digits = strspn(line, "0123456789abcdefABCDEF");
    if (!digits || digits > 15) return 400;
    if (line[digits] && line[digits] != ';' && line[digits] != ' ' && line[digits] != '\t')
        return 400;
    n     = (size_t)strtoull(line, NULL, 16);
    *size = n;
    return 0;
}

static int begin_chunk(fm_http_body *b, const char *line, size_t max_bytes)
{
    size_t    size   = 0;
    const int status = parse_size(line, &size);
    if (status) return status;
    if (size > max_bytes || evbuffer_get_length(b->data) + size > max_bytes) return 413;
    b->left = size;
    b->at   = size ? FM_CHUNK_DATA : FM_CHUNK_TRAILER;
    return 0;
}

/* A line of the framing: a size, the end of a chunk, a trailer field. */
static int take_framing(fm_http_body *b, struct evbuffer *in, size_t max_bytes)
{
    char      line[MAX_LINE];
    size_t    len = 0;
    const int got = take_line(in, line, &len);
    if (got != 1) return got;
    switch (b->at) {
    case FM_CHUNK_SIZE: {
        const int status = begin_chunk(b, line, max_bytes);
        return status ? status : 1;
    }
    case FM_CHUNK_TRAILER:
        b->trailer_bytes += len + 2;
        return b->trailer_bytes > MAX_TRAILER ? 431 : 1;
    default: /* FM_CHUNK_END */ b->at = FM_CHUNK_SIZE; return len ? 400 : 1;
    }
}

static int take_chunks(fm_http_body *b, struct evbuffer *in, size_t max_bytes)
{
    for (;;) {
        if (b->at == FM_CHUNK_DATA) {
            take_bytes(b, in);
            if (b->left) return 0;
            b->at = FM_CHUNK_END;
        }
        const int    last   = b->at == FM_CHUNK_TRAILER;
        const size_t before = b->trailer_bytes;
        const int    status = take_framing(b, in, max_bytes);
        if (status != 1) return status;
        if (last && b->trailer_bytes == before + 2) return 1; /* the empty line */
    }
}

int fm_http_body_take(fm_http_body *b, struct evbuffer *in, size_t max_bytes)
{
    if (b->chunked) return take_chunks(b, in, max_bytes);
    take_bytes(b, in);
    return b->left == 0;
}
