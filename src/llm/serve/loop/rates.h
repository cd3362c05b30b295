/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the engine is, from the steps it made lately: prompt tokens per second, and the
 * seconds that one running sequence adds to a step that generates.  Old steps count less
 * and less.  {0} knows nothing. */
#ifndef FM_LLM_SERVE_LOOP_RATES_H
#define FM_LLM_SERVE_LOOP_RATES_H

#include <stdint.h>

typedef struct {
    double prefill_rows, prefill_seconds;
    double n, rows, seconds, rows2, rows_seconds; /* sums over steps without prompts */
} fm__rates;

void   fm__rates_add(fm__rates *r, int64_t n_prefill_row, int64_t n_decode_row, double seconds);
double fm__rates_prefill(const fm__rates *r); /* tokens per second; 0: not known */
double fm__rates_row(const fm__rates *r);     /* seconds; 0: not known */

#endif
