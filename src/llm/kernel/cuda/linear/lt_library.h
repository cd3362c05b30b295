/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt, loaded by dlopen when first needed: a program that was built with CUDA starts on
 * machines without it. */
#ifndef FM_LLM_KERNEL_CUDA_LINEAR_LT_LIBRARY_H
#define FM_LLM_KERNEL_CUDA_LINEAR_LT_LIBRARY_H

#include <cublasLt.h>

#include "base/status.h"

#define FM__LT_CALLS(X)                                                                            \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtGetStatusString)                                                                     \
    X(cublasLtMatrixLayoutInit_internal)                                                           \
    X(cublasLtMatrixLayoutSetAttribute)                                                            \
    X(cublasLtMatmulDescInit_internal)                                                             \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatmulPreferenceInit_internal)                                                       \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoConfigSetAttribute)                                                        \
    X(cublasLtMatmulAlgoCheck)                                                                     \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmul)

typedef struct {
#define FM__LT_FIELD(name) __typeof__(&name) name;
    FM__LT_CALLS(FM__LT_FIELD)
#undef FM__LT_FIELD
} fm__lt_calls;

/* FM_E_DEVICE: the library is not there, or lacks a call. */
fm_status fm__lt_library(const fm__lt_calls **out);

#endif
