/* SPDX-License-Identifier: Apache-2.0 */
/* Misspelt options, refused with the nearest name before argp refuses them without. */
#ifndef FM_APP_SPELLING_H
#define FM_APP_SPELLING_H

#include <argp.h>

#include "base/status.h"

/* FM_E_ARG names the first word that begins with a dash, is no value of another option, and
 * neither is an option nor shortens one. */
fm_status fm_spelling_check(const struct argp_option *options, int argc, char *const *argv);

#endif
