/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "output_file.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static fm_status complain(const char *flag, const char *path)
{
    return fm_fail(FM_E_IO, "--%s %s: %s", flag, path, strerror(errno));
}

/* The descriptor of standard output or error that the file is, or -1. */
static int own_stream(const struct stat *file)
{
    struct stat own;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) == 0 && own.st_dev == file->st_dev && own.st_ino == file->st_ino)
            return fd;
    return -1;
}

static int is_folder_writable(const char *path)
{
    char *copy = strdup(path);
    FM_BUG_UNLESS(copy != NULL);
    const int ok = access(dirname(copy), W_OK | X_OK) == 0;
    free(copy);
    return ok;
}

static int is_writable(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return errno == ENOENT && is_folder_writable(path);
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return 0;
    }
    return own_stream(&st) >= 0 || access(path, W_OK) == 0;
}

fm_status fm_output_check(const char *flag, const char *path)
{
    return !path || !*path || is_writable(path) ? FM_OK : complain(flag, path);
}

/* Opened anew, /dev/stdout would begin at the start of what was printed.  NULL:
 * the file is another. */
static FILE *open_own_stream(const char *path)
{
    struct stat st;
    const int   fd = stat(path, &st) == 0 ? own_stream(&st) : -1;
    if (fd < 0) return NULL;
    fflush(stdout);
    return fdopen(dup(fd), "w");
}

/* Beside the file, so that renaming it is one step.  NULL: the file is no
 * regular one, or its folder takes no new files. */
static FILE *open_draft(fm_output_file *o)
{
    struct stat link, st;
    const int   there = lstat(o->path, &link) == 0;
    if (there && (stat(o->path, &st) != 0 || !S_ISREG(st.st_mode))) return NULL;
    if (!(o->target = there ? realpath(o->path, NULL) : strdup(o->path))) return NULL;
    fm_str_printf(&o->draft, "%s.%d.tmp", o->target, (int)getpid());
    FILE *f = fopen(o->draft.text, "w");
    if (f && there) (void)fchmod(fileno(f), st.st_mode & 0777);
    return f;
}

static void forget(fm_output_file *o)
{
    fm_str_fini(&o->draft);
    free(o->target);
    o->target = NULL;
}

fm_status fm_output_create(fm_output_file *o, const char *flag, const char *path)
{
    *o    = (fm_output_file){.flag = flag, .path = path, .kept = -1};
    o->to = open_own_stream(path);
    if (!o->to && !(o->to = open_draft(o))) {
        forget(o);
        o->to = fopen(path, "w");
    }
    return o->to ? FM_OK : complain(flag, path);
}

fm_status fm_output_append(fm_output_file *o, const char *flag, const char *path)
{
    struct stat st;
    *o    = (fm_output_file){.flag = flag, .path = path, .kept = -1};
    o->to = open_own_stream(path);
    if (o->to) return FM_OK;
    if (!(o->to = fopen(path, "a"))) return complain(flag, path);
    if (fstat(fileno(o->to), &st) == 0 && S_ISREG(st.st_mode)) o->kept = st.st_size;
    return FM_OK;
}

fm_status fm_output_close(fm_output_file *o)
{
    int ok = !ferror(o->to);
    if (fclose(o->to) != 0) ok = 0;
    if (ok && o->target) ok = rename(o->draft.text, o->target) == 0;
    const fm_status rc = ok ? FM_OK : complain(o->flag, o->path);
    if (!ok && o->target) unlink(o->draft.text);
    if (!ok && o->kept >= 0) (void)!truncate(o->path, o->kept);
    forget(o);
    return rc;
}

fm_status fm_output_write(const char *flag, const char *path, const fm_str *text)
{
    fm_output_file o;
    FM_TRY(fm_output_create(&o, flag, path));
    if (text->len) fwrite(text->text, 1, text->len, o.to);
    return fm_output_close(&o);
}
