/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmark's section of a model, on one that is small. */
#ifndef FM_TESTS_CUDA_BENCH_TINY_H
#define FM_TESTS_CUDA_BENCH_TINY_H

#ifdef __cplusplus
extern "C" {
#endif

enum { FM_TINY_BATCH = 8, FM_TINY_PROMPT = 64, FM_TINY_LAYERS = 2, FM_TINY_EXPERTS = 6 };
void fm_bench_tiny(int no_graphs);

#ifdef __cplusplus
}
#endif

#endif
