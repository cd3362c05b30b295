/* SPDX-License-Identifier: Apache-2.0 */
/* The input as a file in memory, for readers that take a path. */
#ifndef FM_TESTS_FUZZ_FILE_H
#define FM_TESTS_FUZZ_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Its path; the same file for every input.  The including file defines _GNU_SOURCE. */
static inline const char *file_of(const uint8_t *data, size_t size)
{
    static int  fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("input", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size) abort();
    return path;
}

#endif
