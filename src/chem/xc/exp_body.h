/* SPDX-License-Identifier: Apache-2.0 */
/* An exponential that vectorises.  Files of one instruction set define
 * MADD(a, b, c) = a b + c before they include this. */
#ifndef FM_CHEM_XC_EXP_BODY_H
#define FM_CHEM_XC_EXP_BODY_H

#include <stdint.h>
#include <string.h>

/* e^x for x <= 0 within 2 ulp; below -700 the result is 0 to any use here (1e-304).
 * x = n ln 2 + r; n enters the exponent's bits. */
static inline double exp_negative(double x)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */
    x                  = x < -700 ? -700 : x;
    const double moved = MADD(x, 1.4426950408889634074, shift);
    const double n     = moved - shift;
    const double r = MADD(n, -1.90821492927058770002e-10, MADD(n, -6.93147180369123816490e-01, x));
    double       p = 1.0 / 479001600;
    p              = MADD(p, r, 1.0 / 39916800);
    p              = MADD(p, r, 1.0 / 3628800);
    p              = MADD(p, r, 1.0 / 362880);
    p              = MADD(p, r, 1.0 / 40320);
    p              = MADD(p, r, 1.0 / 5040);
    p              = MADD(p, r, 1.0 / 720);
    p              = MADD(p, r, 1.0 / 120);
    p              = MADD(p, r, 1.0 / 24);
    p              = MADD(p, r, 1.0 / 6);
    p              = MADD(p, r, 0.5);
    p              = MADD(p, r, 1.0);
    p              = MADD(p, r, 1.0);
    uint64_t bits, power;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&power, &moved, sizeof power);
    bits += power << 52;
    memcpy(&p, &bits, sizeof p);
    return p;
}

#endif
