/* SPDX-License-Identifier: Apache-2.0 */
/* A command line with places for values:
 *
 *     {threads}              the value of a parameter
 *     {cache?--fast}         the rest of the braces where its value is on, yes, true or 1;
 *     {cache!--disable-it}   where it is none of these; otherwise the word is left out
 *     {trial} {slot}         the trial's number; which of the parallel trials this is
 *
 * Other braces are left alone.  A word whose parameter does not exist at a point is
 * left out, and with it an option word before it ("--drafts {drafts}"). */
#ifndef FM_TUNE_WORDS_H
#define FM_TUNE_WORDS_H

#include "tune/space.h"

/* FM_E_ARG: a parameter that no word mentions. */
fm_status fm_words_check(const fm_space *s, char *const *word, int n);

/* NULL-terminated; free with fm_words_free(). */
fm_status fm_words_fill(char ***out, const fm_space *s, const fm_point *at, char *const *word,
                        int n, int trial, int slot);
void      fm_words_free(char **words);

/* As a shell would take it, words that need quotes in quotes. */
void fm_words_quote(fm_str *out, char *const *word);

#endif
