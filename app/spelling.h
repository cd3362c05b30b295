/* SPDX-License-Identifier: Apache-2.0 */
/* Misspelt options, refused with the nearest name before argp refuses them without. */
#ifndef FM_APP_SPELLING_H
#define FM_APP_SPELLING_H

#include <argp.h>

#include "base/status.h"
#include "base/str.h"

/* FM_E_ARG names the first word that begins with a dash, is no value of another option, and
 * neither is an option nor shortens one. */
fm_status fm_spelling_check(const struct argp_option *options, int argc, char *const *argv);

/* Variables FM_... of the environment that no option reads but that are near one's name, or name an
 * alias: a line of `notes` each.  They are not refused, since they may be another program's.
 * FM_E_ARG: one that an option reads is not UTF-8. */
fm_status fm_spelling_variables(const struct argp_option *options, const char *command,
                                fm_str *notes);

#endif
