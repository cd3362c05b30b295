/* SPDX-License-Identifier: Apache-2.0 */
/* How many drafts are worth verifying: a row more costs time, an accepted draft
 * saves a step.
 *
 * The cost of a decode step is fitted as a + b * rows over recent steps.  A draft
 * that is accepted with probability p adds p tokens for b seconds; it pays if that
 * is more tokens per second than the step has without it:
 *
 *     p > b * (tokens of a step) / (seconds of a step)
 *
 * The j-th draft of a chain is accepted with probability p^j, p being what the
 * request's drafts reached lately. */
#ifndef FM_LLM_DRAFT_GAIN_H
#define FM_LLM_DRAFT_GAIN_H

/* Decaying sums of a linear fit, and of tokens and seconds per step. */
typedef struct {
    double n, rows, rows2, s,
        rows_s; /* sums over steps of 1, rows, rows^2, seconds, rows*seconds */
    double tokens;
} fm_step_cost; /* {0} knows nothing */

/* Decaying counts of one request's drafts. */
typedef struct {
    double tried, accepted;
} fm_acceptance; /* {0} knows nothing */

void fm_step_cost_add(fm_step_cost *c, int n_row, int n_token, double seconds);

/* The probability from which a draft pays; 0 while too little is known. */
double fm_step_cost_threshold(const fm_step_cost *c);

/* `n` drafts were verified and the first n_accepted were right; prior: what drafts
 * of other requests reach. */
void   fm_acceptance_add(fm_acceptance *a, int n, int n_accepted);
double fm_acceptance_rate(const fm_acceptance *a, double prior);

/* Drafts of a chain that pay, 0 to most. */
int fm_drafts_that_pay(double rate, double threshold, int most);

/* Acceptance by depth in the chain: an MTP layer that was trained to predict one token ahead
 * predicts the second much worse than the first, so every depth is counted by itself. */
enum { FM_PACE_LINKS = 17, FM_PACE_SIZES = 16 };

/* Costs are kept by the number of sequences in a step, by the nearest power of two: in a small batch an
 * additional row reads additional experts, in a large one it does not.  A limit on running requests is
 * mostly a power of two, and where a request has just ended there is one less: 24 to 47 are one size. */
int fm_pace_size(int n_seq);
typedef struct {
    double tried[FM_PACE_LINKS],
        reached[FM_PACE_LINKS]; /* decaying; [i]: drafts 1 .. i, all right */
    double lately; /* share of first drafts that were right, of the last two or three */
} fm_depths;       /* {0} knows nothing */

void   fm_depths_add(fm_depths *d, int n, int n_accepted);
double fm_depths_tokens(const fm_depths *d,
                        int              n); /* that a step with n drafts is expected to give */

/* Chooses the length of the chain, whose links cost time as well.  The time of a step is kept for
 * each number of links made before it, by the number of sequences (fm_pace_size): the least of the
 * first few, then an estimate of the lower third of the times, which steps delayed by other
 * programs do not change.  The best length has the most expected tokens per second.
 *
 * Other lengths are tried now and then, seldom if they were much worse, so that trials cost less
 * than a percent; one whose draft was right is tried again at once, so that text that becomes
 * predictable is noticed within a few steps of the first trial. */
typedef struct {
    double   seconds[FM_PACE_SIZES][FM_PACE_LINKS];
    unsigned n[FM_PACE_SIZES][FM_PACE_LINKS], last[FM_PACE_SIZES][FM_PACE_LINKS];
    unsigned now; /* steps */
} fm_pace;        /* {0} knows nothing */

void fm_pace_add(fm_pace *p, int n_seq, int n_link, double seconds); /* a step and its chain */
/* The length for the next chain, 0 to most.  `tries`: the step will be measured, so another length
 * than the best may be tried; *pays is set if the best length is above 0. */
int fm_pace_links(const fm_pace *p, int n_seq, const fm_depths *d, int most, int tries, int *pays);

/* Where no chain has paid for a while, decode rows need not fill the cache of the MTP layer,
 * either: two products of hidden x hidden and that of the latent, 4.5 % of the weights that a row
 * of fathom-tiny multiplies, 0.3 % of DeepSeek-R1's.  The cache is filled again for some steps now
 * and then, and at the end of these steps chains are tried.  Prompt rows always fill it: their
 * pages are reused, perhaps by a text for which drafts pay.  There is one fm_rest for each number
 * of sequences (fm_pace_size): a chain that does not pay for many may pay for one. */
typedef struct {
    unsigned idle; /* steps since a chain paid */
} fm_rest;         /* {0}: the cache is filled */

void fm_rest_step(fm_rest *r, int paid);
int  fm_rest_keeps(const fm_rest *r);  /* 1: the next pass fills the cache */
int  fm_rest_drafts(const fm_rest *r); /* 1: a chain may follow it */

/* When to search for n-gram drafts under the overlap schedule.  Drafts need the newest tokens on
 * the host, so a step with drafts, and the step after it, cannot be launched ahead; that holds for
 * all sequences of a step at once.  A look is a step in which all texts are searched.  Drafts are
 * proposed if those found at the last look promise a tenth more tokens, or, seldom, as a trial;
 * otherwise the time until the next look grows. */
typedef struct {
    unsigned now, looked, tried; /* steps; when texts were last looked at, when drafts were tried */
    unsigned period;             /* between looks */
    int      is_begun;           /* once */
    int      is_trial;           /* of this look */
    double   extra;              /* tokens that drafts promise for a sequence, by the last look, */
    double   sum;                /* and for all sequences, by this one so far */
} fm_look;                       /* {0} never looked */

void fm_look_step(fm_look *l);         /* a step ended */
int  fm_look_is_due(const fm_look *l); /* the next step is to wait */
void fm_look_begin(fm_look *l);
void fm_look_add(fm_look *l, double extra); /* a sequence has drafts that promise so many tokens */
void fm_look_end(fm_look *l, int n_seq);
int  fm_look_proposes(const fm_look *l); /* between begin and end */

/* Tokens a step is expected to give with n drafts: 1 + rate + ... + rate^n. */
double fm_expected_tokens(double rate, int n);

/* The probability with which each draft of n is accepted, so that a step gives `length` tokens. */
double fm_acceptance_for(double length, int n);

#endif
