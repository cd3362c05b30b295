/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/responses are kept by the worker that gave them: requests that name one go there.  An id
 * that this router does not know (another router or an earlier run gave it) is looked for at all
 * workers, and remembered. */
#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "llm/route/gather.h"

static const char   path[]     = "/v1/responses";
static const double patience   = 5;
static const size_t most_bytes = (size_t)64 << 20;

enum { MAX_ID = 128 };

/* The response that a request names; 0: none. */
static int name_in_path(char *id, const char *rest)
{
    snprintf(id, MAX_ID, "%.*s", (int)strcspn(rest, "/"), rest);
    return *id != 0;
}

static int name_in_body(char *id, const fm_exchange *x)
{
    json_t *body = NULL;
    if (!x->body_len || !strstr(x->body, "previous_response_id")) return 0;
    if (fm_json_parse(&body, x->body, x->body_len, "request") != FM_OK) return 0;
    const char *name = json_string_value(json_object_get(body, "previous_response_id"));
    snprintf(id, MAX_ID, "%s", name ? name : "");
    json_decref(body);
    return *id != 0;
}

static int find_name(char *id, const fm_exchange *x)
{
    const size_t n = strlen(path);
    if (strncmp(x->path, path, n)) return 0;
    if (x->path[n] == '/') return name_in_path(id, x->path + n + 1);
    return !x->path[n] && name_in_body(id, x);
}

static int is_found(const fm__gather_part *p) { return p->query.status == 200; }

/* Where nobody has it, any worker says so. */
static void finish(fm__gather *g)
{
    char id[MAX_ID];
    int  owner = 0;
    for (int i = 0; i < g->n_part; i++)
        if (g->part[i].is_whole && is_found(&g->part[i])) owner = g->part[i].worker->id;
    if (owner && find_name(id, g->x)) fm_affinity_add(&g->route->responses, id, owner);
    fm__rcall_begin(g->route, g->x, g->ctx, owner);
}

static int look_for(fm_route *r, fm_exchange *x, const fm__dialect *d, const char *id)
{
    fm_str target = {0};
    fm_str_printf(&target, "%s/", path);
    fm__put_encoded(&target, id);
    const fm__gather_ask ask   = {.method     = "GET",
                                  .target     = target.text,
                                  .seconds    = patience,
                                  .most_bytes = most_bytes,
                                  .is_enough  = is_found,
                                  .finish     = finish,
                                  .ctx        = d};
    const int            asked = fm__gather_begin(r, x, &ask);
    fm_str_fini(&target);
    return asked;
}

void fm__responses_begin(fm_route *r, fm_exchange *x, const fm__dialect *d)
{
    char      id[MAX_ID];
    const int is_named = find_name(id, x);
    const int owner    = is_named ? fm_affinity_find(&r->responses, id) : 0;
    if (owner && fm__roster_by_id(r, owner))
        fm__rcall_begin(r, x, d, owner);
    else if (!is_named || r->draining || !look_for(r, x, d, id))
        fm__rcall_begin(r, x, d, 0);
}

void fm__responses_note(const fm__rcall *c)
{
    char id[MAX_ID];
    if (c->dialect != &fm__dialect_responses || c->route->opt->no_retries) return;
    fm_relay_name(id, sizeof id, c->dialect->id_prefix, c->stream.key);
    fm_affinity_add(&c->route->responses, id, c->worker->id);
}
