/* SPDX-License-Identifier: Apache-2.0 */
/* The table of workers over HTTP:
 *
 *     GET    /workers               all of them
 *     POST   /workers               {"url": ..., "api_key": ...} joins
 *     GET    /workers/ID            one; ID is its number or its URL, percent-encoded
 *     DELETE /workers/ID            leaves when its requests have ended
 *     POST   /workers/ID/drain      gets no new requests
 *     POST   /workers/ID/undrain    gets them again */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "llm/route/route_internal.h"
#include "llm/serve/reply/error.h"

static const char base[] = "/workers";

int fm__is_admin_path(const char *path)
{
    const size_t n = strlen(base);
    return !strncmp(path, base, n) && (!path[n] || path[n] == '/');
}

static void list(fm_route *r, fm_exchange *x)
{
    fm_str body = {0};
    fm__put_workers(&body, r);
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}

static void show(fm_exchange *x, const fm_worker *w)
{
    fm_str body = {0};
    fm__put_worker(&body, w);
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}

static fm_status read_worker(fm_route *r, const json_t *body, fm_worker **w)
{
    const fm_json_at at  = {"request", ""};
    const char      *url = NULL, *key = NULL;
    if (!json_is_object(body))
        return fm_fail(FM_E_FORMAT, "request: expected an object, found %s", fm_json_kind(body));
    FM_TRY(fm_json_string(&url, body, "url", at));
    FM_TRY(fm_json_opt_string(&key, body, "api_key", at));
    if (key && strpbrk(key, " \t\r\n")) return fm_fail(FM_E_FORMAT, "request: api_key is no key");
    FM_TRY(fm__roster_add(r, url, key, 0, w));
    (*w)->joined = 1;
    fm__state_write(r);
    return FM_OK;
}

static void join(fm_route *r, fm_exchange *x)
{
    json_t    *body = NULL;
    fm_worker *w    = NULL;
    fm_status  rc   = fm_json_parse(&body, x->body, x->body_len, "request");
    if (rc == FM_OK) rc = read_worker(r, body, &w);
    if (rc == FM_OK)
        show(x, w);
    else
        fm__reply_error(x, 400, fm_why());
    json_decref(body);
}

static void act(fm_route *r, fm_exchange *x, fm_worker *w, const char *verb)
{
    if (!strcmp(x->method, "DELETE") && !*verb) {
        fm__roster_remove(r, w);
        fm__state_write(r);
        show(x, w);
    } else if (!strcmp(x->method, "POST") && (!strcmp(verb, "drain") || !strcmp(verb, "undrain"))) {
        w->draining = !strcmp(verb, "drain");
        fm__say(r, "worker %d %s %s", w->id, w->url,
                w->draining ? "drains" : "takes requests again");
        fm__state_write(r);
        show(x, w);
    } else if ((!strcmp(x->method, "GET") || !strcmp(x->method, "HEAD")) && !*verb) {
        show(x, w);
    } else {
        fm__reply_error_with(x, 405, "this path does not know that method",
                             "Allow: GET, HEAD, POST, DELETE\r\n");
    }
}

/* "3", "http://a:30000", either with "/drain" behind. */
static void split(const char *rest, char *name, size_t room, const char **verb)
{
    static const char *const verbs[] = {"drain", "undrain"};
    snprintf(name, room, "%s", rest);
    *verb = "";
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(name, '/');
        if (slash && !strcmp(slash + 1, verbs[i])) {
            *slash = 0;
            *verb  = verbs[i];
            return;
        }
    }
}

void fm__admin_handle(fm_route *r, fm_exchange *x)
{
    const char *rest = x->path + strlen(base), *verb = "";
    char        name[1024];
    if (!*rest || !strcmp(rest, "/")) {
        if (!strcmp(x->method, "POST"))
            join(r, x);
        else if (!strcmp(x->method, "GET") || !strcmp(x->method, "HEAD"))
            list(r, x);
        else
            fm__reply_error_with(x, 405, "this path does not know that method",
                                 "Allow: GET, HEAD, POST\r\n");
        return;
    }
    split(rest + 1, name, sizeof name, &verb);
    fm_worker *w = fm__roster_find(r, name);
    if (w)
        act(r, x, w, verb);
    else
        fm__reply_error(x, 404, "there is no such worker");
}
