/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON schema being turned into rules.  What is written always satisfies
 * the schema; not everything that satisfies it can be written (see docs). */
#ifndef FM_LLM_GRAMMAR_SCHEMA_INTERNAL_H
#define FM_LLM_GRAMMAR_SCHEMA_INTERNAL_H

#include <jansson.h>

#include "llm/grammar/nfa.h"

typedef struct {
    const json_t *schema; /* borrowed */
    int32_t       rule;
} fm__schema_rule;

typedef struct {
    fm__nfa         *n;
    json_t          *root;
    fm__schema_rule *made; /* [n_made] what $ref has met */
    int              n_made, cap_made, depth;
} fm__schema;

/* Each continues from `from` and leaves the state after in *to.  FM_E_NOSUP
 * and FM_E_FORMAT name the keyword. */
fm_status fm__schema_any(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_object(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_array(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_string(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_number(fm__schema *s, const json_t *v, int is_integer, int32_t from,
                            int32_t *to);

/* schema_words.c: refuses keywords that are not followed and types there are not. */
fm_status fm__schema_check_words(const json_t *v);
/* A keyword that says something about the value, other than `but`; or NULL. */
const char *fm__schema_other_word(const json_t *v, const char *but);
const char *fm__schema_type_of(const json_t *v); /* by its keywords, where none is given; or NULL */
int fm__schema_has_type(const json_t *v, const json_t *value); /* one that the schema names */
int fm__schema_are_disjoint(const json_t *list);
/* A count; *out is untouched if the keyword is absent. */
fm_status fm__schema_count(int64_t *out, const json_t *v, const char *key);

/* schema_format_tab.c: the expression of a format, or NULL: the name says nothing about the value.
 */
const char *fm__schema_format(const json_t *name);

/* schema.c: the whole text is a value of this schema. */
fm_status fm__nfa_schema(fm__nfa *n, json_t *root, int32_t from, int32_t *to);

#endif
