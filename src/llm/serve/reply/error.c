/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/reply/error.h"

#include <string.h>

#include "llm/serve/reply/write.h"

void fm__put_error_at(fm_str *out, const char *path, int status, const char *why)
{
    if (!strncmp(path, "/v1/messages", 12))
        fm__put_messages_error(out, status, why);
    else if (!strncmp(path, "/api/", 5))
        fm__put_ollama_error(out, status, why);
    else
        fm__put_error(out, status, why);
}

void fm__reply_error_with(fm_exchange *x, int status, const char *why, const char *headers)
{
    fm_str body = {0};
    fm__put_error_at(&body, x->path, status, why);
    fm_exchange_reply(x, status, "application/json", headers, body.text, body.len);
    fm_str_fini(&body);
}

void fm__reply_error(fm_exchange *x, int status, const char *why)
{
    fm__reply_error_with(x, status, why,
                         status == 401   ? "WWW-Authenticate: Bearer\r\n"
                         : status == 429 ? "Retry-After: 1\r\n"
                                         : NULL);
}

void fm__reply_wrong_method(fm_exchange *x, const char *methods)
{
    fm_str why = {0}, allow = {0};
    fm_str_printf(&why, "this path takes %s", methods);
    fm_str_printf(&allow, "Allow: %s\r\n", methods);
    fm__reply_error_with(x, 405, why.text, allow.text);
    fm_str_fini(&allow);
    fm_str_fini(&why);
}

void fm__reply_json(fm_exchange *x, const fm_str *body)
{
    fm_exchange_reply(x, 200, "application/json", NULL, body->text ? body->text : "", body->len);
}
