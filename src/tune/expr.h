/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions over the values of a point, as users write them:
 *
 *     tp*pp*dp <= 16 && (mapping == core || threads > 1)
 *
 * Operators by rising precedence: ||, &&, comparisons (< <= > >= == !=), + -, * / %, unary
 * minus, parentheses.  A name is a parameter; a word that is none is a
 * choice of one, stands for itself and may be compared.  Numeric choices count as numbers.
 * A comparison with a parameter that does not exist at this point holds. */
#ifndef FM_TUNE_EXPR_H
#define FM_TUNE_EXPR_H

#include "tune/space.h"

/* FM_E_ARG: not such an expression; the sentence says where. */
fm_status fm_expr_holds(int *out, const char *text, const fm_space *s, const fm_point *at);

#endif
