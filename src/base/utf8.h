/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, a byte at a time: surrogates, overlong forms and code points above
 * U+10FFFF are no characters. */
#ifndef FM_BASE_UTF8_H
#define FM_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the longest prefix of s[0..n) made of whole characters. */
size_t fm_utf8_prefix(const char *s, size_t n);

/* Bytes of the character that begins with `first`; 0: none does. */
int fm_utf8_length(unsigned char first);

/* May `next` follow held[0..n_held), the beginning of a character? */
int fm_utf8_continues(const unsigned char *held, int n_held, unsigned char next);

#endif
