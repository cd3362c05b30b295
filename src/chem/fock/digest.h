/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a batch of integrals (eri_kernel.h): products with density blocks,
 * added to J and K.  A bra pair (i,j) stays while all its kets pass by:
 *
 *     J_ij  += (ij|kl) D_kl   in vectors, added up at the end of the bra
 *     J_kl  += (ij|kl) D_ij   into the thread's sums by product
 *     K_ik, K_il, K_jk, K_jl  into rows of i and of j, laid out [function][function of i]
 *
 * The rows of D are laid out in the same way, so that blocks of a ket are short runs.
 * Sums over bras are integers (fixed_sum.h): any order of bras gives the same bits.
 *
 * Threads: an fm_digest belongs to one thread. */
#ifndef FM_CHEM_FOCK_DIGEST_H
#define FM_CHEM_FOCK_DIGEST_H

#include "chem/integral/eri_kernel.h"

enum { FM_MAX_DENSITY = 2 };

typedef struct {
    int           n; /* functions */
    int           has_K;
    const double *D_product; /* borrowed: density by product of the pair list */
    int64_t      *J_product; /* [products] the thread's sums */
    int64_t      *K;         /* [n][n] the thread's sums; rows are those of bra shells */
    double        J_scale, K_scale;
    /* of the bra under way */
    int     f_a, f_b;  /* functions of its shells */
    double *D_a, *D_b; /* [n][f_a], [n][f_b] */
    double *K_a, *K_b;
    double *J_bra; /* [products of the bra] of vectors */
} fm_digest;

typedef struct {
    fm_isa isa;
    void (*begin_bra)(fm_digest *g, const fm_pair_list *list, int bra, const double *D);
    void (*batch)(fm_digest *g, const fm_eri_work *w, int class, const int32_t *ket);
    void (*end_bra)(fm_digest *g, const fm_pair_list *list, int bra);
} fm_digest_kernel;

const fm_digest_kernel *fm_digest_pick(fm_isa isa);

extern const fm_digest_kernel fm__digest_ref, fm__digest_avx2, fm__digest_avx512;

#endif
