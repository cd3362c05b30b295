/* SPDX-License-Identifier: Apache-2.0 */
/* libfathom: run DeepSeek models from C.
 *
 * An engine is a loaded model with its cache and its queue.  Submit prompts,
 * step, poll what came out:
 *
 *     fm_engine_open(&e, options);
 *     fm_engine_submit(e, &prompt, &id);
 *     while (fm_engine_busy(e)) {
 *         fm_engine_step(e);
 *         while (fm_engine_poll(e, &ev)) fwrite(ev.text, 1, ev.text_len, stdout);
 *     }
 *
 * Prompts may be submitted at any time; they are computed in one batch, and an
 * answer does not depend on the other requests.  One exception: where a prompt
 * repeats tokens that an earlier answer generated, as the next turn of a chat does,
 * their cached KV is reused, whose last bits differ from those of a prefill; the
 * option "deterministic" computes them again.
 *
 * Threads: one at a time uses an engine.  No thread is bound to cores unless the
 * option "cpu-bind" says so ("auto", or a list): then the thread that steps is bound,
 * too, until the engine closes, and threads that it starts inherit this.
 *
 * A call that fails leaves one sentence in fm_why() and NULL in its *out.  A
 * pointer that must not be NULL and is gives FM_E_ARG.
 *
 * Keep this header small: what is not here can still be changed. */
#ifndef FATHOM_H
#define FATHOM_H

#include <stddef.h>
#include <stdint.h>

#include "fathom/observe.h"
#include "fathom/sampling.h"
#include "fathom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FM_VERSION "0.1.0"
FM_API const char *fm_version(void); /* of the library that runs */

typedef struct fm_options fm_options;
typedef struct fm_engine  fm_engine;

/* Options by the names of the command line, without the dashes:
 * fm_options_set(o, "model-path", "/models/R1"). */
FM_API fm_status fm_options_create(fm_options **out);
FM_API fm_status fm_options_set(fm_options *o, const char *name, const char *value);
FM_API void      fm_options_destroy(fm_options *o); /* NULL is fine */

/* Plans memory, loads the weights, allocates everything: nothing is allocated
 * in a step.  FM_E_ARG: no "model-path" was set.  FM_E_OOM: the plan does not
 * fit, fm_why() says by how much. */
FM_API fm_status fm_engine_open(fm_engine **out, const fm_options *o);
FM_API void      fm_engine_close(fm_engine *e); /* NULL is fine */

/* Many ranks: started by mpirun with sizes in the options ("tp-size", ...),
 * every process opens an engine, one leads and does all of the below, and the
 * others follow until it closes; then they close, too.  MPI cannot begin again
 * after that, so such a process opens one engine. */
FM_API int       fm_engine_is_leader(const fm_engine *e);
FM_API fm_status fm_engine_follow(fm_engine *e);

/* What the model is. */
typedef struct {
    char    architecture[64];
    char    chat_style[16]; /* of its template: "v3", "r1", ...; "" without a tokenizer */
    int32_t vocab, hidden, n_layer, n_head, n_expert;
    int32_t bos, eos;      /* -1: none */
    int32_t has_tokenizer; /* 0: it works on token ids alone */
    int32_t context;       /* tokens of one sequence */
    int32_t max_running;   /* sequences in one step */
    int64_t kv_tokens;     /* that fit in the cache */
    int64_t weight_bytes;  /* of this process */
} fm_model_facts;
FM_API fm_status fm_engine_facts(const fm_engine *e, fm_model_facts *out);

/* Text and tokens.  Each writes up to `room` of its output and leaves in *n how
 * much there is; with NULL in place of the output it only counts.  FM_E_FULL:
 * there is more than `room`. */
enum { FM_TOKENIZE_BOS = 1, FM_TOKENIZE_PLAIN = 2 }; /* BOS in front if the model wants it; text that
                                                        looks like a special token stays text */
FM_API fm_status fm_engine_tokenize(const fm_engine *e, const char *text, size_t len, int flags,
                                    int32_t *token, size_t room, size_t *n);
/* keep_special: special tokens appear in the text.  It is not NUL-terminated. */
FM_API fm_status fm_engine_detokenize(const fm_engine *e, const int32_t *token, size_t n_token,
                                      int keep_special, char *text, size_t room, size_t *n);

/* A conversation as the prompt the model was trained on, with the opening of its
 * answer.  BOS is in it: tokenise it without FM_TOKENIZE_BOS.  *is_thinking: the
 * answer begins inside <think>; NULL is fine. */
typedef struct {
    const char *role;    /* system, user, assistant, tool */
    const char *content;
} fm_message;
FM_API fm_status fm_engine_chat_prompt(const fm_engine *e, const fm_message *message, int n_message,
                                       int thinking, char *text, size_t room, size_t *n,
                                       int *is_thinking);

/* Constrained output.  A grammar is reference-counted: release it when its last prompt
 * was submitted, and before its engine is closed. */
typedef struct fm_grammar fm_grammar;
/* EBNF: rules as XGrammar and llama.cpp (GBNF) write them; the text is one of the rule "root". */
typedef enum { FM_GRAMMAR_JSON_SCHEMA, FM_GRAMMAR_REGEX, FM_GRAMMAR_EBNF } fm_grammar_kind;

/* FM_E_NOSUP: the schema or expression uses something that cannot be followed;
 * fm_why() names it. */
FM_API fm_status fm_engine_grammar(fm_grammar **out, fm_engine *e, fm_grammar_kind kind,
                                   const char *text, size_t len);
FM_API void      fm_grammar_retain(fm_grammar *g);
FM_API void      fm_grammar_release(fm_grammar *g); /* NULL is fine */

typedef struct {
    const char    *text;       /* encoded with BOS as the model wants it, or NULL */
    size_t         text_len;
    const int32_t *token;      /* [n_token] used when text is NULL */
    int32_t        n_token;
    fm_sampling    sampling;
    const char *const *stop;   /* [n_stop] stop strings */
    int            n_stop;
    int            keep_stop;    /* leave the stop string in the text */
    int            keep_special; /* 1: special tokens appear in the text; 2: only <think>, </think> */
    int            n;            /* answers wanted; 0 means 1 */
    int            priority;     /* higher first */
    uint64_t       id;           /* the caller's number for it, not in use; 0: the engine counts from 1 */
    fm_grammar    *grammar;      /* or NULL; retained */
    const char    *grammar_after; /* the grammar begins behind this text, e.g. </think>; or NULL */
    int            prompt_logprobs; /* report the prompt's own log-probabilities, too, */
    int32_t        logprob_from;    /* of the tokens after this position */
} fm_prompt;

/* Copies what it needs.  FM_E_ARG: it can never run, and why. */
FM_API fm_status fm_engine_submit(fm_engine *e, const fm_prompt *p, uint64_t *id);
FM_API void      fm_engine_cancel(fm_engine *e, uint64_t id);

/* One forward pass over everything that can run. */
FM_API fm_status fm_engine_step(fm_engine *e);
FM_API int       fm_engine_busy(const fm_engine *e); /* anything running or waiting? */

typedef struct {
    uint64_t    id;       /* of the prompt */
    int         index;    /* which of its n answers */
    int32_t     token;    /* -1: no token in this event */
    const char *text;     /* what it adds to the text; never half a character */
    size_t      text_len;
    int32_t     prompt_at; /* not -1: logprob and top are of the prompt's token here */
    float       logprob;  /* if asked for */
    int         n_top;
    const fm_top_logprob *top;
    fm_finish   finish;     /* FM_FINISH_NONE: more to come */
    int32_t     matched_id; /* the token that stopped it, or -1 */
    int         matched_stop; /* the stop string that stopped it, or -1 */
    int32_t     n_prompt, n_output, n_cached; /* tokens so far */
    int32_t     n_cached_host, n_cached_storage; /* of n_cached: from host memory, from files */
    double      queue_seconds; /* from its submission to its first step */
    double      when;          /* of the event, in seconds of the monotonic clock */
    int32_t     n_verify;      /* with speculation: steps that gave the tokens behind the first, */
    int32_t     n_draft, n_accepted; /* drafts they verified, and those of them that were right */
} fm_event;

/* The next event, or 0.  Pointers are valid until the next call on e. */
FM_API int fm_engine_poll(fm_engine *e, fm_event *ev);

#ifdef __cplusplus
}
#endif
#endif
