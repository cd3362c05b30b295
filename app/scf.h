/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom scf`: its options, and the result of a job as JSON. */
#ifndef FM_APP_SCF_H
#define FM_APP_SCF_H

#include <stdint.h>
#include <jansson.h>

#include "chem/prop/prop.h"
#include "chem/scf.h"

typedef struct {
    int64_t threads; /* of a rank; 0: the cores of the host, divided by its ranks */
    char   *trace; /* file to record to; NULL: none */
    int     json, quiet, deterministic, no_diis;
} fm_scf_command_options;

/* The job so far; tasks are added as they end. */
json_t *fm_scf_json_job(const char *deck, int n_rank, int n_thread);
void    fm_scf_json_task(json_t *job, const fm_scf *s, const fm_props *p);
void    fm_scf_json_step(json_t *steps, const fm_scf_step *step);
void    fm_scf_json_times(json_t *job, const fm_scf_times *of_rank, int n_rank, fm_world *w);

#endif
