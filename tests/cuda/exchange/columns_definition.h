/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_TESTS_CUDA_COLUMNS_DEFINITION_H
#define FM_TESTS_CUDA_COLUMNS_DEFINITION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Part `part` of n things that are divided in blocks of `unit`. */
void right_part(int part, int n_part, int n, int unit, int *begin, int *end);

#ifdef __cplusplus
}
#endif

#endif
