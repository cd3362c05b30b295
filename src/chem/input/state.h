/* SPDX-License-Identifier: Apache-2.0 */
/* What a deck has said so far: geometries, basis sets and the settings of the
 * methods, as they stand when a `task` line is reached.
 *
 * Ownership: the state owns everything in it and is freed with the deck, whose
 * tasks borrow molecules and basis sets from it. */
#ifndef FM_CHEM_INPUT_STATE_H
#define FM_CHEM_INPUT_STATE_H

#include "chem/basis/shells.h"
#include "chem/input/deck.h"
#include "chem/input/words.h"

enum { FM__NAME_MAX = 64 };

/* A `geometry` block after conversion, centring and rotation. */
typedef struct {
    char        name[FM__NAME_MAX];
    fm_molecule molecule; /* its charge is set when a task takes a copy */
} fm__geometry;

/* One `tag library set` line or one inline shell of a `basis` block. */
typedef struct {
    char      tag[FM_TAG_MAX];
    int       is_star; /* the tag ended in `*`: it is a prefix of atoms' tags */
    char      set[32]; /* library set; empty: `shells` */
    char      in_lib[FM_TAG_MAX];
    char     *except; /* owned, tags separated by NUL, empty one at the end; NULL: none */
    fm_shells shells;
    int       line;
} fm__basis_entry;

typedef struct {
    char             name[FM__NAME_MAX];
    int              is_pure;
    fm__basis_entry *entry;
    int              n_entry, cap;
} fm__basis_block;

/* A molecule with its basis, built for the first task that asks for it. */
typedef struct {
    int         geometry, block; /* indices below */
    int         charge;
    fm_molecule molecule;
    fm_basis    basis;
} fm__model;

typedef struct {
    int             is_direct;
    size_t          cache_bytes;
    fm_vectors_from vectors_from;
    char            vectors_in[256], vectors_out[256];
    int             vectors_out_line;
    unsigned        quiet;
    int             without_symmetry;
} fm__method; /* what scf and dft blocks have in common */

typedef struct {
    fm__method method;
    double     thresh, tol2e; /* tol2e 0: derived from thresh */
    int        max_iterations;
    int        n_open;
    int        is_uhf;
} fm__scf;

typedef struct {
    fm__method    method;
    fm_xc_mix     mix;
    fm_grid_level level;
    fm_grid_level first_level; /* of the first task, if it has one */
    int           has_first_level;
    double        tol_energy, tol_density, tol_gradient;
    int           acc_coul, acc_ao; /* negative powers of ten and of e; acc_ao 0: from tol_energy */
    double        tol_rho;
    int           max_iterations;
    int           multiplicity;
    int           is_odft;
    double        level_shift;
} fm__dft;

typedef struct {
    fm__words         words;
    fm_deck          *deck;
    char              title[128];
    double            charge;
    double            lindep;
    char              geometry_name[FM__NAME_MAX], basis_name[FM__NAME_MAX]; /* by `set` */
    fm__geometry    **geometry;                                              /* [n_geometry] */
    int               n_geometry;
    fm__basis_block **block; /* [n_block] */
    int               n_block;
    fm__model       **model; /* [n_model] */
    int               n_model;
    fm__scf           scf;
    fm__dft           dft;
} fm__state;

void fm__state_init(fm__state *s, fm_deck *deck);
void fm__state_fini(fm__state *s);

/* Room for one more element behind array[n]; ends the process without memory. */
void *fm__grow(void *array, int n, size_t size);

/* One directive each: the words stand behind the directive's name. */
typedef fm_status fm__directive(fm__state *s);

typedef struct {
    const char    *name;
    fm__directive *read;
} fm__keyword;

/* The entry of `table` for `word`, NULL if there is none; the table ends with {0}. */
const fm__keyword *fm__find(const fm__keyword *table, const char *word);
/* A line in a block begins with `word`: FM_E_FORMAT if that begins the next directive. */
fm_status fm__still_in_block(const fm__words *w, const char *block, const char *word);
/* Read the lines of a block until `end`, each by its entry in `table`. */
fm_status fm__read_block(fm__state *s, const char *block, const fm__keyword *table);

fm__directive fm__read_geometry, fm__read_basis, fm__read_scf, fm__read_dft, fm__read_task;
fm__directive fm__read_start, fm__read_restart, fm__read_title, fm__read_echo, fm__read_memory;
fm__directive fm__read_permanent_dir, fm__read_scratch_dir, fm__read_charge, fm__read_set,
    fm__read_unset, fm__read_ignored;

/* `print ...` and `noprint ...`: what they name changes *quiet. */
fm_status fm__read_print(fm__words *w, unsigned *quiet);
fm_status fm__read_noprint(fm__words *w, unsigned *quiet);
/* Lines that scf and dft blocks share. */
fm_status fm__read_direct(fm__words *w, fm__method *m);
fm_status fm__read_semidirect(fm__words *w, fm__method *m);
fm_status fm__read_vectors(fm__words *w, fm__method *m);
fm_status fm__read_sym(fm__words *w, fm__method *m);
fm_status fm__read_on_off(fm__words *w, int *is_on);
/* The functional of an `xc` line. */
fm_status fm__read_mix(fm__words *w, fm_xc_mix *mix);

/* The element a tag names: its atomic number, 0 for a ghost (bq..., x...), -1 for
 * neither.  For a ghost *of is the element whose functions it may carry, 0 if none. */
int fm__tag_element(const char *tag, int *of);

/* From atoms as written (already in bohr) to the frame of the calculation. */
typedef struct {
    int    autosym, center;
    double tolerance; /* of symmetry detection, bohr */
    char   group[8];  /* asked for; empty: none */
} fm__frame_options;
void fm__to_frame(fm_molecule *m, const fm__frame_options *opt);

/* The current geometry with its basis, for the task on this line. */
fm_status fm__take_model(fm__state *s, const fm__model **out);

#endif
