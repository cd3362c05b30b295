/* SPDX-License-Identifier: Apache-2.0 */
/* A memory file without a name.  Others open it through the maker's entry in
 * /proc, which asks for no server and leaves nothing to clean up. */
#define _GNU_SOURCE
#include "device/host_share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { HUGE = 2 << 20, COLLAPSE_BYTES = 16 * HUGE };

/* Huge pages need addresses at their borders, so more is reserved than used. */
static void *map_aligned(size_t bytes, int prot, int fd)
{
    char *room = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                      -1, 0);
    if (room == MAP_FAILED) return MAP_FAILED;
    char  *at   = room + (HUGE - (uintptr_t)room % HUGE) % HUGE;
    char  *end  = room + bytes + HUGE;
    char  *last = at + fm_round_up(bytes, (size_t)sysconf(_SC_PAGESIZE));
    void  *base = mmap(at, bytes, prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        munmap(room, bytes + HUGE);
        return MAP_FAILED;
    }
    if (at > room) munmap(room, (size_t)(at - room));
    if (last < end) munmap(last, (size_t)(end - last));
    return base;
}

static fm_status no_share(int fd, const char *what, const char *call)
{
    const int why = errno;
    if (fd >= 0) close(fd);
    return fm_fail(FM_E_NOSUP, "%s: no memory to share: %s: %s", what, call, strerror(why));
}

static fm_status make(fm_host_share *out, fm_host_ticket *ticket, size_t bytes, const char *what,
                      int seals)
{
    struct stat st;
    if (!bytes) bytes = 1;
    const int fd = memfd_create(what, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return no_share(fd, what, "memfd_create");
    if (ftruncate(fd, (off_t)bytes) || fstat(fd, &st)) return no_share(fd, what, "ftruncate");
    void *base = map_aligned(bytes, PROT_READ | PROT_WRITE, fd);
    if (base == MAP_FAILED) return no_share(fd, what, "mmap");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL | seals)) {
        munmap(base, bytes);
        return no_share(fd, what, "seals");
    }
    *out    = (fm_host_share){base, bytes, fd};
    *ticket = (fm_host_ticket){(int32_t)getpid(), fd, st.st_dev, st.st_ino, bytes};
    return FM_OK;
}

fm_status fm_host_share_create(fm_host_share *out, fm_host_ticket *ticket, size_t bytes,
                               const char *what)
{
    FM_TRY(make(out, ticket, bytes, what, F_SEAL_FUTURE_WRITE));
    madvise(out->base, out->bytes, MADV_HUGEPAGE); /* a wish; small pages work too */
    return FM_OK;
}

fm_status fm_host_window_create(fm_host_share *out, fm_host_ticket *ticket, size_t bytes,
                                const char *what)
{
    return make(out, ticket, bytes, what, 0);
}

/* In this container the maker's pid may belong to another process: check that the file which was
 * opened is the maker's. */
static int is_meant(int fd, const fm_host_ticket *t)
{
    struct stat st;
    const int   seals = fcntl(fd, F_GET_SEALS);
    return fstat(fd, &st) == 0 && st.st_dev == t->device && st.st_ino == t->inode &&
           (uint64_t)st.st_size == t->bytes && seals >= 0 && (seals & F_SEAL_SHRINK);
}

static fm_status join(fm_host_share *out, const fm_host_ticket *ticket, int is_writable)
{
    char path[64];
    if (ticket->pid <= 0) return fm_fail(FM_E_NOSUP, "no memory to join");
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)ticket->pid, (int)ticket->fd);
    const int fd = open(path, (is_writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return no_share(fd, path, "open");
    errno = ESTALE;
    if (!is_meant(fd, ticket)) return no_share(fd, path, "not the memory it should be");
    void *base = map_aligned(ticket->bytes, PROT_READ | (is_writable ? PROT_WRITE : 0), fd);
    if (base == MAP_FAILED) return no_share(fd, path, "mmap");
    close(fd); /* the mapping keeps the memory */
    *out = (fm_host_share){base, ticket->bytes, -1};
    return FM_OK;
}

fm_status fm_host_share_join(fm_host_share *out, const fm_host_ticket *ticket)
{
    FM_TRY(join(out, ticket, 0));
    madvise(out->base, out->bytes, MADV_HUGEPAGE);
    return FM_OK;
}

fm_status fm_host_window_join(fm_host_share *out, const fm_host_ticket *ticket)
{
    return join(out, ticket, 1);
}

/* Many systems give shared memory small pages only, unless asked for each
 * range once it is there.  Neighbouring ranges go to different threads, and so
 * to all the nodes these run on. */
static void collapse(const fm_host_share *s, int n_thread)
{
    const long n = (long)((s->bytes + COLLAPSE_BYTES - 1) / COLLAPSE_BYTES);
#pragma omp parallel for schedule(static, 1) num_threads(n_thread)
    for (long i = 0; i < n; i++) {
        const size_t at = (size_t)i * COLLAPSE_BYTES, left = s->bytes - at;
        madvise((char *)s->base + at, left < COLLAPSE_BYTES ? left : COLLAPSE_BYTES, MADV_COLLAPSE);
    }
}

void fm_host_share_settle(fm_host_share *s, int n_thread)
{
    if (s->fd >= 0) {
        mprotect(s->base, s->bytes, PROT_READ);
        close(s->fd);
        s->fd = -1;
    }
    collapse(s, n_thread > 0 ? n_thread : 1);
}

void fm_host_share_close(fm_host_share *s)
{
    if (!s || !s->base) return;
    if (s->fd >= 0) close(s->fd);
    munmap(s->base, s->bytes);
    *s = (fm_host_share){.fd = -1};
}
