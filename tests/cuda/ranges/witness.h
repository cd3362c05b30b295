/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_TESTS_CUDA_RANGES_WITNESS_H
#define FM_TESTS_CUDA_RANGES_WITNESS_H

typedef struct {
    int n_push, n_pop, depth;
    int n_pass, n_attend; /* ranges of these names */
} fm_witness;

#ifdef __cplusplus
extern "C" {
#endif

fm_witness fm_witness_seen(void);

#ifdef __cplusplus
}
#endif

#endif
