/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "probe/file_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"

enum { BLOCK = 8 << 20, PARTS = 5, ALIGN = 4096, SMALLEST = 1 << 20 };
#define TMPFS 0x01021994
#define RAMFS 0x858458f6L

typedef struct {
    char   path[PATH_MAX];
    size_t bytes;
    double total;
} largest;

static fm_status complain(const char *what)
{
    return fm_fail(FM_E_IO, "%s: %s", what, strerror(errno));
}

static fm_status find_largest(largest *out, const char *directory)
{
    DIR           *d = opendir(directory);
    struct dirent *e;
    if (!d) return complain(directory);
    *out = (largest){.bytes = 0};
    while ((e = readdir(d)) != NULL) {
        char        path[PATH_MAX];
        struct stat st;
        const int   n = snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (n >= (int)sizeof path || stat(path, &st) != 0 || !S_ISREG(st.st_mode)) continue;
        out->total += (double)st.st_size;
        if ((size_t)st.st_size <= out->bytes) continue;
        out->bytes = (size_t)st.st_size;
        memcpy(out->path, path, sizeof path);
    }
    closedir(d);
    if (out->bytes >= SMALLEST) return FM_OK;
    return fm_fail(FM_E_NOSUP, "%s has no file of 1 MiB or more to read", directory);
}

/* A part of the file from its own offset on, until its time is over. */
typedef struct {
    int    fd, is_direct;
    char  *block;
    size_t from, to;
    double seconds;
} part;

/* Bytes per second; negative: it cannot be read. */
static double read_part(const part *p)
{
    if (!p->is_direct) posix_fadvise(p->fd, 0, 0, POSIX_FADV_DONTNEED);
    const double began = fm_now();
    double       done = 0, took = 0;
    for (size_t at = p->from; at < p->to && took < p->seconds;) {
        const size_t  want = p->to - at < BLOCK ? p->to - at : BLOCK;
        const ssize_t n    = pread(p->fd, p->block, want, (off_t)at);
        if (n < 0) return -1;
        if (n == 0) break;
        done += (double)n;
        at += (size_t)n;
        took = fm_now() - began;
    }
    return took > 0 ? done / took : 0;
}

/* Parts of the file, other ones for each machine. */
static int read_parts(double rate[PARTS], part *p, size_t bytes, const fm_file_read_plan *plan)
{
    const size_t n_slice = (size_t)PARTS * (size_t)plan->n, slice = bytes / n_slice / ALIGN * ALIGN;
    int          n = 0;
    p->seconds     = plan->seconds / PARTS;
    for (int i = 0; i < PARTS; i++) {
        p->from          = ((size_t)i * (size_t)plan->n + (size_t)plan->index) * slice;
        p->to            = p->from + (slice ? slice : bytes / ALIGN * ALIGN);
        const double got = read_part(p);
        if (got < 0) return -1;
        if (got > 0) rate[n++] = got;
    }
    return n;
}

static fm_status read_file(fm_file_read *out, const largest *file, const fm_file_read_plan *plan,
                           int flags)
{
    double rate[PARTS];
    part   p = {.fd = open(file->path, O_RDONLY | O_CLOEXEC | flags), .is_direct = flags != 0};
    if (p.fd < 0) return complain(file->path);
    if (posix_memalign((void **)&p.block, ALIGN, BLOCK) != 0) {
        close(p.fd);
        return fm_fail(FM_E_OOM, "block to read files into");
    }
    const int       n  = read_parts(rate, &p, file->bytes, plan);
    const fm_status rc = n < 0 ? complain(file->path) : FM_OK;
    if (rc == FM_OK) out->rate = fm_rate_of(rate, n);
    out->is_direct = p.is_direct;
    free(p.block);
    close(p.fd);
    return rc;
}

static int lies_in_memory(const char *path)
{
    struct statfs s;
    return statfs(path, &s) == 0 && (s.f_type == TMPFS || s.f_type == (__typeof__(s.f_type))RAMFS);
}

fm_status fm_file_read_measure(fm_file_read *out, const fm_file_read_plan *plan)
{
    largest      file;
    fm_file_read got = {0};
    FM_TRY(find_largest(&file, plan->directory));
    got.total_bytes = file.total;
    got.is_memory   = lies_in_memory(file.path);
    if (read_file(&got, &file, plan, O_DIRECT) != FM_OK) FM_TRY(read_file(&got, &file, plan, 0));
    *out = got;
    return FM_OK;
}
