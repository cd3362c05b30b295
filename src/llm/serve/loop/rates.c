/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/loop/rates.h"

static const double kept = 0.98; /* of what is known, from step to step */
enum { MANY_ROWS = 128 };        /* of a prompt: fewer measure what a step costs, not a token */

static void add_prefill(fm__rates *r, double rows, double seconds)
{
    r->prefill_rows    = r->prefill_rows * kept + rows;
    r->prefill_seconds = r->prefill_seconds * kept + seconds;
}

static void add_decode(fm__rates *r, double rows, double seconds)
{
    r->n            = r->n * kept + 1;
    r->rows         = r->rows * kept + rows;
    r->seconds      = r->seconds * kept + seconds;
    r->rows2        = r->rows2 * kept + rows * rows;
    r->rows_seconds = r->rows_seconds * kept + rows * seconds;
}

void fm__rates_add(fm__rates *r, int64_t n_prefill_row, int64_t n_decode_row, double seconds)
{
    if (seconds <= 0) return;
    if (n_prefill_row >= MANY_ROWS && n_prefill_row > 4 * n_decode_row)
        add_prefill(r, (double)n_prefill_row, seconds);
    else if (!n_prefill_row && n_decode_row)
        add_decode(r, (double)n_decode_row, seconds);
}

double fm__rates_prefill(const fm__rates *r)
{
    return r->prefill_seconds > 0 ? r->prefill_rows / r->prefill_seconds : 0;
}

/* The slope of seconds over rows; with steps of one size alone, at most a share of each. */
double fm__rates_row(const fm__rates *r)
{
    if (r->n < 1 || r->rows <= 0) return 0;
    const double var = r->rows2 - r->rows * r->rows / r->n;
    const double cov = r->rows_seconds - r->rows * r->seconds / r->n;
    const double all = r->seconds / r->rows;
    if (var < 0.01 * r->rows2) return all / 2;
    const double slope = cov / var;
    return slope < 0 ? 0 : slope < all ? slope : all;
}
