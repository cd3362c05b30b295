/* SPDX-License-Identifier: Apache-2.0 */
/* Ordinary tokens in the order of their bytes: neighbours share beginnings, so a
 * walk over all of them follows each beginning once. */
#ifndef FM_LLM_GRAMMAR_TOKEN_ORDER_H
#define FM_LLM_GRAMMAR_TOKEN_ORDER_H

#include "llm/text/tokenizer.h"

typedef struct {
    int32_t     *id;     /* [n] */
    const char **bytes;  /* [n] the tokenizer's */
    uint16_t    *len;    /* [n] */
    uint16_t    *shared; /* [n] bytes in common with the one before */
    int          n, max_len;
} fm__token_order;

fm_status fm__token_order_init(fm__token_order *o, const fm_tokenizer *t, int vocab);
void      fm__token_order_fini(fm__token_order *o);

/* Clears the bits of the tokens that begin with these bytes. */
void fm__token_order_clear(const fm__token_order *o, const char *bytes, size_t n, uint32_t *bits);

#endif
