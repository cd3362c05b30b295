/* SPDX-License-Identifier: Apache-2.0 */
/* What one request asks for, whatever dialect it came in: token prompts, how
 * to sample, how to present the answers.
 *
 * A worker fills it in; from then on it is read-only, and the loop and the
 * engine thread hold counted references. */
#ifndef FM_LLM_SERVE_READ_ASK_H
#define FM_LLM_SERVE_READ_ASK_H

#include <jansson.h>
#include <stdatomic.h>

#include "fathom/fathom.h"
#include "json/read.h"
#include "llm/grammar/grammar.h"
#include "llm/relay/tokens.h"
#include "llm/text/chat.h"
#include "llm/text/reasoning.h"
#include "llm/text/tokenizer.h"
#include "llm/text/tool_calls.h"

enum { FM__MAX_ANSWERS = 4096, FM__MAX_STOPS = 64, FM__MAX_NAME = 256 };

typedef struct {
    fm_ids token;
    fm_str text; /* as the client gave it, for echo */
    char  *rid;  /* /generate's own name for it, or NULL */
    int32_t logprob_from; /* log-probabilities of its tokens from here on; -1: none */
} fm__prompt;

/* The form an answer must have, as it was asked for. */
typedef struct {
    const char     *field; /* of the request; NULL: none */
    int             of_text; /* field is response_format: a forced call goes before it */
    fm_grammar_kind kind;
    fm_str          text;
    const char     *space_field; /* that gave `space`; NULL: none */
    fm_str          space;       /* expression for the white space of JSON */
    int             is_compact;  /* JSON without white space */
} fm__format;

typedef struct {
    fm_sampling    sampling; /* bias points to `bias` */
    fm_logit_bias *bias;
    char         **stop;
    int            n_stop, keep_stop, keep_special;
    int            max_given; /* max_new_tokens came from the client */
    fm__format     format;
    fm_grammar    *grammar; /* held; NULL: any text */
} fm__params;

typedef struct {
    fm__prompt *prompt; /* [n_prompt] */
    int         n_prompt;
    fm__params *params; /* [n_params]: one for all, or one per prompt */
    int         n_params;
    int         n; /* answers per prompt */
    int         priority;
    char       *rid;   /* the client's name for the request, or NULL */
    char        model[FM__MAX_NAME];

    int stream, include_usage, continuous_usage;
    int echo;
    int is_list; /* /generate: the reply is a list */
    int text_in_logprobs;

    int               thinks; /* the answer begins inside reasoning, separated or not */
    fm_reasoning_mode reasoning;
    const char       *reasoning_also_ends;
    int               one_thought; /* reasoning in one piece */
    int               tools;       /* look for calls */
    fm_tool_style     tool_style;
    char            **tool_name; /* [n_tool] declared functions */
    int               n_tool;
    fm_str            forced; /* the call's opening that the prompt ends with */
    const char       *format_field; /* the dialect's name for response_format; NULL: that */
    int               is_load; /* Ollama's call to load the model: no prompts */

    /* /v1/responses: members that the response repeats, each with a comma before it; the
     * chat without instructions, a JSON list; may it be kept? */
    fm_str repeated, turns;
    int    stores;

    /* From a router in front (relay/stream.h). */
    int             has_key;  /* prompts without a seed get one derived from `key` */
    uint64_t        key;
    fm_relay_tokens begun;    /* tokens the client already has, of each answer */

    atomic_int n_holder;
} fm__ask;

/* What the readers need to know of the server; the same for all requests. */
typedef struct {
    const fm_tokenizer *tokenizer; /* NULL: ids alone */
    fm_grammars        *grammars;  /* NULL: no constrained output */
    int                 compact_json; /* no white space in JSON unless a request wants it */
    const char         *json_space;   /* expression for it where a request has none, or NULL */
    fm_chat_style       chat_style;
    fm_reasoning_mode   reasoning;     /* when the template leaves thinking on */
    int                 reasons_on_request; /* only with thinking: true */
    int                 has_tools;
    fm_tool_style       tool_style;
    fm_sampling         defaults;
    int                 vocab, context;
    const char         *model; /* served name */
    struct fm__responses *responses; /* those that requests go on from */
    int prompts_only; /* a router reads for the prompts: no grammar is made */
} fm__facts;

/* From the tokenizer and the words of the options: chat template and parsers.  The words are
 * checked before.  FM_E_ARG: there is no such parser. */
fm_status fm__facts_check_parsers(const char *reasoning_parser, const char *tool_call_parser);
void fm__facts_pick(fm__facts *f, const char *reasoning_parser, const char *tool_call_parser);

/* One worker's view while it reads a request. */
typedef struct {
    const fm__facts      *facts;
    fm_tokenizer_scratch *scratch;
} fm__reader;

fm__ask *fm__ask_create(void);
void     fm__ask_retain(fm__ask *a);
void     fm__ask_release(fm__ask *a); /* NULL is fine */

static inline const fm__params *fm__ask_params(const fm__ask *a, int prompt)
{
    return &a->params[a->n_params == 1 ? 0 : prompt];
}

/* Each fills `a` from a request's JSON; FM_E_FORMAT or FM_E_ARG names the field. */
typedef fm_status fm__read_fn(fm__ask *a, const json_t *body, const fm__reader *r);
fm__read_fn       fm__read_chat, fm__read_completion, fm__read_generate, fm__read_messages;
fm__read_fn       fm__read_responses, fm__read_ollama_chat, fm__read_ollama_generate;

/* Shared by the readers. */
extern const fm_json_at fm__at; /* "request" */

typedef struct {
    const char *max_tokens, *max_tokens_old; /* the second may be NULL */
    const char *min_tokens, *seed, *stop;
} fm__field_names;
extern const fm__field_names fm__openai_names, fm__native_names;

/* Sampling fields of `o`.  n_default: max_new_tokens where none is given; 0: up
 * to the context.  The form of the answer is for fm__read_format. */
fm_status fm__read_params(fm__params *p, const json_t *o, const fm__field_names *names,
                          const fm__facts *facts, int n_default);
/* model, stream, priority, rid. */
fm_status fm__read_shared(fm__ask *a, const json_t *body, const fm__facts *facts);
fm_status fm__read_n(fm__ask *a, const json_t *o);

/* ask_grammar.c: response_format (errors say `format_field`), json_schema, regex, ebnf; then,
 * when the rest is known, what they mean. */
fm_status fm__read_format(fm__params *p, const json_t *o, const char *format_field);
fm_status fm__make_grammars(fm__ask *a, const fm__facts *facts);
fm_status fm__make_call_grammar(fm__ask *a, const fm__facts *facts, const fm_grammar_calls *calls);

fm_status fm__add_prompts(fm__ask *a, int n); /* n empty ones */
fm_status fm__encode_text(fm__prompt *p, const fm__reader *r, const char *text, size_t len,
                          int flags);
fm_status fm__read_ids(fm__prompt *p, const json_t *list, const char *field);
fm_status fm__check_lengths(fm__ask *a, const fm__facts *facts); /* last: settles max_new_tokens */

/* A string member without NUL characters; absent: *out untouched. */
fm_status fm__opt_text(const char **out, const json_t *o, const char *key);

/* The messages of a chat request as the prompt's text; sets the ask's tool
 * and reasoning fields. */
fm_status fm__render_chat(fm__ask *a, const json_t *body, const fm__reader *r, fm_str *out);
/* An Anthropic request as a chat request; the caller owns the result. */
fm_status fm__chat_of_messages(json_t **out, const json_t *body);

#endif
