/* SPDX-License-Identifier: Apache-2.0 */
/* Table of Lebedev's sets as orbits of the octahedral group (lebedev_tab.c). */
#ifndef FM_CHEM_XC_LEBEDEV_INTERNAL_H
#define FM_CHEM_XC_LEBEDEV_INTERNAL_H

#include "chem/xc/lebedev.h"

/* Which points an orbit has, named by one of them. */
typedef enum {
    FM_ORBIT_100, /* (1,0,0): 6 points */
    FM_ORBIT_110, /* (1,1,0)/sqrt 2: 12 */
    FM_ORBIT_111, /* (1,1,1)/sqrt 3: 8 */
    FM_ORBIT_AAC, /* (a,a,c), c^2 = 1 - 2a^2: 24 */
    FM_ORBIT_AC0, /* (a,c,0), c^2 = 1 - a^2: 24 */
    FM_ORBIT_ABC  /* (a,b,c), c^2 = 1 - a^2 - b^2: 48 */
} fm__orbit_kind;

typedef struct {
    fm__orbit_kind kind;
    double         weight, a, b;
} fm__orbit;

typedef struct {
    int              n_point, degree, n_orbit;
    const fm__orbit *orbit; /* [n_orbit] */
} fm__lebedev_set;

extern const fm__lebedev_set fm__lebedev_tab[FM_LEBEDEV_SETS];

#endif
