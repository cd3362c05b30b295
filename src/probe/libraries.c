/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "probe/libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int         ask_number(int *version); /* 0: it has answered */
typedef const char *ask_text(void);

/* The function of a library, which is kept until the process ends; NULL: there is none.  A pointer
 * to a function through a pointer to data, as POSIX has it. */
static void find(void *to, const char *file, int flags, const char *symbol)
{
    void *library = dlopen(file, RTLD_LAZY | RTLD_LOCAL | flags);
    *(void **)to  = library ? dlsym(library, symbol) : NULL;
}

static int number_of(const char *file, const char *symbol)
{
    ask_number *ask     = NULL;
    int         version = 0;
    find(&ask, file, 0, symbol);
    return ask && ask(&version) == 0 ? version : 0;
}

static void add(char *out, size_t size, const char *name, const char *version)
{
    const size_t used = strlen(out);
    if (*version) snprintf(out + used, size - used, "%s=%s\n", name, version);
}

/* 2708 is 2.7.8, and 22105 is 2.21.5: the coding changed with 2.9. */
static void add_nccl(char *out, size_t size)
{
    const int v = number_of("libnccl.so.2", "ncclGetVersion"), unit = v < 10000 ? 1000 : 10000;
    char      text[48] = "";
    if (v > 0) snprintf(text, sizeof text, "%d.%d.%d", v / unit, v % unit / 100, v % 100);
    add(out, size, "NCCL", text);
}

/* 12040 is 12.4. */
static void add_cuda(char *out, size_t size)
{
    const int v        = number_of("libcuda.so.1", "cuDriverGetVersion");
    char      text[48] = "";
    if (v > 0) snprintf(text, sizeof text, "%d.%d", v / 1000, v % 1000 / 10);
    add(out, size, "CUDA driver", text);
}

static void add_ucx(char *out, size_t size)
{
    ask_text *ask = NULL;
    find(&ask, "libucp.so.0", RTLD_NOLOAD, "ucp_get_version_string");
    add(out, size, "UCX", ask ? ask() : "");
}

void fm_libraries_list(char *out, size_t size)
{
    *out = 0;
    add_nccl(out, size);
    add_cuda(out, size);
    add_ucx(out, size);
}
