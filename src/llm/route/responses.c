/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/responses are kept by the worker that gave them: requests that name one go there. */
#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "llm/route/route_internal.h"

static const char path[] = "/v1/responses";

static int owner_by_path(const fm_route *r, const char *rest)
{
    char id[128];
    snprintf(id, sizeof id, "%.*s", (int)strcspn(rest, "/"), rest);
    return fm_affinity_find(&r->responses, id);
}

static int owner_by_body(const fm_route *r, const fm_exchange *x)
{
    json_t *body = NULL;
    if (!x->body_len || !strstr(x->body, "previous_response_id")) return 0;
    if (fm_json_parse(&body, x->body, x->body_len, "request") != FM_OK) return 0;
    const char *id    = json_string_value(json_object_get(body, "previous_response_id"));
    const int   owner = id ? fm_affinity_find(&r->responses, id) : 0;
    json_decref(body);
    return owner;
}

int fm__responses_owner(const fm_route *r, const fm_exchange *x)
{
    const size_t n = strlen(path);
    if (strncmp(x->path, path, n)) return 0;
    const int owner = x->path[n] == '/' ? owner_by_path(r, x->path + n + 1)
                      : !x->path[n]     ? owner_by_body(r, x)
                                        : 0;
    return owner && fm__roster_by_id(r, owner) ? owner : 0;
}

void fm__responses_note(const fm__rcall *c)
{
    char id[128];
    if (c->dialect != &fm__dialect_responses || c->route->opt->no_retries) return;
    fm_relay_name(id, sizeof id, c->dialect->id_prefix, c->stream.key);
    fm_affinity_add(&c->route->responses, id, c->worker->id);
}
