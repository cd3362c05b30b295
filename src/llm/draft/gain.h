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
    double n, rows, rows2, s, rows_s; /* sums over steps of 1, rows, rows^2, seconds, rows*seconds */
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

#endif
