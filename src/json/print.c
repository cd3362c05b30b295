/* SPDX-License-Identifier: Apache-2.0 */
#include "json/print.h"

#include <stdlib.h>

#include "base/status.h"

void fm_json_print(fm_str *out, json_t *o)
{
    char *text = json_dumps(o, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    FM_BUG_UNLESS(text != NULL);
    fm_str_puts(out, text);
    fm_str_puts(out, "\n");
    free(text);
    json_decref(o);
}
