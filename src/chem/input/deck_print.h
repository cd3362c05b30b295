/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the output that `noprint` in a deck turns off and `print` on again. */
#ifndef FM_CHEM_INPUT_DECK_PRINT_H
#define FM_CHEM_INPUT_DECK_PRINT_H

enum {
    FM_PRINT_GEOMETRY   = 1 << 0, /* "geometry" */
    FM_PRINT_BASIS      = 1 << 1, /* "basis" */
    FM_PRINT_PARAMETERS = 1 << 2, /* "information", "parameters" */
    FM_PRINT_ITERATIONS = 1 << 3, /* "convergence", "interm..." */
    FM_PRINT_VECTORS    = 1 << 4, /* "final vectors analysis", "final vectors" */
    FM_PRINT_MULLIKEN   = 1 << 5, /* "mulliken" */
    FM_PRINT_MULTIPOLE  = 1 << 6, /* "multipole" */
    FM_PRINT_SYMMETRIES = 1 << 7, /* "final vector symmetries" */
    FM_PRINT_ALL        = (1 << 8) - 1
};

#endif
