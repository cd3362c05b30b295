/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of other servers that would change the answer and have no effect here: a
 * request that sets one is refused, since an answer without it is not what was asked
 * for.  Fields that change nothing a client can see (user, store, …) are ignored. */
#ifndef FM_LLM_SERVE_READ_UNSUPPORTED_H
#define FM_LLM_SERVE_READ_UNSUPPORTED_H

#include <jansson.h>

#include "base/status.h"

/* FM_E_NOSUP names the field.  null, false, 0, "", [] and {} do not set it. */
fm_status fm__refuse_unsupported(const json_t *body);

#endif
