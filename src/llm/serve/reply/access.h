/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: a JSON line per request. */
#ifndef FM_LLM_SERVE_REPLY_ACCESS_H
#define FM_LLM_SERVE_REPLY_ACCESS_H

#include "base/str.h"
#include "net/http.h"

/* Opens the object: time, peer, what was asked, status, seconds, bytes.  Further members and the
 * closing brace are the caller's. */
void fm__put_access(fm_str *line, const fm_exchange *x);

#endif
