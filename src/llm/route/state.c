/* SPDX-License-Identifier: Apache-2.0 */
/* What requests changed in the table of workers, in a file, so that a restart does not lose it:
 *
 *     join URL [KEY]     it joined by request
 *     drain URL          it gets no new requests
 *
 * Workers of the command line and of the list come from there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "llm/route/route_internal.h"

/* --- reading --------------------------------------------------------------- */

static fm_status join(fm_route *r, const char *url, const char *key)
{
    fm_worker *w = NULL;
    if (fm__roster_find(r, url)) return FM_OK; /* it is listed by now */
    FM_TRY(fm__roster_add(r, url, key, 0, &w));
    w->joined = 1;
    return FM_OK;
}

static fm_status take_line(fm_route *r, char **word, int n)
{
    if (n >= 2 && !strcmp(word[0], "join")) return join(r, word[1], n > 2 ? word[2] : NULL);
    if (n != 2 || strcmp(word[0], "drain"))
        return fm_fail(FM_E_FORMAT, "it begins with \"%.40s\", not with join URL or drain URL",
                       word[0]);
    fm_worker *w = fm__roster_find(r, word[1]);
    if (w) w->draining = 1;
    return FM_OK;
}

/* Whether a later change can be kept is found out now, not when there is one. */
static fm_status check_writable(const char *path)
{
    struct stat s;
    char       *temporary;
    if (stat(path, &s) == 0 && !S_ISREG(s.st_mode))
        return fm_fail(FM_E_ARG, "--state-file %s is not a regular file", path);
    if (asprintf(&temporary, "%s.tmp", path) < 0) return fm_fail(FM_E_OOM, "state file");
    const int fd  = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int bad = errno;
    if (fd >= 0) {
        close(fd);
        unlink(temporary);
    }
    free(temporary);
    return fd >= 0 ? FM_OK
                   : fm_fail(FM_E_IO, "--state-file %s cannot be written: %s", path, strerror(bad));
}

fm_status fm__state_read(fm_route *r)
{
    const char *path = r->opt->state_file;
    if (!path) return FM_OK;
    FM_TRY(check_writable(path));
    FILE *f = fopen(path, "re");
    if (!f && errno == ENOENT) return FM_OK;
    if (!f) return fm_fail(FM_E_IO, "%s: %s", path, strerror(errno));
    const fm_status rc = fm__read_lines(r, f, path, take_line);
    fclose(f);
    return rc;
}

/* --- writing --------------------------------------------------------------- */

static void put_worker(FILE *f, const fm_route *r, const fm_worker *w)
{
    const char *key = w->api_key, *usual = r->opt->worker_api_key;
    if (w->leaving) return;
    if (w->joined)
        fprintf(f, "join %s %s\n", w->url, key && (!usual || strcmp(key, usual)) ? key : "");
    if (w->draining) fprintf(f, "drain %s\n", w->url);
}

/* The file has keys in it: for its owner's eyes. */
static int write_to(const fm_route *r, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE     *f  = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) return errno;
    for (const fm_worker *w = r->workers; w; w = w->next) put_worker(f, r, w);
    const int bad = fflush(f) != 0 || fsync(fd) != 0 ? errno : 0;
    return fclose(f) != 0 && !bad ? errno : bad;
}

void fm__state_write(const fm_route *r)
{
    const char *path = r->opt->state_file;
    char       *temporary;
    if (!path || asprintf(&temporary, "%s.tmp", path) < 0) return;
    int bad = write_to(r, temporary);
    if (!bad && rename(temporary, path) != 0) bad = errno;
    if (bad) fm__say(r, "%s: %s; a restart will not know of this change", path, strerror(bad));
    free(temporary);
}
