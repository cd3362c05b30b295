/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static fm_status map(fm_mapped_file *out, int fd, const char *path)
{
    struct stat st;
    if (fstat(fd, &st) < 0) return fm_fail(FM_E_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return fm_fail(FM_E_IO, "%s: not a regular file", path);
    fm_mapped_file f = {NULL, (size_t)st.st_size};
    if (f.size) {
        void *p = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) return fm_fail(FM_E_IO, "%s: %s", path, strerror(errno));
        f.data = p;
    }
    *out = f;
    return FM_OK;
}

fm_status fm_mapped_file_open(fm_mapped_file *out, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fm_fail(FM_E_IO, "%s: %s", path, strerror(errno));
    const fm_status rc = map(out, fd, path);
    close(fd); /* the mapping keeps the file */
    return rc;
}

void fm_mapped_file_close(fm_mapped_file *f)
{
    if (f->data) munmap((void *)f->data, f->size);
    *f = (fm_mapped_file){0};
}

fm_status fm_not_lfs_pointer(const char *data, size_t size, const char *path)
{
    static const char begins[] = "version https://git-lfs.github.com/spec/";
    if (size < sizeof begins - 1 || memcmp(data, begins, sizeof begins - 1)) return FM_OK;
    return fm_fail(FM_E_FORMAT,
                   "%s: this is a Git LFS pointer of %zu bytes, not the file itself: run `git lfs "
                   "pull` in its folder, or `hf download`",
                   path, size);
}
