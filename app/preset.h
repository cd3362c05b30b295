/* SPDX-License-Identifier: Apache-2.0 */
/* --preset FILE: options from a file, as `fathom tune --write-preset` writes them.
 *
 *     # a comment
 *     --threads=2
 *     --chunked-prefill-size 1024
 *     --disable-radix-cache
 */
#ifndef FM_APP_PRESET_H
#define FM_APP_PRESET_H

#include "base/status.h"
#include "word_list.h"

/* argv with the words of each preset put before all other options, so that what
 * the command line says wins.  FM_E_IO: no such file.  FM_E_FORMAT: a line that is no option. */
fm_status fm_preset_words(fm_word_list *out, int argc, char **argv);

#endif
