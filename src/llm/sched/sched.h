/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler: which rows run in the next forward pass.
 *
 *     submit ──> waiting ──admit──> running ──commit──> done
 *                   ^                  │
 *                   └─────preempt──────┘   (pages freed, recomputed later)
 *
 * Every step has the newest token of each running sequence that is past its
 * prompt, then prefill chunks as far as the budgets go.  A sequence may have
 * several out rows in a step: prompt positions whose log-probabilities are
 * wanted, and draft tokens to verify.  Drafts follow the newest token as rows
 * of their own; commit accepts them as long as the token sampled before each is
 * the draft itself, so a drafted sequence has the tokens it would have had.
 *
 * With the overlap schedule a step is planned while the one before is still in
 * flight: its rows then start from tokens that are not known yet (FM_CHOICE in
 * llm/batch.h).  A sequence that turns out to have ended has one row too many,
 * whose result is dropped.  Its pages are freed at once: passes run one after
 * the other, so no later pass reads what this row writes.
 *
 * Admission counts pages exactly and guesses only how long outputs will be.
 * When the guess was too low, a sequence is preempted: of the lowest priority
 * the one with the fewest outputs.  Nothing fails for lack of memory.
 *
 * A prompt that shares a good part with one being prefilled waits for those
 * pages instead of computing them again, and keeps a place among the running.
 * That, and longest-prefix-match (lpm), lets others overtake, but none more
 * often than a fixed number of times; preempted requests go before newcomers.
 *
 * Pure bookkeeping: no model, no threads, no clock.  Nothing allocates after
 * fm_sched_create(); requests are the caller's, linked in place. */
#ifndef FM_LLM_SCHED_SCHED_H
#define FM_LLM_SCHED_SCHED_H

#include "llm/batch.h"
#include "llm/kv/kv_cache.h"
#include "llm/sched/request.h"

typedef enum { FM_POLICY_FCFS, FM_POLICY_LPM } fm_policy;

typedef struct {
    int       max_running; /* sequences */
    int       chunk;       /* prefill tokens per step (chunked_prefill_size); <= 0: prompts are
                              not cut, one that is longer than max_prefill runs alone */
    int       max_prefill; /* prefill tokens per step, too (max_prefill_tokens) */
    int       max_context; /* tokens of one sequence */
    int       page_size;
    int       n_page;
    fm_policy policy;
    int       max_draft;        /* draft tokens of one sequence in a step; 0: no speculation */
    int       keeps_states;     /* hidden states are kept for a chain of drafts (model/model.h) */
    int       other_leases;     /* of the kv, beside those of running requests */
    double    simulated;        /* for measurements: drafts are accepted with this probability,
                                   whatever they are; 0: if they are right */
    int       deterministic;    /* generated tokens are never published */
    double    conservativeness; /* of the output guess; 1.0 is usual */
    int32_t   eos[8];
    int       n_eos;
} fm_sched_options;

typedef struct fm_sched fm_sched;

/* The kv is borrowed and must outlive the scheduler, which counts on all of
 * its pages.  FM_E_ARG: an option is out of range or the kv was made with
 * other pages. */
fm_status fm_sched_create(fm_sched **out, const fm_sched_options *opt, fm_kv *kv);
void      fm_sched_destroy(fm_sched *s); /* NULL is fine; what runs gives its pages back */

/* FM_E_ARG with a sentence if it can never run: empty prompt, longer than the
 * context, or more pages than the pool has.  max_new_tokens is cut to what
 * context and pool can hold; with 0 the prompt is computed for the cache and
 * the request ends without output.  Cached pages of the prompt count as just
 * used, so that requests before it in the queue evict others. */
fm_status fm_sched_submit(fm_sched *s, fm_request *r);
fm_status fm_sched_check(const fm_sched *s, const fm_request *r); /* would it be refused? */

/* The next output of a waiting request that never ran is `id`: another engine chose it.
 * It is computed as a preempted request's outputs are, in its own form, before anything
 * new is sampled.  A request that has such outputs goes before newcomers, and one that
 * `id` ends is done at once. */
void fm_sched_replay(fm_sched *s, fm_request *r, int32_t id);

/* Takes the first waiting request that never ran out of the queue, for another
 * scheduler; NULL: there is none. */
fm_request *fm_sched_withdraw(fm_sched *s);

/* Ends a request from outside: a stop string was found, the client left.  It
 * gets no further token.  One that runs while a step is planned or in flight is
 * done when the oldest such step is committed or given up, any other at once.
 * Does nothing to a request that has ended already. */
void fm_sched_finish(fm_sched *s, fm_request *r, fm_finish why);
void fm_sched_cancel(fm_sched *s, fm_request *r); /* FM_FINISH_ABORT */

/* The waiting requests, in the order of the queue: the next is fm_request_next(r).  While pages
 * of a request are loaded from a tier, tier_policy sets is_loading: it is not admitted then. */
fm_request *fm_sched_first_waiting(const fm_sched *s);

/* From now on a request is not admitted before is_looked_up is set, nor any behind it: what tiers
 * below have of it is loaded rather than computed.  Only the first FM_SCHED_LOOKUPS of the queue are
 * looked up, so that a step costs the same however many wait. */
enum { FM_SCHED_LOOKUPS = 256 };
void fm_sched_await_lookups(fm_sched *s);

/* Evictable pages that were loaded from a lower tier for the first FM_SCHED_LOOKUPS waiting requests
 * (n_loaded): they are not evicted to admit another request. */
int32_t fm_sched_promised(const fm_sched *s);

/* Pages of the kv that loads hold until the step after the next: while there are any, a plan may be
 * NULL although requests run or wait. */
void fm_sched_set_held(fm_sched *s, int32_t n_page);

/* The running requests, in the order of admission. */
int         fm_sched_n_running(const fm_sched *s);
fm_request *fm_sched_running(const fm_sched *s, int i);

/* No prompt is being read, and none waits for a place that is free: the next step probably decodes
 * alone. */
int fm_sched_only_decodes(const fm_sched *s);

/* The most drafts of one request in a step. */
enum { FM_MAX_DRAFT = 16 };

/* Proposes draft tokens to follow r's newest token in the next step.  Takes as
 * many of the n as fit max_draft, the request's length and its state: 0 for one
 * that is not decoding or not is_sequential. */
int fm_sched_propose(fm_sched *s, fm_request *r, const int32_t *draft, int n);

/* --- chains of drafts, where states are kept.  Between steps:
 *
 *     fm_sched_chain_begin(s);
 *     for some requests r: fm_sched_chain_add(s, r, n_link)       1: r has a row
 *     batch = fm_sched_chain(s)                                   one row for each, in this order
 *
 * A row is r's newest token with the state before it; pages are there for n_link positions.  Takes
 * none that others need for their next row.  0: r is not decoding, its state is not kept, or there
 * is no room. */
void            fm_sched_chain_begin(fm_sched *s);
int             fm_sched_chain_add(fm_sched *s, fm_request *r, int n_link);
const fm_batch *fm_sched_chain(const fm_sched *s); /* NULL: no rows; the caller may change it */

/* Whether steps planned from now on keep states of sequences that decode (the default where opt says
 * so); those of prompts are always kept.  Of a sequence without one a pass need not write anything
 * for drafts, either: what is drafted later for it is less often right. */
void fm_sched_keep_states(fm_sched *s, int keep);

/* Places of states that one scheduler uses, from 0 on. */
int fm_sched_n_kept(const fm_sched_options *opt);

/* The most rows a step can have with these options: min(chunk, max_prefill)
 * prefill rows, or the longest context where prompts are not cut, and one per
 * running sequence and draft.  0 for wrong options. */
int fm_sched_max_rows(const fm_sched_options *opt);

/* The most out rows a step can have: one per running sequence and draft to be
 * sampled, and FM_SCORE_ROWS prompt rows that are scored.  A prefill that wants
 * the logits of more is cut. */
enum { FM_SCORE_ROWS = 128 };
int fm_sched_max_out(const fm_sched_options *opt);

/* Sets the time that requests admitted from now on are stamped with. */
void fm_sched_set_time(fm_sched *s, double now);

/* The next step, or NULL when nothing runs or waits.  The batch is the
 * scheduler's and valid until it is committed and another step is planned.
 *
 * While a step is in flight, NULL also means: commit it first, since every
 * sequence ends with it, one of them is_sequential, or one has to be preempted.
 * At most one step is planned ahead like this. */
const fm_batch *fm_sched_plan(fm_sched *s);

/* The planned step was launched: the next one may be planned before it is
 * committed.  Not needed where it is committed before the next plan. */
void fm_sched_launched(fm_sched *s);

/* Who reads an out row, and what for. */
typedef struct {
    fm_request *r;        /* NULL: it ended after the step was launched, the row is dropped */
    int32_t     pos;      /* position of the row in its sequence */
    int         is_score; /* the log-probability of token[pos + 1]; otherwise a token is sampled */
    int         is_taken; /* after commit: the result counts.  A draft that was not accepted, and
                           * the rows behind it, do not */
} fm_out;

const fm_out *fm_sched_out(const fm_sched *s, const fm_batch *b, int i); /* of a valid batch */

/* The oldest step ran and its out row i gave token[i]: append, publish, finish
 * by eos, stop ids or length, release.  FM_NO_TOKEN ends the request with
 * FM_FINISH_ERROR.  token[i] of a row that is a score or is dropped is not read. */
void fm_sched_commit(fm_sched *s, const int32_t *token);

/* The planned step did not run, or failed: its rows are planned again.  A new
 * plan without a commit gives up a step that was not launched as well.  If one
 * was launched, cached pages may be wrong: everything is computed again. */
void fm_sched_give_up(fm_sched *s);

/* The next request that ended since the last call, or NULL. */
fm_request *fm_sched_pop_done(fm_sched *s);

typedef struct {
    int     n_waiting, n_running;
    int64_t n_step, n_row, n_prefill_row, n_decode_row; /* totals */
    int64_t n_preemption, n_admission;
    int64_t n_output;    /* tokens sampled */
    int64_t n_draft, n_accepted; /* draft tokens verified, and those of them that were right */
    int64_t sum_running; /* over steps: mean batch = sum_running / n_step */
} fm_sched_stats;
fm_sched_stats fm_sched_get_stats(const fm_sched *s);
void           fm_sched_add_stats(fm_sched_stats *sum, const fm_sched_stats *s);

/* Tokens a decoding sequence got per step, drafts included; 1 without any. */
static inline double fm_sched_accept_length(int64_t n_decode_row, int64_t n_accepted)
{
    return n_decode_row ? 1 + (double)n_accepted / (double)n_decode_row : 1;
}

#endif
