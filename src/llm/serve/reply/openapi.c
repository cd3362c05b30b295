/* SPDX-License-Identifier: Apache-2.0 */
/* /openapi.json: the paths, their methods and what they are for, from the table of
 * routes; docs/api.md has the fields. */
#include "llm/serve/loop/routes.h"
#include "llm/serve/reply/write.h"

static void put_operation(fm_str *out, const fm__route *r, const char *method, int has_body)
{
    fm_str_printf(out, "\"%s\":{\"summary\":", method);
    fm__put_word(out, r->about);
    if (has_body)
        fm_str_puts(out, ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{"
                         "\"schema\":{\"type\":\"object\"}}}}");
    fm_str_printf(out, ",\"responses\":{\"200\":{\"description\":\"success\"}%s}",
                  has_body
                      ? ",\"400\":{\"description\":\"the request is wrong; the message names the "
                        "field\"}"
                      : "");
    if (r->how & FM__OPEN) fm_str_puts(out, ",\"security\":[]");
    fm_str_puts(out, "}");
}

static void put_path(fm_str *out, const fm__route *r)
{
    static const struct {
        int         how;
        const char *name;
    } methods[] = {{FM__GET, "get"}, {FM__POST, "post"}, {FM__PUT, "put"}};
    int n       = 0;
    fm__put_word(out, r->path);
    fm_str_puts(out, ":{");
    for (int i = 0; i < 3; i++) {
        if (!(r->how & methods[i].how)) continue;
        if (n++) fm_str_puts(out, ",");
        put_operation(out, r, methods[i].name, methods[i].how != FM__GET && !(r->how & FM__GET));
    }
    fm_str_puts(out, "}");
}

/* Paths with a name in them, which the table does not have. */
static const fm__route named[] = {
    {"/v1/models/{model}", FM__GET, "one model", NULL, NULL, NULL},
    {"/v1/responses/{id}", FM__GET, "a response that was given", NULL, NULL, NULL},
    {"/v1/responses/{id}/cancel", FM__POST, "ends a response", NULL, NULL, NULL},
};

void fm__reply_openapi(fm_serve *s, fm_exchange *x)
{
    fm_str body = {0};
    fm_str_puts(&body,
                "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"fathom\",\"version\":\"" FM_VERSION
                "\"},\"paths\":{");
    for (int i = 0; i < fm__n_route; i++) {
        put_path(&body, &fm__routes[i]);
        fm_str_puts(&body, ",");
    }
    for (int i = 0; i < 3; i++) {
        if (i) fm_str_puts(&body, ",");
        put_path(&body, &named[i]);
    }
    fm_str_puts(&body, "},\"components\":{\"securitySchemes\":{\"key\":{\"type\":\"http\","
                       "\"scheme\":\"bearer\"}}}");
    if (s->opt->api_key) fm_str_puts(&body, ",\"security\":[{\"key\":[]}]");
    fm_str_puts(&body, "}");
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}
