/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/nccl/nccl_library.h"

#include <dlfcn.h>

#define LIBRARY "libnccl.so.2"

static fm__nccl_calls calls;
static void          *library; /* kept until the process ends */

/* A pointer to a function through a pointer to data, as POSIX has it. */
static fm_status find(void *to, const char *name)
{
    *(void **)to = dlsym(library, name);
    return *(void **)to ? FM_OK
                        : fm_fail(FM_E_NOSUP, LIBRARY " has no %s: 2.14 or later is needed", name);
}

fm_status fm__nccl_library(const fm__nccl_calls **out)
{
    if (!library) library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fm_fail(FM_E_NOSUP,
                       LIBRARY ", by which GPUs of several ranks meet, cannot be opened: %s",
                       dlerror());
#define FIND(name, args) FM_TRY(find(&calls.name, "nccl" #name));
    FM__NCCL_CALLS(FIND)
#undef FIND
    FM_TRY(find(&calls.GetErrorString, "ncclGetErrorString"));
    *out = &calls;
    return FM_OK;
}
