/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "llm/serve/loop/cors.h"

#include <stdlib.h>
#include <string.h>

static char *lines_for(const char *origin)
{
    fm_str s = {0};
    fm_str_printf(&s,
                  "Access-Control-Allow-Origin: %s\r\n"
                  "Access-Control-Expose-Headers: x-request-id, Retry-After\r\n",
                  origin);
    if (strcmp(origin, "*")) fm_str_puts(&s, "Vary: Origin\r\n");
    return s.text;
}

/* "*", "null" (of a page opened as a file), or scheme://host[:port], as browsers send it: one with
 * a path, or a "/" at its end, would never match. */
static int is_origin(const char *text)
{
    const char *host = strstr(text, "://");
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f) return 0;
    if (!strcmp(text, "*") || !strcmp(text, "null")) return 1;
    return host && host > text && host[3] && !strchr(host + 3, '/');
}

static fm_status add(fm__cors *c, const char *text, size_t len)
{
    if (c->n == FM__MAX_ORIGINS)
        return fm_fail(FM_E_ARG, "--cors-origins: at most %d origins", FM__MAX_ORIGINS);
    char *origin = strndup(text, len);
    if (!origin) return fm_fail(FM_E_OOM, "origins");
    if (!is_origin(origin)) {
        free(origin);
        return fm_fail(FM_E_ARG,
                       "--cors-origins: \"%.*s\" is no origin: https://HOST or https://HOST:PORT, "
                       "without a path, or *",
                       (int)len, text);
    }
    c->origin[c->n] = origin;
    c->lines[c->n] = lines_for(c->origin[c->n]);
    c->n++;
    return FM_OK;
}

fm_status fm__cors_init(fm__cors *c, const char *list)
{
    *c = (fm__cors){0};
    while (list && *list) {
        const size_t len = strcspn(list, ",");
        if (len) FM_TRY(add(c, list, len));
        list += len + (list[len] == ',');
    }
    return FM_OK;
}

void fm__cors_fini(fm__cors *c)
{
    for (int i = 0; i < c->n; i++) {
        free(c->origin[i]);
        free(c->lines[i]);
    }
    *c = (fm__cors){0};
}

int fm__cors_allows(const fm__cors *c, const char *origin)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->origin[i], "*") || !strcmp(c->origin[i], origin)) return 1;
    return 0;
}

/* Whatever headers the page wants to send: which ones a client library has changes
 * with its version, and none of them lets a page in that is not listed. */
static void reply_preflight(fm_exchange *x)
{
    const char *headers = fm_exchange_header(x, "Access-Control-Request-Headers");
    fm_str      more    = {0};
    fm_str_puts(&more, "Access-Control-Allow-Methods: GET, POST, PUT, DELETE\r\n"
                       "Access-Control-Max-Age: 600\r\n");
    if (headers && *headers) fm_str_printf(&more, "Access-Control-Allow-Headers: %s\r\n", headers);
    if (fm_exchange_header(x, "Access-Control-Request-Private-Network"))
        fm_str_puts(&more, "Access-Control-Allow-Private-Network: true\r\n");
    fm_exchange_reply(x, 200, "text/plain", more.text, "", 0);
    fm_str_fini(&more);
}

int fm__cors_handle(const fm__cors *c, fm_exchange *x)
{
    const char *origin = c->n ? fm_exchange_header(x, "Origin") : NULL;
    for (int i = 0; origin && i < c->n && !x->always; i++)
        if (!strcmp(c->origin[i], "*") || !strcmp(c->origin[i], origin)) x->always = c->lines[i];
    if (!x->always || strcmp(x->method, "OPTIONS") ||
        !fm_exchange_header(x, "Access-Control-Request-Method"))
        return 0;
    reply_preflight(x);
    return 1;
}
