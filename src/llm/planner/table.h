/* SPDX-License-Identifier: Apache-2.0 */
/* A quantity measured over rows of a step and, for attention, tokens of context: a small grid,
 * interpolated in the logarithm of both and of the value, constant outside. */
#ifndef FM_LLM_PLANNER_TABLE_H
#define FM_LLM_PLANNER_TABLE_H

enum { FM_TABLE_ROWS = 40, FM_TABLE_CONTEXTS = 16 };

typedef struct {
    int    n_row, n_context;                        /* 0 rows: nothing is known, the value is 1 */
    double row[FM_TABLE_ROWS];                      /* ascending, above 0 */
    double context[FM_TABLE_CONTEXTS];              /* ascending, above 0 */
    double value[FM_TABLE_ROWS][FM_TABLE_CONTEXTS]; /* above 0; 0: not measured here */
} fm_table;

double fm_table_at(const fm_table *t, double row, double context);

/* Adds a measurement, keeping rows and contexts in order; one that is there already is replaced.
 * 0: the table is full. */
int fm_table_put(fm_table *t, double row, double context, double value);

/* Places that were not measured take the value of the nearest that was, first in context, then
 * in rows. */
void fm_table_complete(fm_table *t);

#endif
