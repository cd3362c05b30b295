/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/tier/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"

/* --- faults ---------------------------------------------------------------- */

enum { NO_FAULT, FAILS, IS_SHORT, IS_ALTERED, N_FAULT };

/* Which fault this call has, of the first `n_kind` kinds. */
static int fault(fm_disk *d, int n_kind)
{
    if (d->rate <= 0) return NO_FAULT;
    const uint64_t call = d->n_call++;
    if (fm_rng_u32(d->seed, 2 * call) >= d->rate * 0x1p32) return NO_FAULT;
    d->n_fault++;
    return FAILS + (int)(fm_rng_u32(d->seed, 2 * call + 1) % (uint32_t)n_kind);
}

static int fails(fm_disk *d) { return fault(d, 1) != NO_FAULT; }

/* --- calls ----------------------------------------------------------------- */

static int open_file(fm_disk *d, const char *path, int flags, int *fd)
{
    if (fails(d)) return EIO;
    *fd = open(path, flags | O_CLOEXEC, 0666);
    return *fd < 0 ? errno : 0;
}

static int close_file(fm_disk *d, int fd)
{
    const int bad = fails(d);
    if (close(fd) != 0 && errno != EINTR) return errno; /* a network file system says it here */
    return bad ? EIO : 0;
}

static int read_all(fm_disk *d, int fd, char *to, size_t n)
{
    const int is = fault(d, N_FAULT - FAILS);
    if (is == FAILS) return EIO;
    for (size_t at = 0; at < n;) {
        const ssize_t got = pread(fd, to + at, n - at, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return EPROTO;
        at += (size_t)got;
    }
    if (is == IS_SHORT) return EPROTO;
    if (is == IS_ALTERED) to[fm_rng_u32(d->seed, d->n_call) % n] ^= 0x20;
    return 0;
}

static int write_all(fm_disk *d, int fd, const char *from, size_t n)
{
    const int is = fault(d, 2);
    if (is == FAILS) return ENOSPC;
    const size_t most = is == IS_SHORT ? n / 2 : n; /* a write that stops midway and says so */
    for (size_t at = 0; at < most;) {
        const ssize_t put = pwrite(fd, from + at, most - at, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return put < 0 ? errno : EIO;
        at += (size_t)put;
    }
    return most < n ? EIO : 0;
}

static int make_one(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : errno;
}

int fm_disk_make_dir(fm_disk *d, const char *path) { return fails(d) ? EIO : make_one(path); }

int fm_disk_make_dirs(fm_disk *d, const char *path)
{
    char part[4096];
    if (fails(d)) return EIO;
    if (strlen(path) >= sizeof part) return ENAMETOOLONG;
    strcpy(part, path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash        = 0;
        const int bad = make_one(part);
        if (bad && bad != EROFS && bad != EACCES) return bad; /* it may be there all the same */
        *slash = '/';
    }
    return make_one(part);
}

int fm_disk_read(fm_disk *d, const char *path, void *to, size_t n)
{
    int         fd = -1;
    struct stat st;
    int         bad = open_file(d, path, O_RDONLY, &fd);
    if (bad) return bad;
    if (fails(d))
        bad = EIO;
    else if (fstat(fd, &st) != 0)
        bad = errno;
    else if ((size_t)st.st_size != n)
        bad = EPROTO;
    if (!bad) bad = read_all(d, fd, to, n);
    const int closed = close_file(d, fd);
    return bad ? bad : closed;
}

int fm_disk_touch(fm_disk *d, const char *path, double age)
{
    struct timespec t[2];
    if (fails(d)) return EIO;
    clock_gettime(CLOCK_REALTIME, &t[0]);
    const double at = (double)t[0].tv_sec - age;
    t[0].tv_sec     = (time_t)at;
    t[0].tv_nsec    = (long)((at - (double)t[0].tv_sec) * 1e9);
    t[1]            = t[0];
    return utimensat(AT_FDCWD, path, t, 0) == 0 ? 0 : errno;
}

static int write_file(fm_disk *d, const char *path, const void *from, size_t n)
{
    int fd  = -1;
    int bad = open_file(d, path, O_WRONLY | O_CREAT | O_EXCL, &fd);
    if (bad) return bad;
    bad              = write_all(d, fd, from, n);
    const int closed = close_file(d, fd);
    return bad ? bad : closed;
}

int fm_disk_write(fm_disk *d, const char *temporary, const char *path, const void *from, size_t n)
{
    int bad = write_file(d, temporary, from, n);
    if (!bad && fails(d)) bad = EIO;
    if (!bad && rename(temporary, path) != 0) bad = errno;
    if (bad) unlink(temporary);
    return bad;
}

int fm_disk_remove(fm_disk *d, const char *path)
{
    if (fails(d)) return EIO;
    return unlink(path) == 0 ? 0 : errno;
}

/* --- looking --------------------------------------------------------------- */

static int look_at(fm_disk *d, int dir, const char *name, int flags, fm_disk_facts *out)
{
    struct stat st;
    if (fails(d)) return EIO;
    if (fstatat(dir, name, &st, flags) != 0) return errno;
    *out =
        (fm_disk_facts){.is_dir  = S_ISDIR(st.st_mode),
                        .is_file = S_ISREG(st.st_mode),
                        .bytes   = (double)st.st_size,
                        .changed = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec};
    return 0;
}

int fm_disk_look(fm_disk *d, const char *path, fm_disk_facts *out)
{
    return look_at(d, AT_FDCWD, path, 0, out);
}

int fm_disk_look_in(fm_disk *d, DIR *dir, const char *name, fm_disk_facts *out)
{
    return look_at(d, dirfd(dir), name, AT_SYMLINK_NOFOLLOW, out);
}

int fm_disk_open_dir(fm_disk *d, const char *path, DIR **out)
{
    if (fails(d)) return EIO;
    *out = opendir(path);
    return *out ? 0 : errno;
}

int fm_disk_next_name(fm_disk *d, DIR *dir, const char **name)
{
    *name = NULL;
    if (fails(d)) return EIO;
    errno                  = 0;
    const struct dirent *f = readdir(dir);
    if (f) *name = f->d_name;
    return f ? 0 : errno;
}
