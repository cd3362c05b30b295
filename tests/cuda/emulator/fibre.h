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
void fm_fibre_yield(fm_fibre *f); /* back to the caller of fm_fibre_enter */

extern fm_fibre *fm_fibre_entering; /* read by one that runs for the first time */

/* Leaves the stack and goes on where the other one was left.  Written in place, so that the compiler
 * saves only the registers it uses; and a jump, since a return of its own would be predicted wrongly. */
static inline __attribute__((always_inline)) void fm_fibre_switch(void **save_sp, void *to_sp)
{
    asm volatile(R"(
        leaq -128(%%rsp), %%rsp # below what a function without calls keeps there
        pushq %%rbp
        leaq 1f(%%rip), %%rax
        pushq %%rax
        movq %%rsp, (%0)
        movq %1, %%rsp
        popq %%rax
        jmpq *%%rax
    1:  popq %%rbp
        leaq 128(%%rsp), %%rsp
    )"
                 : "+D"(save_sp), "+S"(to_sp)
                 :
                 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc",
                   "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

/* From one fibre into another, which goes back to the same caller.  False: it cannot be done here,
 * and nothing happened. */
static inline bool fm_fibre_hand_over(fm_fibre *from, fm_fibre *to)
{
#ifdef __SANITIZE_ADDRESS__
    (void)from, (void)to;
    return false; /* it must know the stack that a fibre goes back to */
#else
    fm_fibre_entering = to;
    fm_fibre_switch(&from->sp, to->sp);
    return true;
#endif
}

#endif
