/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functionals (functional_tab.c). */
#ifndef FM_CHEM_XC_FUNCTIONAL_INTERNAL_H
#define FM_CHEM_XC_FUNCTIONAL_INTERNAL_H

#include "chem/xc/functional.h"

/* What local and nonlocal mean for a name. */
typedef enum {
    FM_NAME_LOCAL,       /* depends on the density alone */
    FM_NAME_EXCHANGE,    /* `nonlocal` leaves out Slater's exchange, which is in it */
    FM_NAME_CORRELATION, /* only its gradient part is added; a local part joins by default */
    FM_NAME_TOTAL,       /* cannot be split: local and nonlocal are ignored */
    FM_NAME_EXACT,       /* exact exchange */
    FM_NAME_OPTX         /* its factor is that of the gradient part, 1.43169 as published; the
                          * local part is the mixture's slater, or 1.05151 of it if there is none */
} fm__name_kind;

typedef struct {
    const char   *name;
    fm__name_kind kind;
    int           whole; /* libxc's number */
    int           local; /* libxc's number of the local part contained in it */
} fm__name;

/* A name for a whole mixture; takes no factor. */
typedef struct {
    const char *name;
    int         whole, whole_too; /* libxc's numbers; 0: `term` lists it */
    double      exact;
    fm_xc_term  term[6];
} fm__combination;

/* A name NWChem knows and we refuse, with the reason. */
typedef struct {
    const char *name, *why;
} fm__refusal;

const fm__name        *fm__functional_name(const char *name);
const fm__combination *fm__functional_combination(const char *name);
const char            *fm__functional_refusal(const char *name); /* NULL: not on the list */

#endif
