/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/cuda/linear/lt_library.h"

#include <dlfcn.h>
#include <stdio.h>

static fm__lt_calls calls;
static void        *library; /* kept until the process ends */

/* A pointer to a function through a pointer to data, as POSIX has it. */
static fm_status find(void *to, const char *name)
{
    *(void **)to = dlsym(library, name);
    return *(void **)to ? FM_OK : fm_fail(FM_E_DEVICE, "cuBLASLt has no %s", name);
}

fm_status fm__lt_library(const fm__lt_calls **out)
{
    char name[32];
    snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fm_fail(FM_E_DEVICE, "%s, which multiplies matrices on the GPU, cannot be opened: %s",
                       name, dlerror());
#define FIND(call) FM_TRY(find(&calls.call, #call));
    FM__LT_CALLS(FIND)
#undef FIND
    *out = &calls;
    return FM_OK;
}
