/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment, for reports. */
#ifndef FM_BASE_ENVIRONMENT_H
#define FM_BASE_ENVIRONMENT_H

#include "base/str.h"

/* Appends "NAME=value\n" of every variable whose name begins with one of the
 * prefixes and with none of `but` (both ended by NULL), in the order of names.
 * Variables with KEY, TOKEN, SECRET or PASSWORD in their names are left out. */
void fm_environment_list(fm_str *out, const char *const *prefix, const char *const *but);

/* The file for what is kept between runs: $XDG_CACHE_HOME/fathom/NAME, or
 * ~/.cache/fathom/NAME.  Nothing is appended where neither variable is set. */
void fm_environment_cache_path(fm_str *out, const char *name);

#endif
