/* SPDX-License-Identifier: Apache-2.0 */
/* What a tokenizer consists of, and the readers that fill it. */
#ifndef FM_LLM_TEXT_TOKENIZER_INTERNAL_H
#define FM_LLM_TEXT_TOKENIZER_INTERNAL_H

#include "json/read.h"
#include "llm/text/added_internal.h"
#include "llm/text/bpe_internal.h"
#include "llm/text/splits_internal.h"
#include "llm/text/tokenizer.h"
#include "llm/text/vocab_internal.h"

struct fm_tokenizer {
    fm__vocab  vocab;
    fm__bpe    bpe;
    fm__splits splits;
    fm__added  added[2]; /* cut out of the text; cut out of what the first left ("normalized") */
    int32_t    bos, eos; /* -1: none */
    int        adds_bos;
    char      *chat_template; /* owned, or NULL */
};

typedef struct {
    const char *content;
    int64_t     id;
    int         special, normalized;
} fm__added_entry;

/* tokenizer.json */
fm_status fm__tokenizer_read_json(fm_tokenizer *t, const json_t *root, const char *file);
fm_status fm__splits_read_json(fm__splits *s, const json_t *pre_tokenizer, const char *file);

/* An entry of added_tokens, its id apart; then the token itself. */
fm_status fm__added_entry_read(fm__added_entry *out, const json_t *entry, fm_json_at at);
fm_status fm__tokenizer_add(fm_tokenizer *t, const fm__added_entry *e);

/* tiktoken.model, and the special tokens in tokenizer_config.json. */
fm_status fm__tokenizer_read_tiktoken(fm_tokenizer *t, const char *path, const json_t *config,
                                      const char *config_file);

/* tokenizer_config.json (`config` NULL: there is none): BOS, EOS, template. */
fm_status fm__tokenizer_read_config(fm_tokenizer *t, const json_t *config, const char *file);

#endif
