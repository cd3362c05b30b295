/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for a test that makes thousands of small files: in memory, where there is such a
 * place. */
#ifndef FM_TESTS_SCRATCH_H
#define FM_TESTS_SCRATCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SCRATCH = 64 }; /* bytes of its name */

/* NULL: it cannot be made. */
static inline char *make_scratch(char dir[SCRATCH], const char *name)
{
    const char *where = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir, SCRATCH, "%s/fathom-%s-XXXXXX", where, name);
    return mkdtemp(dir);
}

#endif
