/* SPDX-License-Identifier: Apache-2.0 */
/* A reply's head, or a chunked body that arrives in two pieces.  However a body was cut, it is
 * the same one; the first byte chooses where. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

#include "net/http_body.h"
#include "net/http_head.h"

enum { MAX_BODY = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_head(const uint8_t *data, size_t size)
{
    fm_http_head h;
    const char  *why    = "";
    int          status = 0;
    char        *text   = malloc(size + 1);
    if (!text) return;
    memcpy(text, data, size);
    text[size] = 0;
    if (fm_http_reply_head_parse(&h, &status, text, size, &why) == 0 &&
        (status < 100 || status > 999))
        abort();
    free(text);
}

/* The answer of the last take, and the body's length. */
static int take_in_pieces(const uint8_t *data, size_t size, size_t cut, size_t *len)
{
    struct evbuffer *in   = evbuffer_new();
    fm_http_body     body = {0};
    if (!in) abort();
    fm_http_body_begin(&body, 1, 0);
    evbuffer_add(in, data, cut);
    int got = fm_http_body_take(&body, in, MAX_BODY);
    evbuffer_add(in, data + cut, size - cut);
    if (got == 0) got = fm_http_body_take(&body, in, MAX_BODY);
    *len = evbuffer_get_length(body.data);
    if (*len > MAX_BODY) abort();
    fm_http_body_fini(&body);
    evbuffer_free(in);
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t whole = 0, cut = 0;
    if (size < 1) return 0;
    if (data[0] & 1) {
        read_head(data + 1, size - 1);
        return 0;
    }
    const int a = take_in_pieces(data + 1, size - 1, 0, &whole);
    const int b = take_in_pieces(data + 1, size - 1, data[0] / 2 % size, &cut);
    if (a != b || (a == 1 && whole != cut)) abort();
    return 0;
}
