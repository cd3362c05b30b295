/* SPDX-License-Identifier: Apache-2.0 */
/* Constrained decoding: a JSON schema, a regular expression or a grammar in EBNF becomes
 * an automaton over bytes, and the automaton gives the tokens that may come next.
 *
 *     text ──> rules (nfa.h) ──> states, made as they are met (states.h)
 *     tokens, sorted by their bytes ──walk from a state──> a bit per token
 *
 * An answer that follows its grammar to the end is valid; one that is cut by
 * max_new_tokens is the beginning of a valid one.
 *
 * Threads.  fm_grammars and fm_grammar may be used by any number of threads; a
 * matcher belongs to one at a time.
 *
 * Ownership.  A grammar is counted: fm_grammars_get() gives one reference to
 * the caller, every matcher holds one. */
#ifndef FM_LLM_GRAMMAR_GRAMMAR_H
#define FM_LLM_GRAMMAR_GRAMMAR_H

#include "fathom/fathom.h"
#include "llm/text/tokenizer.h"
#include "llm/text/tool_calls.h"

typedef struct fm_grammars fm_grammars; /* those of one tokenizer, the last few kept */

/* The tokenizer is borrowed.  eos: the tokens that end a text. */
fm_status fm_grammars_create(fm_grammars **out, const fm_tokenizer *t, int vocab,
                             const int32_t *eos, int n_eos);
void      fm_grammars_destroy(fm_grammars *gs); /* NULL is fine; grammars in use live on */

/* A line end or two may come before the JSON text; no white space inside it. */
enum { FM_GRAMMAR_SPACE_FIRST = 1, FM_GRAMMAR_COMPACT = 2 };

/* FM_E_FORMAT: the text is no schema, expression or grammar.  FM_E_NOSUP: it uses
 * something that is not understood here, or grows too large; both name it. */
fm_status fm_grammars_get(fm_grammar **out, fm_grammars *gs, fm_grammar_kind kind, const char *text,
                          size_t len, int flags);

/* A schema, with white space of the caller's: between all parts of the text (brackets, separators,
 * elements) comes what this expression matches. */
fm_status fm_grammars_get_spaced(fm_grammar **out, fm_grammars *gs, const char *schema, size_t len,
                                 const char *space, int flags);

/* Tool calls after a prompt that ends with fm_tool_calls_opening(style, chosen). */
typedef struct {
    const char *name;
    const char *schema; /* of its arguments: JSON text */
    int         strict; /* a schema that is not understood is an error, not any object */
} fm_grammar_tool;
typedef struct {
    fm_tool_style          style;
    const char            *chosen; /* the name in the opening, or NULL */
    const fm_grammar_tool *tool;   /* [n_tool] */
    int                    n_tool;
    int                    one_call; /* no second call */
    int                    compact;  /* no white space in the arguments */
} fm_grammar_calls;
fm_status fm_grammars_get_calls(fm_grammar **out, fm_grammars *gs, const fm_grammar_calls *calls);

typedef struct fm_matcher fm_matcher;

/* Where one answer stands in its grammar.  after: the grammar begins behind
 * the first occurrence of this text, and anything may come before; NULL or "":
 * at once. */
fm_status fm_matcher_create(fm_matcher **out, fm_grammar *g, const char *after);
void      fm_matcher_destroy(fm_matcher *m); /* NULL is fine */

/* A bit per token that may come next, valid until the next fm_matcher_take();
 * NULL: any. */
const uint32_t *fm_matcher_allowed(const fm_matcher *m);

/* Advances by the token that was sampled.  FM_E_ARG: it was not allowed.  FM_E_NOSUP: computing the
 * tokens that may follow would take too long, so none may; that depends on the text alone, not on
 * other matchers. */
fm_status fm_matcher_take(fm_matcher *m, int32_t token);
int       fm_matcher_is_over(const fm_matcher *m); /* nothing more may come */

/* For drafts: how many of these n tokens are allowed one after the other without the text being
 * complete, and the mask after each: mask[i] [words of vocab bits] after tokens 0 .. i.  The
 * matcher does not advance.  The count may be too low where the masks are expensive to compute.
 * Where any token may come (fm_matcher_allowed is NULL), any may come after those counted, too, and
 * no mask is written. */
int fm_matcher_peek(fm_matcher *m, const int32_t *token, int n, uint32_t *mask);
size_t fm_matcher_mask_words(const fm_matcher *m);

#endif
