/* SPDX-License-Identifier: Apache-2.0 */
/* An NWChem input deck, read and checked as a whole before anything is computed.
 *
 *     text ─lines, continuation, comments─> directives ─> fm_deck: jobs in order
 *
 * Every error is one sentence with file, line and the word that is wrong.  A
 * task takes the geometry, basis and settings as they stand at its line: later
 * blocks add to or replace what earlier ones set, as NWChem does. */
#ifndef FM_CHEM_INPUT_DECK_H
#define FM_CHEM_INPUT_DECK_H

#include "base/status.h"
#include "chem/basis/basis.h"
#include "chem/molecule.h"
#include "chem/xc/xc.h"

typedef enum { FM_THEORY_SCF, FM_THEORY_DFT } fm_theory;
typedef enum { FM_SPIN_RESTRICTED, FM_SPIN_RESTRICTED_OPEN, FM_SPIN_UNRESTRICTED } fm_spin;
/* USUAL: the deck does not say.  The vectors of the last converged task of the same
 * theory, after `restart` those of the last run, otherwise, or if they are of
 * another basis, atoms. */
typedef enum {
    FM_VECTORS_USUAL,
    FM_VECTORS_ATOMIC,
    FM_VECTORS_CORE,
    FM_VECTORS_FILE
} fm_vectors_from;

/* One `task` line with everything it needs. */
typedef struct {
    fm_theory       theory;
    fm_spin         spin;
    int             n_alpha, n_beta;
    int             goes_on; /* `ignore`: a failure does not end the deck */
    int             line;
    char            title[128];
    double          thresh;         /* scf: norm of the orbital gradient */
    double          tol2e;          /* two-electron integrals below are left out */
    double          tol_energy, tol_density, tol_gradient; /* dft */
    double          lindep;         /* overlap eigenvalues below are dropped */
    int             max_iterations;
    int             is_direct;
    size_t          cache_bytes;    /* semidirect, a rank */
    double          level_shift;    /* hartree; 0: none asked for */
    int             without_symmetry; /* `sym off`: densities may have less than the molecule's */
    fm_vectors_from vectors_from;
    char            vectors_in[256], vectors_out[256]; /* empty: the default name */
    int             vectors_out_line;
    fm_xc_options   xc;             /* dft; n_thread is left 0 */
    const fm_molecule *molecule;    /* borrowed from the deck */
    const fm_basis    *basis;
    unsigned        quiet;          /* which parts `noprint` turned off; FM_PRINT_* in deck_print.h */
} fm_deck_task;

typedef struct {
    char          name[256];  /* of `start`, otherwise the deck's own: stem of file names */
    int           is_restart;
    char          echo;       /* print the deck */
    char          permanent_dir[256], scratch_dir[256];
    int           permanent_dir_line;
    size_t        memory_bytes; /* 0: not said */
    fm_deck_task *task;       /* [n_task] in order */
    int           n_task;
    void         *owned;      /* geometries and basis sets the tasks borrow */
} fm_deck;

fm_status fm_deck_read(fm_deck *out, const char *path);
fm_status fm_deck_parse(fm_deck *out, const char *name, const char *text, size_t n);
void      fm_deck_fini(fm_deck *d); /* a zeroed one is fine */

#endif
