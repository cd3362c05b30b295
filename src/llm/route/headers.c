/* SPDX-License-Identifier: Apache-2.0 */
/* Which header fields go on to a worker and back to a client.  Those that speak of one
 * connection, and those that the router answers for, are its own. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <strings.h>

#include "llm/route/route_internal.h"

/* Characters that a path has as they are; the others are percent-encoded. */
static int is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("/-._~!$&'()*+,;=:@", c));
}

void fm__put_encoded(fm_str *out, const char *path)
{
    for (const char *c = path; *c; c++)
        if (is_plain(*c))
            fm_str_add(out, c, 1);
        else
            fm_str_printf(out, "%%%02X", (unsigned char)*c);
}

void fm__target_of(fm_str *out, const fm_exchange *x)
{
    fm__put_encoded(out, x->path);
    if (*x->query) fm_str_printf(out, "?%s", x->query);
}

void fm__headers_for_worker(fm_str *out, const fm__rcall *c, const fm_worker *w)
{
    static const char *const passed[] = {"Content-Type",      "Accept",
                                         "traceparent",       "tracestate",
                                         "anthropic-version", "anthropic-beta"};
    char                     value[FM_RELAY_HEADER_ROOM];
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++) {
        const char *v = fm_exchange_header(c->x, passed[i]);
        if (v) fm_str_printf(out, "%s: %s\r\n", passed[i], v);
    }
    if (w->api_key) fm_str_printf(out, "Authorization: Bearer %s\r\n", w->api_key);
    fm_str_printf(out, "x-request-id: %s\r\n", c->x->request_id);
    if (!c->dialect || c->route->opt->no_retries) return;
    fm_relay_stream_write(value, &c->stream);
    fm_str_printf(out, FM_RELAY_STREAM_HEADER ": %s\r\n", value);
}

static int is_own(const char *name)
{
    static const char *const own[] = {"Connection",     "Keep-Alive",   "Transfer-Encoding",
                                      "Content-Length", "Content-Type", "Date",
                                      "x-request-id",   "request-id",   "Upgrade",
                                      "Server",         "Trailer",      FM_RELAY_FRAMES_HEADER};
    if (!strncasecmp(name, "Access-Control-", 15)) return 1;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (!strcasecmp(name, own[i])) return 1;
    return 0;
}

void fm__headers_for_client(fm_str *out, const fm_http_head *h)
{
    for (int i = 0; i < h->n_field; i++)
        if (!is_own(h->field[i].name))
            fm_str_printf(out, "%s: %s\r\n", h->field[i].name, h->field[i].value);
}
