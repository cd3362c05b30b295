/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/alloc_guard.h"
#include "base/status.h"

#if FM_ALLOC_GUARDED
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static _Thread_local int guarded;

void fm_alloc_guard_begin(void)
{
    guarded++;
}

void fm_alloc_guard_end(void)
{
    guarded--;
}

int fm_alloc_guard_pause(void)
{
    const int paused = guarded;
    guarded          = 0;
    return paused;
}

void fm_alloc_guard_resume(int paused)
{
    guarded = paused;
}

static void check(void)
{
    if (!guarded) return;
    guarded = 0; /* the message may allocate */
    fm_bug(__FILE__, __LINE__, "no allocation inside a step");
}

void *malloc(size_t n)
{
    check();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    check();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    check();
    return __libc_realloc(p, n);
}
#endif
