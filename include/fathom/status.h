/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FATHOM_STATUS_H
#define FATHOM_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#define FM_API __attribute__((visibility("default")))

/* 0 is success, errors are negative.  The first failure also leaves one
 * sentence for a human in a thread-local slot, fm_why(). */
#define FM_STATUS_MAP(X)                                                                           \
    X(OK, 0, "ok")                                                                                 \
    X(E_ARG, -1, "caller passed a value the contract forbids")                                     \
    X(E_OOM, -2, "out of memory")                                                                  \
    X(E_IO, -3, "file or socket error")                                                            \
    X(E_FORMAT, -4, "input does not have the promised form")                                       \
    X(E_NOSUP, -5, "not supported on this machine or build")                                       \
    X(E_DEVICE, -6, "accelerator error")                                                           \
    X(E_COMM, -7, "a peer rank failed or timed out")                                               \
    X(E_FULL, -8, "no room now; retry after something is released")                                \
    X(E_CANCELLED, -9, "the client went away")                                                     \
    X(E_NOCONV, -10, "an iteration did not converge")

typedef enum {
#define FM_STATUS_ENUM(name, code, text) FM_##name = (code),
    FM_STATUS_MAP(FM_STATUS_ENUM)
#undef FM_STATUS_ENUM
} fm_status;

FM_API const char *fm_status_text(fm_status s); /* the kind of failure, in words */
FM_API const char *fm_why(void);                /* the last failure on this thread; never NULL */

#ifdef __cplusplus
}
#endif
#endif
