/* SPDX-License-Identifier: Apache-2.0 */
/* What stands in for a library's kernel, in C: it goes to the stream as kernels do. */
#ifndef FM_TESTS_CUDA_EMULATOR_CALL_H
#define FM_TESTS_CUDA_EMULATOR_CALL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Now, or when what is being recorded runs; the argument is copied. */
void fm_emu_call(void (*work)(const void *arg), const void *arg, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
