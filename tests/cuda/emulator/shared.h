/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of the block that runs.  Static variables lie in a section of
 * their own, so that they can be poisoned (those of templates do not: the
 * compiler keeps them apart). */
#ifndef FM_TESTS_CUDA_EMULATOR_SHARED_H
#define FM_TESTS_CUDA_EMULATOR_SHARED_H

#include <stddef.h>

/* What one block may have: 48 KB unless the kernel was allowed more. */
void fm_emu_allow_shared(const void *kernel, size_t bytes);
void fm_emu_take_shared(const void *kernel, size_t bytes);
void fm_emu_poison_shared();
void fm_emu_check_shared(); /* was anything written behind the end? */

#endif
