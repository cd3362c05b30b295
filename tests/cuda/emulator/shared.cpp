/* SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <map>

#include "grid.h"

enum { ALIGN = 1024, GUARD = 64 };

static const size_t        freely = 48 << 10, at_most = 227 << 10;
static const unsigned char poison = 0xff, guard = 0xa5;

static std::map<const void *, size_t> allowed;

fm_emu_span fm_emu_dynamic; /* an allocation of its own per size: ASan sees its end */

static unsigned char *&memory = fm_emu_dynamic.memory;
static size_t         &size   = fm_emu_dynamic.size;

extern "C" {
extern unsigned char __start_fm_shared[] __attribute__((weak));
extern unsigned char __stop_fm_shared[] __attribute__((weak));
extern unsigned char __data_start[], _end[]; /* where static variables lie */
}

void fm_emu_allow_shared(const void *kernel, size_t bytes)
{
    if (bytes > at_most)
        fm_emu_stop("%zu bytes of shared memory: at most %zu exist", bytes, at_most);
    allowed[kernel] = bytes;
}

void fm_emu_take_shared(const void *kernel, size_t bytes)
{
    const auto   found = allowed.find(kernel);
    const size_t most  = found == allowed.end() || found->second < freely ? freely : found->second;
    if (bytes > most) fm_emu_stop("%zu bytes of shared memory, allowed are %zu", bytes, most);
    if (memory && bytes == size) return;
    free(memory);
    size = bytes;
    if (posix_memalign((void **)&memory, ALIGN, size + GUARD) != 0) fm_emu_stop("out of memory");
}

void fm_emu_poison_shared()
{
    memset(memory, poison, size);
    memset(memory + size, guard, GUARD);
    if (__start_fm_shared)
        memset(__start_fm_shared, poison, (size_t)(__stop_fm_shared - __start_fm_shared));
}

void fm_emu_check_shared()
{
    for (int i = 0; i < GUARD; i++)
        if (memory[size + (size_t)i] != guard)
            fm_emu_stop("byte %zu of %zu bytes of dynamic shared memory was written",
                        size + (size_t)i, size);
}

static bool within(const void *p, size_t bytes, const void *from, const void *to)
{
    const uintptr_t at = (uintptr_t)p;
    return at >= (uintptr_t)from && at + bytes <= (uintptr_t)to;
}

void fm_emu_need_static_shared(const char *what, const void *p, size_t bytes, size_t alignment)
{
    if ((uintptr_t)p % alignment) fm_emu_stop("%s: %p is not %zu-byte aligned", what, p, alignment);
    if (within(p, bytes, __data_start, _end)) return;
    fm_emu_stop(
        "%s: address is not in shared memory, it is %td bytes from the start of %zu dynamic ones",
        what, (const unsigned char *)p - memory, size);
}
