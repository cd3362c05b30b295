/* SPDX-License-Identifier: Apache-2.0 */
/* The files of src/chem/basis/data one after the other, as text:
 *
 *     sets a 6-31g b 6-31g*       names of a family's sets, each with a letter
 *     O                           an element
 *     D b                         a shell and the letters of the sets that have it, * for all
 *     .8 1                        exponent and coefficients, a line for each primitive
 *
 * `#` begins a comment. */
#ifndef FM_CHEM_BASIS_LIBRARY_DATA_H
#define FM_CHEM_BASIS_LIBRARY_DATA_H

extern const char fm__library_data[]; /* ends with NUL */

#endif
