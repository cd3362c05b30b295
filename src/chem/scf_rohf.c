/* SPDX-License-Identifier: Apache-2.0 */
/* Roothaan's single Fock matrix for high-spin open shells, in the coupling of
 * Guest and Saunders (Mol. Phys. 28, 819), written with projectors so that no
 * orbitals are needed:  Pc = Db S,  Po = (Da - Db) S,  Pv = 1 - Da S.  Da and Db are those
 * of the determinant, also where F belongs to their mean over the point group. */
#include <stdlib.h>
#include <string.h>

#include "chem/eigen/dense.h"
#include "chem/scf_internal.h"

typedef struct {
    int     n;
    double *Pc, *Po, *Pv, *Fc, *W, *V; /* [n][n] */
} blocks;

/* G += f P^T F Q */
static void add_block(double *G, double f, const double *P, const double *F, const double *Q,
                      const blocks *b)
{
    fm_dense_nn(b->W, F, Q, b->n, b->n, b->n);
    fm_dense_tn(b->V, P, b->W, b->n, b->n, b->n);
    fm_dense_axpy(G, f, b->V, (size_t)b->n * (size_t)b->n);
}

static void projectors(const fm_scf *s, const blocks *b)
{
    const size_t         nn = fm__nn(s);
    const double        *Fa = s->F, *Fb = s->F + nn;
    const fm__scf_parts *p = s->parts;
    fm__scf_density_of(s, b->W, p->column[1], p->n_column[1]);
    fm_dense_nn(b->Pc, b->W, s->S, s->n, s->n, s->n);
    fm__scf_density_of(s, b->W, p->column[0], p->n_column[0]);
    fm_dense_nn(b->Po, b->W, s->S, s->n, s->n, s->n);
    for (size_t i = 0; i < nn; i++) {
        b->Pv[i] = -b->Po[i];
        b->Po[i] -= b->Pc[i];
        b->Fc[i] = 0.5 * (Fa[i] + Fb[i]);
    }
    for (int i = 0; i < s->n; i++) b->Pv[(size_t)i * (size_t)s->n + (size_t)i] += 1;
}

fm_status fm__scf_rohf_fock(const fm_scf *s, double *G)
{
    const size_t  nn = fm__nn(s);
    const double *Fa = s->F, *Fb = s->F + nn;
    double       *room = fm_dense_new(6 * nn);
    if (!room) return fm_fail(FM_E_OOM, "ROHF Fock matrix");
    const blocks b = {s->n,          room,          room + nn,    room + 2 * nn,
                      room + 3 * nn, room + 4 * nn, room + 5 * nn};
    projectors(s, &b);
    memset(G, 0, nn * sizeof *G);
    add_block(G, 0.5, b.Pc, b.Fc, b.Pc, &b);
    add_block(G, 0.5, b.Po, b.Fc, b.Po, &b);
    add_block(G, 0.5, b.Pv, b.Fc, b.Pv, &b);
    add_block(G, 1, b.Po, Fb, b.Pc, &b);
    add_block(G, 1, b.Po, Fa, b.Pv, &b);
    add_block(G, 1, b.Pv, b.Fc, b.Pc, &b);
    for (size_t i = 0; i < nn; i++) G[i] *= 2; /* the mean with the transpose is their sum */
    fm_dense_symmetrise(G, s->n);
    free(room);
    return FM_OK;
}
