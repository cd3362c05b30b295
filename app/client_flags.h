/* SPDX-License-Identifier: Apache-2.0 */
/* Which flags of one command line are a server's, and which those of the client that measures it.
 */
#ifndef FM_APP_CLIENT_FLAGS_H
#define FM_APP_CLIENT_FLAGS_H

#include "base/knobs.h"
#include "word_list.h"

/* FM_E_ARG names a word before any flag, or the first flag that neither bench nor serve has, nor
 * the command itself, whose knobs are `own`: known before the first of many processes fails by it.
 */
fm_status fm_check_flags(const fm_word_list *given, const fm_knob *own, int n_own);

/* What describes the requests goes to the client, all else to the server; a word without dashes
 * goes where the option before it went. */
void fm_divide_flags(fm_word_list *server, fm_word_list *client, const fm_word_list *given);

#endif
