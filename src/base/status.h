/* SPDX-License-Identifier: Apache-2.0 */
/* Three kinds of failure, never mixed: the outside world failed (an fm_status
 * and one sentence), a bug (stop with file and line, in release too), and no
 * room now (FM_E_FULL, ordinary control flow).  The library never exits on
 * the first and never prints. */
#ifndef FM_BASE_STATUS_H
#define FM_BASE_STATUS_H

#include "fathom/status.h"

#ifdef __cplusplus /* launchers of kernels */
extern "C" {
#endif

/* Records the reason and returns `s`, so a failure is one line:
 *     return fm_fail(FM_E_FORMAT, "%s: tensor %s missing", path, name); */
fm_status fm_fail(fm_status s, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* Propagate.  Adds nothing: the callee has already said why. */
#define FM_TRY(expr)                                                                               \
    do {                                                                                           \
        const fm_status s_ = (expr);                                                               \
        if (s_ != FM_OK) return s_;                                                                \
    } while (0)

/* Same, for functions that own something: jump to the one exit. */
#define FM_GO(expr)                                                                                \
    do {                                                                                           \
        if ((rc = (expr)) != FM_OK) goto out;                                                      \
    } while (0)

/* A broken invariant is a bug, not an error: stop with file and line. */
#define FM_BUG_UNLESS(cond) ((cond) ? (void)0 : fm_bug(__FILE__, __LINE__, #cond))
__attribute__((noreturn)) void fm_bug(const char *file, int line, const char *what);

#ifdef __cplusplus
}
#endif

#endif
