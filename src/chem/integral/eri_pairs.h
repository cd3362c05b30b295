/* SPDX-License-Identifier: Apache-2.0 */
/* Shell pairs as the two-electron kernels want them: by class, within a class by
 * falling bound, with everything about their primitives in one record each.
 *
 *     class 0 (ss)      class 1 (ps)   ...      light classes first
 *     [pair pair pair]  [pair pair]             bound falls
 *       └ primitive records: p, P, P-A, P-B, 1/2p, factors, stored E
 *
 * Of two classes one is the bra's (is_ket): the one whose role there costs less, as a rule
 * the contracted one.  Within a class the ket's number is <= the bra's.  So every quartet
 * comes up once.  Nothing changes after fm_pairs_init; any thread may read. */
#ifndef FM_CHEM_INTEGRAL_ERI_PAIRS_H
#define FM_CHEM_INTEGRAL_ERI_PAIRS_H

#include <stdint.h>

#include "chem/basis/basis.h"
#include "chem/integral/hermite_rows.h"

/* Doubles of a primitive record.  The factor of a contraction is its two coefficients
 * times exp(-ab/p |AB|^2) times sqrt(2) pi^5/4 / p; of a pair of a shell with itself, half. */
enum {
    FM_PRIM_P      = 0, /* sum of exponents */
    FM_PRIM_CENTRE = 1, /* P */
    FM_PRIM_PA     = 4,
    FM_PRIM_PB     = 7,
    FM_PRIM_H      = 10, /* 1/2p */
    FM_PRIM_MAG    = 11, /* as `mag` below */
    FM_PRIM_FACTOR = 12  /* [n_contr_a * n_contr_b], then E[n_stored] */
};

typedef struct {
    int             l_a, l_b, is_pure; /* l_a >= l_b */
    int             n_contr_a, n_contr_b;
    int             n_a, n_b; /* components of each shell */
    int             n_hermite;
    int             n_stored;      /* Hermite coefficients in each record; 0: straight-line class */
    int             prim_step;     /* doubles of a record */
    int             first, n_pair; /* pairs of this class */
    int             most_prim;     /* of a pair */
    double          mean_prim;
    fm_hermite_rows rows; /* owned; empty for straight-line classes */
} fm_pair_class;

typedef struct {
    int n_class, n_pair, n_product;
    fm_pair_class *class;             /* [n_class] owned */
    int32_t *of;                      /* [n_pair] owned: its class */
    int32_t *shell_a, *shell_b;       /* [n_pair] owned */
    int32_t *function_a, *function_b; /* [n_pair] owned: first function of each shell */
    int32_t *product; /* [n_pair] owned: place in arrays by product of functions, in the
                       * order [contr a][contr b][component a][component b] */
    int32_t *prim_at; /* [n_pair] owned: first record, in doubles from `prim` */
    int32_t *n_prim;  /* [n_pair] owned */
    int32_t *mag_at;  /* [n_pair] owned: in `mag` */
    double  *bound;   /* [n_pair] owned: sqrt of the largest (ij|ij); self pairs not halved */
    double  *mag;     /* owned: the same of each primitive, falling within a pair */
    double  *prim;    /* owned */
    uint8_t *is_ket;  /* [n_class][n_class] owned: [bra's class][ket's class] */
    double  *numbers; /* owned: holds bound and mag */
} fm_pair_list;

/* Pairs that cannot matter at an accuracy `tol` are left out; `kernel` computes the bounds. */
typedef struct fm_eri_kernel fm_eri_kernel;
fm_status                    fm_pairs_init(fm_pair_list *list, const fm_basis *b, double tol,
                                           const fm_eri_kernel *kernel);
void                         fm_pairs_fini(fm_pair_list *list); /* a zeroed one is fine */

/* What a batch of quartets costs, roughly, in multiply-adds of vectors. */
double fm_batch_cost(const fm_pair_class *bra, const fm_pair_class *ket);

/* Functions of a shell in units of the class. */
static inline int fm_class_combos(const fm_pair_class *c) { return c->n_contr_a * c->n_contr_b; }
static inline int fm_class_products(const fm_pair_class *c) /* of one contraction of each */
{
    return c->n_a * c->n_b;
}

#endif
