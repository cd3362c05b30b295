/* SPDX-License-Identifier: Apache-2.0 */
/* A response by its id: GET it, DELETE it, cancel it while it is being written. */
#include <stdio.h>
#include <string.h>

#include "llm/serve/reply/responses_object.h"
#include "llm/serve/loop/responses_store.h"
#include "llm/serve/loop/serve_internal.h"

static const char base[] = "/v1/responses/", cancel[] = "/cancel";

int fm__is_response_path(const fm_exchange *x)
{
    const char *id = x->path + strlen(base);
    if (strncmp(x->path, base, strlen(base)) || !*id) return 0;
    const char *slash = strchr(id, '/');
    if (!strcmp(x->method, "POST")) return slash && slash > id && !strcmp(slash, cancel);
    return !slash && (!strcmp(x->method, "GET") || !strcmp(x->method, "DELETE"));
}

static fm__call *find_running(const fm_serve *s, const char *id)
{
    return fm__call_named(s, id, &fm__dialect_responses);
}

static void reply_missing(fm_exchange *x, const char *id)
{
    fm_str why = {0};
    fm_str_printf(&why, "there is no response \"%.80s\" here", id);
    fm__reply_error(x, 404, why.text);
    fm_str_fini(&why);
}

static void get(fm_serve *s, fm_exchange *x, const char *id)
{
    fm_str          body = {0};
    const fm__call *c    = find_running(s, id);
    if (c) fm__put_response(&body, c, 1);
    if (c || fm__responses_get(s->responses, id, &body, NULL))
        fm__reply_json(x, &body);
    else
        reply_missing(x, id);
    fm_str_fini(&body);
}

static void drop(fm_serve *s, fm_exchange *x, const char *id)
{
    fm_str body = {0};
    fm_str_printf(&body, "{\"id\":\"%.80s\",\"object\":\"response\",\"deleted\":true}", id);
    if (fm__responses_drop(s->responses, id))
        fm__reply_json(x, &body);
    else
        reply_missing(x, id);
    fm_str_fini(&body);
}

/* Its own request ends with what is there, as cancelled. */
static void stop(fm_serve *s, fm_exchange *x, const char *id)
{
    fm_str          body = {0};
    const fm__call *c    = find_running(s, id);
    if (c) {
        fm__put_response(&body, c, 1);
        fm__calls_abort(s, id);
        fm__reply_json(x, &body);
    } else if (fm__responses_get(s->responses, id, NULL, NULL)) {
        fm__reply_error(x, 400, "a response that has ended cannot be cancelled");
    } else {
        reply_missing(x, id);
    }
    fm_str_fini(&body);
}

void fm__handle_response(fm_serve *s, fm_exchange *x)
{
    char id[FM__MAX_NAME];
    snprintf(id, sizeof id, "%s", x->path + strlen(base));
    id[strcspn(id, "/")] = 0;
    if (!strcmp(x->method, "POST"))
        stop(s, x, id);
    else if (!strcmp(x->method, "GET"))
        get(s, x, id);
    else
        drop(s, x, id);
}
