/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in: the API key, and no web page of another origin.
 *
 * A browser sends a POST of type text/plain to any address, this machine's own
 * included, without asking first (a "simple" request), so a page could drive a server
 * that listens on 127.0.0.1.  Browsers name the page in Origin, which a page cannot
 * forge; programs send none.  Hence: an Origin with http or https must be this server's
 * own or in --cors-origins, whatever the content type. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/rng.h"
#include "llm/serve/loop/gate.h"
#include "llm/serve/reply/error.h"

static const char foreign_page[] =
    "web pages of other origins may not use this server; --cors-origins lists those that may";

/* Compares every byte, so that the time tells nothing about the key. */
static int same_key(const char *given, const char *key)
{
    const size_t n = strlen(key), m = strlen(given);
    unsigned     differ = (unsigned)(n ^ m);
    for (size_t i = 0; i < m; i++)
        differ |= (unsigned char)given[i] ^ (unsigned char)key[n ? i % n : 0];
    return n == m && differ == 0;
}

/* Every key is looked at, for the same reason. */
static int is_known(const fm__gate *g, const char *given)
{
    int found = 0;
    for (int i = 0; i < g->n_key; i++) found |= same_key(given, g->key[i]);
    return found;
}

static int has_key(const fm__gate *g, const fm_exchange *x)
{
    if (!g->n_key) return 1;
    const char *bearer = fm_exchange_header(x, "Authorization"),
               *plain  = fm_exchange_header(x, "x-api-key");
    if (bearer && !strncasecmp(bearer, "Bearer ", 7) && is_known(g, bearer + 7)) return 1;
    return plain && is_known(g, plain);
}

/* "localhost:3000" -> 9 */
static size_t name_len(const char *host)
{
    return *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
}

/* localhost or an IP address: not a name, which a foreign DNS could point here. */
static int is_literal(const char *host)
{
    const size_t n = name_len(host);
    return *host == '[' || strspn(host, "0123456789.") == n ||
           (n == 9 && !strncasecmp(host, "localhost", 9)) ||
           (n > 10 && !strncasecmp(host + n - 10, ".localhost", 10));
}

static int is_loopback(const char *address)
{
    return !strcmp(address, "localhost") || !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

/* A page that came from here.  A name that merely leads to a loopback address may be
 * another site's (DNS rebinding). */
static int is_own_page(const fm__gate *g, const fm_exchange *x, const char *from)
{
    const char *host = fm_exchange_header(x, "Host");
    if (!host || strcasecmp(from, host)) return 0;
    return !is_loopback(g->host) || is_literal(host);
}

/* Apps with pages of their own (file:, app:, vscode-webview:) have other schemes,
 * which no web page can have. */
static int is_foreign(const fm__gate *g, const fm_exchange *x)
{
    const char *origin = fm_exchange_header(x, "Origin");
    if (!origin || fm__cors_allows(g->cors, origin)) return 0;
    if (!strcmp(origin, "null")) return 1;
    if (!strncasecmp(origin, "http://", 7)) return !is_own_page(g, x, origin + 7);
    return !strncasecmp(origin, "https://", 8) && !is_own_page(g, x, origin + 8);
}

/* An image or a link of another site: such requests carry no Origin. */
static int is_embedded_elsewhere(const fm_exchange *x)
{
    const char *site = fm_exchange_header(x, "Sec-Fetch-Site");
    return site && !fm_exchange_header(x, "Origin") && !strcmp(site, "cross-site");
}

static int is_encoded(const fm_exchange *x)
{
    const char *how = fm_exchange_header(x, "Content-Encoding");
    return how && *how && strcasecmp(how, "identity") != 0;
}

int fm__gate_refuses(const fm__gate *g, fm_exchange *x, int is_open)
{
    if (is_foreign(g, x) || (!is_open && is_embedded_elsewhere(x)))
        fm__reply_error(x, 403, foreign_page);
    else if (!is_open && !has_key(g, x))
        fm__reply_error(x, 401, "a valid API key is needed");
    else if (is_encoded(x))
        fm__reply_error(x, 415, "the body is compressed (Content-Encoding): send it as it is");
    else
        return 0;
    return 1;
}

static int is_fit_for_header(const char *id)
{
    const size_t n = strlen(id);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)id[i] <= ' ' || (unsigned char)id[i] >= 0x7f) return 0;
    return n > 0 && n < sizeof((fm_exchange *)0)->request_id;
}

void fm__name_request(fm_exchange *x, uint64_t key, uint64_t n)
{
    const char *given = fm_exchange_header(x, "x-request-id");
    if (given && is_fit_for_header(given))
        snprintf(x->request_id, sizeof x->request_id, "%s", given);
    else
        snprintf(x->request_id, sizeof x->request_id, "req_%08x%08x%08x", fm_rng_u32(key, n * 3),
                 fm_rng_u32(key, n * 3 + 1), fm_rng_u32(key, n * 3 + 2));
}
