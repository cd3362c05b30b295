/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a worker that its answers depend on, as it reports them (GET /get_server_info).
 * A stream that moves between workers goes on with the same bits only if these agree. */
#ifndef FM_LLM_ROUTE_SETTINGS_H
#define FM_LLM_ROUTE_SETTINGS_H

#include <jansson.h>

#include "base/str.h"

enum { FM_N_SETTING = 11 };

typedef struct {
    char *value[FM_N_SETTING]; /* JSON, owned; NULL: not reported */
    int   is_known;
} fm_settings; /* {0} is empty */

void fm_settings_read(fm_settings *s, const json_t *info);
void fm_settings_fini(fm_settings *s); /* {0} again */

/* Adds "deterministic is true, there false; ..." for what both report and differ in. */
void fm_settings_compare(fm_str *out, const fm_settings *here, const fm_settings *there);

#endif
