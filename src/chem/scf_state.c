/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing: sizes, memory, the builders of J, K and Vxc. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chem/eigen/dense.h"
#include "chem/eigen/eigen.h"
#include "chem/integral/one_electron.h"
#include "chem/scf_internal.h"

enum { DIIS_DEPTH = 10 };

const char *fm_scf_name(const fm_scf *s)
{
    if (s->is_dft) return s->n_set == 1 ? "RKS" : "UKS";
    if (s->n_set == 2) return "UHF";
    return s->n_spin == 2 ? "ROHF" : "RHF";
}

static fm_status check_task(const fm_deck_task *t)
{
    const int n = t->basis->n_function;
    if (n == 0) return fm_fail(FM_E_ARG, "line %d: the basis has no functions", t->line);
    if (t->n_alpha > n || t->n_beta > n)
        return fm_fail(FM_E_ARG, "line %d: %d electrons of one spin in %d functions", t->line,
                       t->n_alpha > t->n_beta ? t->n_alpha : t->n_beta, n);
    if (t->n_alpha + t->n_beta == 0) return fm_fail(FM_E_ARG, "line %d: no electrons", t->line);
    if (t->theory == FM_THEORY_DFT && t->spin == FM_SPIN_RESTRICTED_OPEN)
        return fm_fail(FM_E_NOSUP, "line %d: restricted open-shell DFT is not supported", t->line);
    if (t->spin == FM_SPIN_RESTRICTED && t->n_alpha != t->n_beta)
        return fm_fail(FM_E_ARG, "line %d: %d alpha and %d beta electrons need open shells",
                       t->line, t->n_alpha, t->n_beta);
    return FM_OK;
}

static int take(double **to, size_t count) { return (*to = fm_dense_new(count)) != NULL; }

static fm_status allocate(fm_scf *s)
{
    fm__scf_parts *p  = s->parts;
    const size_t   nn = fm__nn(s), spins = (size_t)s->n_spin * nn;
    int good = take(&s->S, nn) && take(&s->H, nn) && take(&s->X, nn) && take(&s->D, spins) &&
               take(&s->F, spins) && take(&p->J, spins) && take(&p->K, spins) &&
               take(&p->seen, spins) && take(&p->change, 3 * spins) &&
               (!s->is_dft || take(&p->V, spins));
    if (good && s->comm->rank == 0)
        good = take(&p->G, (size_t)s->n_set * nn) && take(&p->R, (size_t)s->n_set * nn) &&
               take(&p->D_old, spins);
    for (int i = 0; i < s->n_set && good; i++)
        good = take(&s->C[i], nn) && take(&s->eps[i], (size_t)s->n);
    return good ? FM_OK : fm_fail(FM_E_OOM, "matrices of %d functions", s->n);
}

fm_status fm_scf_open(fm_scf **out, const fm_deck_task *task, const fm_scf_options *opt)
{
    FM_TRY(check_task(task));
    fm_scf        *s = calloc(1, sizeof *s);
    fm__scf_parts *p = calloc(1, sizeof *p);
    if (!s || !p) {
        free(s);
        free(p);
        return fm_fail(FM_E_OOM, "SCF");
    }
    *s           = (fm_scf){.task   = task,
                            .opt    = *opt,
                            .comm   = fm_world_comm(opt->world),
                            .is_dft = task->theory == FM_THEORY_DFT,
                            .n_spin = task->spin == FM_SPIN_RESTRICTED ? 1 : 2,
                            .n_set  = task->spin == FM_SPIN_UNRESTRICTED ? 2 : 1,
                            .n      = task->basis->n_function,
                            .n_occ  = {task->n_alpha, task->n_beta},
                            .exact  = 1,
                            .parts  = p};
    p->began     = fm_now();
    fm_status rc = s->is_dft ? fm_xc_check(&task->xc.mix, &s->exact) : FM_OK;
    if (rc == FM_OK) rc = allocate(s);
    if (rc == FM_OK)
        *out = s;
    else
        fm_scf_close(s);
    return rc;
}

static void close_parts(fm__scf_parts *p)
{
    fm_fock_close(p->fock);
    fm_xc_close(p->xc);
    fm_diis_destroy(p->diis);
    fm__descent_destroy(p->descent);
    fm_vectors_fini(&p->kept);
    fm_images_destroy(p->images);
    double *owned[] = {p->J,          p->K,          p->V,         p->seen,
                       p->change,     p->R,          p->column[0], p->column[1],
                       p->natural[0], p->natural[1], p->G,         p->D_old};
    for (unsigned i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
    free(p);
}

void fm_scf_close(fm_scf *s)
{
    if (!s) return;
    close_parts(s->parts);
    double *owned[] = {s->S, s->H, s->X, s->D, s->F, s->C[0], s->C[1], s->eps[0], s->eps[1]};
    for (unsigned i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
    free(s);
}

static fm_status core_h(fm_scf *s)
{
    fm_overlap(s->S, s->task->basis);
    fm_kinetic(s->H, s->task->basis);
    fm_attraction(s->F, s->task->basis, s->task->molecule); /* F is not in use yet */
    fm_dense_axpy(s->H, 1, s->F, fm__nn(s));
    s->energy.repulsion = fm_molecule_repulsion(s->task->molecule);
    return FM_OK;
}

static fm_status orthogonaliser(fm_scf *s)
{
    fm_orthogonal_info info;
    FM_TRY(fm_orthogonal(s->X, &info, s->S, s->n, s->task->lindep));
    s->m                = info.n_kept;
    s->smallest_overlap = info.smallest;
    if (s->n_occ[0] > s->m)
        return fm_fail(FM_E_ARG, "%d alpha electrons, but only %d of %d functions are independent",
                       s->n_occ[0], s->m, s->n);
    return FM_OK;
}

fm_status fm__scf_core(fm_scf *s)
{
    const double began = fm_now();
    fm_world_doing(s->opt.world, "%s: one-electron integrals", fm_scf_name(s));
    FM_TRY(fm_dense_one_thread());
    FM_TRY(core_h(s));
    FM_TRY(orthogonaliser(s));
    FM_TRY(fm_broadcast(s->comm, &s->m, sizeof s->m, 0)); /* a number at the threshold */
    if (s->comm->rank == 0) {
        const size_t per_set = (size_t)s->m * (size_t)s->m;
        FM_TRY(fm_diis_create(&s->parts->diis, DIIS_DEPTH, (size_t)s->n_set * fm__nn(s),
                              (size_t)s->n_set * per_set));
    }
    FM_TRY(fm__scf_open_symmetry(s));
    s->times.one_electron = fm_now() - began;
    return fm__scf_open_builders(s);
}
