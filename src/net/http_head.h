/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP/1.x request or reply: its line and its header fields, strictly
 * read (RFC 9112).  What two servers could understand differently is refused.
 * Pure: bytes in, slices of the same bytes out. */
#ifndef FM_NET_HTTP_HEAD_H
#define FM_NET_HTTP_HEAD_H

#include <stddef.h>
#include <stdint.h>

enum { FM_HTTP_MAX_FIELDS = 100 };

typedef struct {
    char *name, *value;
} fm_http_field;

typedef struct {
    char         *method;
    char         *path;  /* percent-decoded, no NUL in it */
    char         *query; /* as sent, "" if none */
    int           minor; /* HTTP/1.minor */
    fm_http_field field[FM_HTTP_MAX_FIELDS];
    int           n_field;
    int64_t       content_length; /* -1: not given */
    int           chunked, keep_alive, expects_continue;
} fm_http_head;

/* Reads text[0..len), up to and including the empty line, and cuts it up in
 * place: *h points into it.  Returns 0, or the status to refuse it with and
 * *why in a few words. */
int fm_http_head_parse(fm_http_head *h, char *text, size_t len, const char **why);

/* The same for the head of a reply: 0 and its status, or -1.  method, path and
 * query are NULL. */
int fm_http_reply_head_parse(fm_http_head *h, int *status, char *text, size_t len,
                             const char **why);

const char *fm_http_head_get(const fm_http_head *h, const char *name); /* the first, or NULL */

#endif
