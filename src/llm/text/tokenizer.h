/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-level BPE: added tokens, split patterns, merges.
 *
 *     text ──added tokens──> spans ──splits──> pieces ──merges──> ids
 *
 * A tokenizer is immutable once open; any number of threads may use it, each
 * with a scratch of its own. */
#ifndef FM_LLM_TEXT_TOKENIZER_H
#define FM_LLM_TEXT_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct fm_tokenizer         fm_tokenizer;
typedef struct fm_tokenizer_scratch fm_tokenizer_scratch; /* match data, piece cache; one thread */

/* Reads DIR/tokenizer.json, or DIR/tiktoken.model where there is none, and, if
 * there, DIR/tokenizer_config.json (BOS rule, EOS, chat template) and
 * DIR/chat_template.jinja. */
fm_status fm_tokenizer_open(fm_tokenizer **out, const char *dir);
fm_status fm_tokenizer_parse(fm_tokenizer **out, const char *json, size_t len, const char *name);
int       fm_tokenizer_exists(const char *dir); /* has it a file that fm_tokenizer_open reads? */
void      fm_tokenizer_close(fm_tokenizer *t); /* NULL is fine */

fm_status fm_tokenizer_scratch_create(fm_tokenizer_scratch **out, const fm_tokenizer *t);
void      fm_tokenizer_scratch_destroy(fm_tokenizer_scratch *s);

typedef struct {
    int32_t *id; /* owned; grown by fm_encode, freed with fm_ids_fini */
    size_t   n, cap;
} fm_ids;
void fm_ids_add(fm_ids *ids, int32_t id);
void fm_ids_fini(fm_ids *ids);

enum {
    FM_ENCODE_BOS   = 1, /* one BOS in front, if the tokenizer's config wants it */
    FM_ENCODE_PLAIN = 2, /* text that looks like an added token stays text */
};

/* Appends to *out.  Bytes that are no UTF-8 are FM_E_FORMAT with their offset;
 * *out is then as it was. */
fm_status fm_encode(const fm_tokenizer *t, fm_tokenizer_scratch *s, const char *text, size_t len,
                    int flags, fm_ids *out);

int     fm_tokenizer_size(const fm_tokenizer *t); /* largest id + 1 */
int32_t fm_tokenizer_bos(const fm_tokenizer *t);  /* -1: none */
int32_t fm_tokenizer_eos(const fm_tokenizer *t);
int     fm_tokenizer_adds_bos(const fm_tokenizer *t);
int32_t fm_token_id(const fm_tokenizer *t, const char *content); /* an added token; -1: none */
const char *fm_tokenizer_chat_template(const fm_tokenizer *t);   /* Jinja text or NULL */

/* The bytes of one token (may be part of a character); n = 0 for ids without
 * a token. */
const char *fm_token_bytes(const fm_tokenizer *t, int32_t id, size_t *n);
int         fm_token_is_special(const fm_tokenizer *t, int32_t id);

#endif
