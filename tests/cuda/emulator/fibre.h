/* SPDX-License-Identifier: Apache-2.0 */
/* A fibre is a function with a stack of its own that can be left in the middle
 * and entered again.  One thread of the machine runs all of them in turn. */
#ifndef FM_TESTS_CUDA_EMULATOR_FIBRE_H
#define FM_TESTS_CUDA_EMULATOR_FIBRE_H

#include <stddef.h>

struct fm_fibre {
    void *sp;    /* where it was left */
    char *stack; /* lowest address; the page below is a guard */
    void (*entry)(void *);
    void *arg;
    void *fake_stack; /* AddressSanitizer's */
};

/* Stacks are kept from one grid to the next.  Never fails: it ends the program. */
void fm_fibre_prepare(fm_fibre *f, int slot, void (*entry)(void *), void *arg);
void fm_fibre_enter(fm_fibre *f); /* until it yields or `entry` returns */
void fm_fibre_yield(fm_fibre *f); /* back to whoever entered it */

#endif
