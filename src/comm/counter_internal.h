/* SPDX-License-Identifier: Apache-2.0 */
/* The word of a shared counter: the round in its upper 24 bits, the numbers
 * given out in that round below.  The first rank that asks with a later round begins that round. */
#ifndef FM_COMM_COUNTER_INTERNAL_H
#define FM_COMM_COUNTER_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

enum { FM__ROUND_SHIFT = 40 };

/* A round that others have left behind has no numbers any more. */
#define FM__ROUND_OVER ((UINT64_C(1) << FM__ROUND_SHIFT) - 1)

static inline uint64_t fm__counter_take(_Atomic uint64_t *word, uint64_t round)
{
    uint64_t was = atomic_load(word), now;
    do {
        const uint64_t at = was >> FM__ROUND_SHIFT;
        if (at > round) return FM__ROUND_OVER;
        now = at == round ? was + 1 : (round << FM__ROUND_SHIFT) + 1;
    } while (!atomic_compare_exchange_weak(word, &was, now));
    return (now - 1) & FM__ROUND_OVER;
}

#endif
