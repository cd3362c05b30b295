/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens themselves: id -> bytes for decoding, bytes -> id while the
 * merges are read.  Immutable once a tokenizer is open. */
#ifndef FM_LLM_TEXT_VOCAB_INTERNAL_H
#define FM_LLM_TEXT_VOCAB_INTERNAL_H

#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

enum { FM__MAX_TOKENS = 1 << 20 }; /* ids are below; the largest vocabulary we know has 2^17.3 */

typedef struct {
    uint32_t      at, n; /* bytes[at .. at+n); n = 0: no such token */
    unsigned char special;
} fm__token;

typedef struct {
    uint32_t at, n;
    int32_t  id; /* -1 = empty */
} fm__token_slot;

typedef struct {
    fm_str          bytes; /* of all tokens, back to back */
    fm__token      *token; /* [size] owned */
    int             size, cap;
    fm__token_slot *slot; /* [mask + 1] owned; hashed by the token's bytes */
    uint32_t        mask;
} fm__vocab;

/* Makes room to index n_index tokens by their bytes. */
fm_status fm__vocab_init(fm__vocab *v, size_t n_index);
void      fm__vocab_fini(fm__vocab *v);

/* Sets the bytes of `id`; a second call for the same id replaces them. */
fm_status fm__vocab_put(fm__vocab *v, int32_t id, const char *bytes, size_t n);
void      fm__vocab_index(fm__vocab *v, int32_t id); /* lets fm__vocab_find see it */
int32_t   fm__vocab_find(const fm__vocab *v, const char *bytes, size_t n); /* -1: none */

/* Token texts spell bytes in a printable alphabet: 0x21-0x7E, 0xA1-0xAC and
 * 0xAE-0xFF as themselves, the other 68 bytes as U+0100 and on. */
enum { FM__ALPHABET_SIZE = 256 + 68 };
typedef struct {
    int16_t byte_of[FM__ALPHABET_SIZE]; /* code point -> byte; -1: not in the alphabet */
} fm__alphabet;

void fm__alphabet_init(fm__alphabet *a);

/* Replaces *out by the bytes that text[0..n) spells.  Returns 0 when some
 * character is not in the alphabet; *out is then a copy of the text. */
int fm__alphabet_decode(const fm__alphabet *a, const char *text, size_t n, fm_str *out);

#endif
