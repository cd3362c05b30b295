/* SPDX-License-Identifier: Apache-2.0 */
#include "fibre.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* The tops of stacks are a few cache lines apart within a page: lanes stand at the same depth, and
 * their frames would otherwise all compete for the same sets of the first-level cache. */
enum { STACK = 256 << 10, GUARD = 4096, MAX_FIBRES = 1024, STAGGER = 2 * 64, STAGGERED = 32 };

static char *stack_of[MAX_FIBRES];
static void *outside_sp;

fm_fibre *fm_fibre_entering;

#ifdef __SANITIZE_ADDRESS__
static const void *outside_stack;
static size_t      outside_size;

static void leave_for(void **fake, const void *stack, size_t size)
{
    __sanitizer_start_switch_fiber(fake, stack, size);
}

static void arrived_inside(fm_fibre *f)
{
    __sanitizer_finish_switch_fiber(f->fake_stack, &outside_stack, &outside_size);
}

static void arrived_outside(void *fake)
{
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
}

/* first_steps() of the stack's last user never returned. */
static void make_new(char *stack)
{
    __asan_unpoison_memory_region(stack + STACK - STAGGER * STAGGERED - 1024, STAGGER * STAGGERED + 1024);
}
#else
static const void  *outside_stack;
static const size_t outside_size = 0;

static void leave_for(void **, const void *, size_t)
{
}

static void arrived_inside(fm_fibre *)
{
}

static void arrived_outside(void *)
{
}

static void make_new(char *)
{
}
#endif

static void first_steps()
{
    fm_fibre *f = fm_fibre_entering;
    arrived_inside(f);
    f->entry(f->arg);
    leave_for(NULL, outside_stack, outside_size); /* NULL: this fibre does not come back */
    void *unused;
    fm_fibre_switch(&unused, outside_sp);
    abort();
}

static char *new_stack()
{
    char *m = (char *)mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED || mprotect(m, GUARD, PROT_NONE) != 0) {
        perror("emulator: stack of a fibre");
        abort();
    }
    return m + GUARD;
}

void fm_fibre_prepare(fm_fibre *f, int slot, void (*entry)(void *), void *arg)
{
    if (slot < 0 || slot >= MAX_FIBRES) abort();
    if (!stack_of[slot]) stack_of[slot] = new_stack();
    make_new(stack_of[slot]);
    f->stack      = stack_of[slot];
    f->entry      = entry;
    f->arg        = arg;
    f->fake_stack = NULL;
    /* Where to go on, and a word that puts the stack where the calling convention wants it at a
     * function's first instruction. */
    void **top = (void **)(f->stack + STACK - slot % STAGGERED * STAGGER) - 2;
    top[0]     = (void *)first_steps;
    top[1]     = NULL;
    f->sp      = top;
}

void fm_fibre_enter(fm_fibre *f)
{
    void *fake        = NULL;
    fm_fibre_entering = f;
    leave_for(&fake, f->stack, STACK);
    fm_fibre_switch(&outside_sp, f->sp);
    arrived_outside(fake);
}

void fm_fibre_yield(fm_fibre *f)
{
    leave_for(&f->fake_stack, outside_stack, outside_size);
    fm_fibre_switch(&f->sp, outside_sp);
    arrived_inside(f);
}
