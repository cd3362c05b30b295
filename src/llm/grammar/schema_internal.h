/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON schema being turned into rules.  What is written always satisfies
 * the schema; not everything that satisfies it can be written (docs/api.md). */
#ifndef FM_LLM_GRAMMAR_SCHEMA_INTERNAL_H
#define FM_LLM_GRAMMAR_SCHEMA_INTERNAL_H

#include <jansson.h>

#include "llm/grammar/nfa.h"

typedef struct {
    const json_t *schema; /* borrowed */
    int32_t       rule;
    int           is_once; /* as in fm__schema */
} fm__schema_rule;

typedef struct {
    fm__nfa         *n;
    json_t          *root;
    fm__schema_rule *made; /* [made_mask + 1] rules by the address of their schema */
    size_t           n_made, made_mask;
    json_t          *derived;  /* schemas that merging has made: a list */
    json_t          *pairs;    /* ... of two, by both */
    json_t          *required; /* ... that requiring a tag has made, by schema and tags */
    int              depth;
    int              is_once;   /* each value in one spelling: inside an item that must be unique */
    int              has_named; /* a property, as the place of a failure */
} fm__schema;

/* In merged schemas: a pattern or a list of patterns that must hold, too. */
#define FM__PATTERNS " patterns"

/* Each continues from `from` and leaves the state after in *to.  FM_E_NOSUP
 * and FM_E_FORMAT name the keyword. */
fm_status fm__schema_any(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_object(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_map(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_array(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_string(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_number(fm__schema *s, const json_t *v, int is_integer, int32_t from,
                            int32_t *to);

/* schema_unique.c: at least one item and no two alike, between states that exist; max < 0: any
 * number.  FM_E_NOSUP, and nothing is added: the values an item can have are not a short list. */
fm_status fm__schema_unique(fm__schema *s, const json_t *items, int64_t min, int64_t max,
                            int32_t open, int32_t close);
/* Is it a string or an integer that nothing but a least length or value restricts?  Then a rule for
 * one that the matcher remembers, and the mark of an array of them. */
int       fm__schema_is_free(fm__schema *s, const json_t *v);
fm_status fm__schema_remembered(fm__schema *s, const json_t *v, int32_t *rule, int *mark);

/* schema_scarce.c: strings and numbers of any other kind, remembered as well. */
typedef struct {
    int32_t rule; /* of an item */
    int     mark; /* of an array of them */
    int64_t max;  /* so many items can differ; -1: any number */
} fm__unique_items;
enum { FM__MAX_UNIQUE_SET = 8 }; /* so many values come by a state per set of them */
enum { FM__MANY_VALUES = 100000 }; /* counts from here on are alike */
typedef enum { FM__A_STRING, FM__AN_INTEGER, FM__A_NUMBER } fm__scalar;
int       fm__schema_is_scarce(fm__schema *s, const json_t *v);
fm_status fm__schema_scarce(fm__schema *s, const json_t *v, fm__unique_items *out);
/* One string or number in its only spelling, and how many there are, at least. */
fm_status fm__schema_canonical(fm__schema *s, const json_t *v, fm__scalar kind, int32_t from,
                               int32_t *to);
fm_status fm__schema_count_texts(fm__schema *s, const json_t *v, fm__scalar kind, int64_t *n);
int64_t   fm__schema_item_limit(int64_t n_value); /* of an array of different ones; -1: none */

/* schema_values.c: objects, arrays, unions.  FM_E_NOSUP: a value has several spellings. */
fm_status fm__schema_values(fm__schema *s, const json_t *v, fm__unique_items *out);
fm_status fm__schema_need_one_spelling(const fm__schema *s); /* of a value of any type, or a map */

/* schema_ref.c: as a rule of its own, shared by all who call it. */
fm_status fm__schema_call(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_ref(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
fm_status fm__schema_resolve(const fm__schema *s, const json_t *v, const json_t **out);
/* v with more names required (the keys of an object); the same schema for the same names. */
fm_status fm__schema_require(fm__schema *s, const json_t *v, json_t *names, const json_t **out);
int       fm__schema_requires(fm__schema *s, const json_t *v, const char *name);

/* schema_union.c: anyOf or oneOf. */
fm_status fm__schema_union(fm__schema *s, const json_t *v, const char *key, int32_t from,
                           int32_t *to);
int       fm__schema_equal(const json_t *a, const json_t *b);     /* 1 and 1.0 are */
int       fm__schema_lists(const json_t *v, const json_t *value); /* as its const or in its enum */
int       fm__schema_is_repeated(const json_t *list, size_t i);   /* equal to one before */

/* schema_merge.c: does it say something beside $ref, anyOf or oneOf, or have an allOf?  Such a
 * schema, and a reference, made plain: either keywords about values, or one anyOf or oneOf. */
int       fm__schema_is_compound(const json_t *v);
fm_status fm__schema_flatten(fm__schema *s, const json_t *v, const json_t **out);
fm_status fm__schema_both(fm__schema *s, const json_t *a, const json_t *b, const json_t **out);
/* schema_merge_words.c: the keywords of a and b that are no schemas, holding at once. */
fm_status fm__schema_merge_words(json_t *to, const json_t *a, const json_t *b);

/* schema_number.c: the least and the largest integer, where a schema has bounds on both sides. */
int fm__schema_integer_range(const json_t *v, int64_t *lo, int64_t *hi);

/* schema_words.c: refuses keywords that are not followed and types there are not. */
fm_status fm__schema_check_words(const json_t *v);
/* A keyword that says something about the value, other than `but`; or NULL. */
const char *fm__schema_other_word(const json_t *v, const char *but);
const char *fm__schema_type_of(const json_t *v); /* by its keywords, where none is given; or NULL */
int fm__schema_has_type(const json_t *v, const json_t *value); /* one that the schema names */
/* A count; *out is untouched if the keyword is absent. */
fm_status fm__schema_count(int64_t *out, const json_t *v, const char *key);

/* schema_format_tab.c: the expression of a format, or NULL: the name says nothing about the value.
 */
const char *fm__schema_format(const json_t *name);

/* schema.c: one value, as it is written without white space. */
fm_status fm__schema_literal(fm__schema *s, const json_t *v, int32_t from, int32_t *to);
/* ... the whole text is a value of this schema. */
fm_status fm__nfa_schema(fm__nfa *n, json_t *root, int32_t from, int32_t *to);

#endif
