/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a JSON value as indented text, for reports. */
#ifndef FM_JSON_PRINT_H
#define FM_JSON_PRINT_H

#include <jansson.h>

#include "base/str.h"

/* Appends `o`, indented, numbers with nine digits, and a line end.  Takes the reference. */
void fm_json_print(fm_str *out, json_t *o);

#endif
