/* SPDX-License-Identifier: Apache-2.0 */
/* From rank 0 to all: the next density, the orbitals it is made of, the verdict.
 * And to the outside: the vectors file and the report of an iteration. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chem/eigen/dense.h"
#include "chem/scf_internal.h"

typedef struct {
    int         rc, is_converged, n_column[2];
    fm_scf_step step; /* its `method` is rank 0's pointer: not for others */
} verdict;

static fm_status send_columns(fm_scf *s, int i)
{
    int     n;
    double *c = fm__scf_columns(s, i, &n);
    return fm_broadcast(s->comm, c, (size_t)s->n * (size_t)n * sizeof *c, 0);
}

static fm_status take_columns(fm_scf *s, int i, int n_column)
{
    fm__scf_parts *p = s->parts;
    if (n_column != p->n_column[i] || !p->column[i]) {
        free(p->column[i]);
        p->column[i]   = fm_dense_new((size_t)s->n * (size_t)n_column);
        p->n_column[i] = n_column;
    }
    if (!p->column[i]) return fm_fail(FM_E_OOM, "%d orbitals", n_column);
    return fm_broadcast(s->comm, p->column[i], (size_t)s->n * (size_t)n_column * sizeof(double), 0);
}

static fm_status hand_round(fm_scf *s, const verdict *v)
{
    FM_TRY(fm_broadcast(s->comm, s->D, (size_t)s->n_spin * fm__nn(s) * sizeof *s->D, 0));
    for (int i = 0; i < s->n_spin; i++)
        FM_TRY(s->comm->rank == 0 ? send_columns(s, i) : take_columns(s, i, v->n_column[i]));
    return FM_OK;
}

fm_status fm__scf_share(fm_scf *s, fm_status rc)
{
    const double began = fm_now();
    verdict      v     = {.rc = rc, .is_converged = s->is_converged, .step = s->step};
    for (int i = 0; i < s->n_spin; i++) fm__scf_columns(s, i, &v.n_column[i]);
    s->all_know = rc != FM_OK;
    if (s->comm->n_rank == 1) return rc;
    FM_TRY(fm_broadcast(s->comm, &v, sizeof v, 0));
    if (s->comm->rank != 0) {
        s->is_converged = v.is_converged;
        s->step         = v.step;
        s->step.method  = "";
    }
    s->all_know = v.rc != FM_OK;
    if (s->all_know) return (fm_status)v.rc; /* rank 0 has said why */
    FM_TRY(hand_round(s, &v));
    s->times.comm_wait += fm_now() - began;
    return FM_OK;
}

/* --- the vectors file ------------------------------------------------------ */

static fm_status fill(fm_scf *s, fm_vectors *v)
{
    if (!v->eps[0]) FM_TRY(fm_vectors_init(v, s->n, s->m, s->n_set));
    v->n_occ[0] = s->n_occ[0], v->n_occ[1] = s->n_occ[1];
    v->is_converged = s->is_converged;
    v->iteration    = s->step.iteration;
    v->energy       = s->energy.total;
    v->fingerprint  = fm_vectors_fingerprint(s->task->basis);
    for (int i = 0; i < s->n_set; i++) {
        memcpy(v->eps[i], s->eps[i], (size_t)s->m * sizeof(double));
        memcpy(v->C[i], s->C[i], (size_t)s->n * (size_t)s->m * sizeof(double));
    }
    return FM_OK;
}

fm_status fm__scf_keep(fm_scf *s)
{
    const double began = fm_now();
    if (!s->opt.vectors_out) return FM_OK;
    FM_TRY(fill(s, &s->parts->kept));
    FM_TRY(fm_vectors_write(&s->parts->kept, s->opt.vectors_out, s->is_converged));
    s->times.vectors += fm_now() - began;
    return FM_OK;
}

/* --- the report ------------------------------------------------------------ */

void fm__scf_report(fm_scf *s)
{
    s->times.total = fm_now() - s->parts->began;
    if (s->opt.on_step) s->opt.on_step(s->opt.ctx, s, &s->step);
}

fm_status fm__scf_not_converged(fm_scf *s)
{
    s->step.iteration = s->task->max_iterations;
    s->all_know       = 1;
    return fm_fail(FM_E_NOCONV,
                   "%s (line %d of the deck): not converged after %d iterations: energy %.8f, last "
                   "change %.1e, gradient %.1e",
                   fm_scf_name(s), s->task->line, s->step.iteration, s->energy.total,
                   s->step.change, s->step.gradient);
}
