/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a build as a list every rank makes alike: runs of bras of one class with
 * all their kets, the most expensive first. */
#ifndef FM_CHEM_FOCK_TASKS_H
#define FM_CHEM_FOCK_TASKS_H

#include "chem/fock/screen.h"

typedef struct {
    int    first, end; /* bras */
    double cost;       /* expected, in arbitrary units */
} fm_task;

typedef struct {
    fm_task *task; /* [n] owned */
    int      n;
} fm_tasks;

fm_status fm_tasks_init(fm_tasks *t, const fm_screen *s);
void      fm_tasks_fini(fm_tasks *t); /* a zeroed one is fine */

#endif
