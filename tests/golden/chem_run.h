/* SPDX-License-Identifier: Apache-2.0 */
/* Runs decks in this process, as one rank, in a folder of their own. */
#ifndef FM_TESTS_GOLDEN_CHEM_RUN_H
#define FM_TESTS_GOLDEN_CHEM_RUN_H

#include "chem/job.h"

enum { CHEM_TASKS = 8 };

typedef struct {
    fm_status rc;
    char      why[400];
    int       n_task;
    struct {
        char   method[8];
        double energy, electrons, gradient;
        int    is_converged, n_iteration, n_descent;
    } task[CHEM_TASKS];
} chem_result;

void chem_open(void); /* makes the folder */
void chem_close(void);

chem_result chem_run_file(const char *path, int n_thread);
chem_result chem_run_text(const char *text, int n_thread);
chem_result chem_run_without_diis(const char *text);

#endif
