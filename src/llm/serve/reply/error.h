/* SPDX-License-Identifier: Apache-2.0 */
/* Error replies, in the dialect that a path speaks. */
#ifndef FM_LLM_SERVE_REPLY_ERROR_H
#define FM_LLM_SERVE_REPLY_ERROR_H

#include "net/http.h"

void fm__put_error_at(fm_str *out, const char *path, int status, const char *why);
void fm__reply_error(fm_exchange *x, int status, const char *why);
void fm__reply_error_with(fm_exchange *x, int status, const char *why, const char *headers);
void fm__reply_wrong_method(fm_exchange *x, const char *methods); /* 405, "GET, HEAD" */
void fm__reply_json(fm_exchange *x, const fm_str *body);

#endif
