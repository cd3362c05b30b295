/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/table.h"

#include <math.h>
#include <string.h>

/* The place below x among n ascending ones, and how far x is on the way to the next, 0 to 1. */
static int place_of(const double *at, int n, double x, double *way)
{
    int i = 0;
    *way  = 0;
    if (n < 2 || x <= at[0]) return 0;
    if (x >= at[n - 1]) return n - 1;
    while (x >= at[i + 1]) i++;
    *way = log(x / at[i]) / log(at[i + 1] / at[i]);
    return i;
}

static double between(double a, double b, double way)
{
    if (way <= 0 || b <= 0) return a;
    return a > 0 ? a * pow(b / a, way) : b;
}

double fm_table_at(const fm_table *t, double row, double context)
{
    double    to_row, to_context;
    const int r = place_of(t->row, t->n_row, row, &to_row);
    const int c = place_of(t->context, t->n_context, context, &to_context);
    if (!t->n_row || !t->n_context) return 1;
    const int    r1 = to_row > 0 ? r + 1 : r, c1 = to_context > 0 ? c + 1 : c;
    const double low  = between(t->value[r][c], t->value[r][c1], to_context);
    const double high = between(t->value[r1][c], t->value[r1][c1], to_context);
    return between(low, high, to_row);
}

/* Where x is or belongs. */
static int find(const double *at, int n, double x)
{
    int i = 0;
    while (i < n && at[i] < x) i++;
    return i;
}

static int insert_row(fm_table *t, int i, double row)
{
    if (t->n_row == FM_TABLE_ROWS) return 0;
    const size_t behind = (size_t)(t->n_row - i);
    memmove(&t->row[i + 1], &t->row[i], behind * sizeof t->row[0]);
    memmove(&t->value[i + 1], &t->value[i], behind * sizeof t->value[0]);
    memset(&t->value[i], 0, sizeof t->value[i]);
    t->row[i] = row;
    t->n_row++;
    return 1;
}

static int insert_context(fm_table *t, int i, double context)
{
    if (t->n_context == FM_TABLE_CONTEXTS) return 0;
    const size_t behind = (size_t)(t->n_context - i);
    memmove(&t->context[i + 1], &t->context[i], behind * sizeof t->context[0]);
    for (int r = 0; r < t->n_row; r++) {
        memmove(&t->value[r][i + 1], &t->value[r][i], behind * sizeof t->value[r][0]);
        t->value[r][i] = 0;
    }
    t->context[i] = context;
    t->n_context++;
    return 1;
}

int fm_table_put(fm_table *t, double row, double context, double value)
{
    const int r = find(t->row, t->n_row, row), c = find(t->context, t->n_context, context);
    if ((r == t->n_row || t->row[r] != row) && !insert_row(t, r, row)) return 0;
    if ((c == t->n_context || t->context[c] != context) && !insert_context(t, c, context)) return 0;
    t->value[r][c] = value;
    return 1;
}

/* The nearest place of n that is known, in steps of `stride` values; -1: none. */
static int nearest(const double *value, int n, int stride, int i)
{
    for (int d = 1; d < n; d++) {
        if (i - d >= 0 && value[(i - d) * stride] > 0) return i - d;
        if (i + d < n && value[(i + d) * stride] > 0) return i + d;
    }
    return -1;
}

void fm_table_complete(fm_table *t)
{
    double filled[FM_TABLE_ROWS][FM_TABLE_CONTEXTS];
    memcpy(filled, t->value, sizeof filled);
    for (int r = 0; r < t->n_row; r++)
        for (int c = 0; c < t->n_context; c++) {
            const int k = nearest(t->value[r], t->n_context, 1, c);
            if (!(t->value[r][c] > 0) && k >= 0) filled[r][c] = t->value[r][k];
        }
    memcpy(t->value, filled, sizeof filled);
    for (int c = 0; c < t->n_context; c++)
        for (int r = 0; r < t->n_row; r++) {
            const int k = nearest(&filled[0][c], t->n_row, FM_TABLE_CONTEXTS, r);
            if (!(t->value[r][c] > 0) && k >= 0) t->value[r][c] = filled[k][c];
        }
}
