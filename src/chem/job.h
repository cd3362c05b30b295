/* SPDX-License-Identifier: Apache-2.0 */
/* A deck's tasks, in order.  A task begins from the vectors its deck names; where
 * the deck does not say, from those of the last converged task of the same theory,
 * after `restart` from the last run's, otherwise, or if those belong to another basis,
 * from atoms.
 *
 * Vectors files lie in the deck's permanent_dir; the usual name is that of `start`,
 * otherwise the deck's own, with .movecs.
 *
 * All functions are collective over the world; callbacks are made on every rank. */
#ifndef FM_CHEM_JOB_H
#define FM_CHEM_JOB_H

#include "chem/input/deck.h"
#include "chem/prop/prop.h"
#include "chem/scf.h"

typedef struct {
    fm_world   *world;
    int         n_thread;     /* of this rank */
    size_t      memory_bytes; /* as in fm_scf_options */
    int         without_diis; /* as in fm_scf_options */
    const char *path;         /* of the deck, for messages */
    const char *dir;          /* where vectors files lie, if not in the deck's permanent_dir */
    void (*on_task)(void *ctx, const fm_deck_task *t);
    void (*on_start)(void *ctx, const fm_scf *s);
    void (*on_step)(void *ctx, const fm_scf *s, const fm_scf_step *step);
    void (*on_end)(void *ctx, const fm_scf *s, const fm_props *p); /* rank 0: converged or not */
    void (*on_ignored)(void *ctx, const char *why); /* a failure that the deck lets pass */
    void *ctx;                                      /* any of the functions may be NULL */
} fm_job_options;

/* What can be known before computing: FM_E_IO for a vectors file that cannot be written,
 * or one that is missing and that no earlier task writes. */
fm_status fm_job_check(const fm_deck *d, const fm_job_options *o);

/* `times` of this rank, all tasks.  FM_E_NOCONV: a task did not converge, and the
 * rest was not computed. */
fm_status fm_job_run(const fm_deck *d, const fm_job_options *o, fm_scf_times *times);

#endif
