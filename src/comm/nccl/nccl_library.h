/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL, found when it is first needed: a build needs nothing of it, and a
 * program starts on machines that do not have it.  Declared here is what we
 * call, as NCCL 2.14 and later have it. */
#ifndef FM_COMM_NCCL_NCCL_LIBRARY_H
#define FM_COMM_NCCL_NCCL_LIBRARY_H

#include <stddef.h>

#include "base/status.h"
#include "device/cuda/stream.h"

typedef struct fm__nccl_group *fm__nccl_comm;

typedef struct {
    char bytes[128];
} fm__nccl_id;

/* The library's record of 2.14; it fills in what later versions added. */
typedef struct {
    size_t       size;
    unsigned int magic, version;
    int          blocking;
} fm__nccl_config;

enum { FM__NCCL_OK = 0, FM__NCCL_IN_PROGRESS = 7 };
enum { FM__NCCL_BYTE = 1 };
#define FM__NCCL_MAGIC   0xcafebeefu
#define FM__NCCL_VERSION 21400u

#define FM__NCCL_CALLS(X)                                                                          \
    X(GetUniqueId, (fm__nccl_id *))                                                                \
    X(CommInitRankConfig, (fm__nccl_comm *, int, fm__nccl_id, int, fm__nccl_config *))             \
    X(CommGetAsyncError, (fm__nccl_comm, int *))                                                   \
    X(CommFinalize, (fm__nccl_comm))                                                               \
    X(CommDestroy, (fm__nccl_comm))                                                                \
    X(CommAbort, (fm__nccl_comm))                                                                  \
    X(AllGather, (const void *, void *, size_t, int, fm__nccl_comm, fm_stream))                    \
    X(Broadcast, (const void *, void *, size_t, int, int, fm__nccl_comm, fm_stream))               \
    X(Send, (const void *, size_t, int, int, fm__nccl_comm, fm_stream))                            \
    X(Recv, (void *, size_t, int, int, fm__nccl_comm, fm_stream))                                  \
    X(GroupStart, (void))                                                                          \
    X(GroupEnd, (void))

typedef struct {
#define FM__NCCL_FIELD(name, args) int(*name) args;
    FM__NCCL_CALLS(FM__NCCL_FIELD)
#undef FM__NCCL_FIELD
    const char *(*GetErrorString)(int);
} fm__nccl_calls;

/* FM_E_NOSUP: the library is not there, or lacks a call. */
fm_status fm__nccl_library(const fm__nccl_calls **out);

#endif
