/* SPDX-License-Identifier: Apache-2.0 */
/* Two-electron integrals, one bra pair against several kets of one class at a time: a
 * lane of a vector is a quartet.  McMurchie-Davidson:
 *
 *     primitives of bra x ket ─> Boys ─> R_tuv ─bra's E─> half[ab][q] ─ket's E─> out[ab][cd]
 *
 * There is a kernel per instruction set, from one source (eri_body.h) and one generator
 * (gen/eri_gen.c).  All agree with eri_ref.h to 1e-13 of the largest integral of a class.
 *
 * Threads: a work space belongs to one thread. */
#ifndef FM_CHEM_INTEGRAL_ERI_KERNEL_H
#define FM_CHEM_INTEGRAL_ERI_KERNEL_H

#include "base/cpu.h"
#include "chem/integral/eri_pairs.h"

enum { FM_ERI_LANES = 8, FM_ERI_ALL_PRIMITIVES = -1 };

typedef struct {
    const fm_pair_list *list; /* borrowed */
    int                 bra;  /* set by begin_bra, with its primitives */
    int                 first_prim, n_prim;
    double  cut;   /* primitives whose bounds' product is not above are left out; < 0: none */
    double *bra_E; /* [n_prim][combos][entries] */
    double *R, *half, *ket_E; /* in vectors */
    double *out;              /* [bra combo][ket combo][ab][cd] of vectors: what batch leaves */
    void   *memory;           /* owned: all of the above */
} fm_eri_work;

struct fm_eri_kernel {
    fm_isa      isa;
    const char *name;
    int         lanes;
    /* prim: one pair of primitives alone, or FM_ERI_ALL_PRIMITIVES */
    void (*begin_bra)(fm_eri_work *w, int bra, int prim);
    /* ket[lanes] are pairs of class `c`; factor[lanes] multiplies each quartet's integrals */
    void (*batch)(fm_eri_work *w, int c, const int32_t *ket, const double *factor, int prim);
};

/* Best first, ending with one without a function; those this process may use. */
const fm_eri_kernel *fm_eri_kernel_pick(fm_isa isa);

fm_status fm_eri_work_init(fm_eri_work *w, const fm_pair_list *list);
void      fm_eri_work_fini(fm_eri_work *w); /* a zeroed one is fine */

extern const fm_eri_kernel fm__eri_kernel_ref, fm__eri_kernel_avx2, fm__eri_kernel_avx512;

/* Boys functions F_m by interval of 1/8 up to FM_BOYS_END: polynomials of degree 7 in the
 * distance from the interval's middle in intervals, lowest power first.  Made by the first work
 * space. */
enum { FM_BOYS_END = 36, FM_BOYS_STEPS = 8 * FM_BOYS_END, FM_BOYS_TERMS = 8 };
extern double fm__boys_table[FM_COULOMB_L + 1][FM_BOYS_STEPS][FM_BOYS_TERMS];

#endif
