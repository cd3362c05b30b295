/* SPDX-License-Identifier: Apache-2.0 */
/* The printout of a calculation, with NWChem's labels on the lines that scripts
 * look for ("Total SCF energy =", "Total DFT energy =", "Nuclear repulsion energy =",
 * iteration tables, "Vector   5  Occ=", "Task  times  cpu:", "Total times  cpu:").
 * Rank 0 prints. */
#ifndef FM_CHEM_REPORT_REPORT_H
#define FM_CHEM_REPORT_REPORT_H

#include <stdio.h>

#include "chem/prop/prop.h"
#include "chem/scf.h"

typedef struct {
    const char *deck, *version;
    int         n_rank, n_thread;
} fm_report_job;

void fm_report_begin(FILE *to, const fm_deck *d, const fm_report_job *job);
void fm_report_task(FILE *to, const fm_scf *s);  /* geometry, basis, method, grid */
void fm_report_guess(FILE *to, const fm_scf *s); /* and the head of the iterations */
void fm_report_step(FILE *to, const fm_scf *s, const fm_scf_step *step);
void fm_report_result(FILE *to, const fm_scf *s, const fm_props *p);
void fm_report_task_times(FILE *to, double cpu_s, double wall_s);

/* One row a rank; `host` gives its name. */
void fm_report_times(FILE *to, const fm_scf_times *of_rank, int n_rank, fm_world *w);
void fm_report_end(FILE *to, double cpu_s, double wall_s, double peak_bytes);

/* The longest and the mean time ranks computed in Fock builds, as a share too
 * much: 0 is perfect balance. */
double fm_report_imbalance(const fm_scf_times *of_rank, int n_rank);

#endif
