/* SPDX-License-Identifier: Apache-2.0 */
/* A build without CUDA. */
#include "llm/op/backend.h"

const fm_backend *fm_backend_cuda(void)
{
    return NULL;
}

const fm_backend *fm_backend_shadow(void)
{
    return NULL;
}
