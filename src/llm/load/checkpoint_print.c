/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "llm/load/checkpoint_print.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "llm/load/safetensors.h"

enum {
    PIECE_BYTES  = 1 << 20, /* read and hashed at once */
    SAMPLE_BYTES = 256,
    LENGTH_BYTES = 8,  /* of a safetensors header, before it */
    THREADS      = 16, /* requests that a disk has at a time */
};

/* The hash of each piece goes where it was, so that threads may take them in any order. */
typedef struct {
    int        fd;
    uint64_t   at, n;
    fm_hash128 sum;
} piece;

typedef struct {
    char    *path; /* owned */
    int      fd;
    uint64_t bytes;
} content_file;

typedef struct {
    content_file *file; /* [n_file] ordered by name */
    int           n_file;
    uint64_t      bytes; /* of all */
    piece        *piece;
    size_t        n, cap;
    atomic_size_t next;
    atomic_int    bad; /* an errno value */
} content;

/* --- which bytes ----------------------------------------------------------- */

static fm_status add_piece(content *c, int fd, uint64_t at, uint64_t n)
{
    if (c->n == c->cap) {
        const size_t cap  = c->cap ? 2 * c->cap : 1024;
        piece       *more = realloc(c->piece, cap * sizeof *more);
        if (!more) return fm_fail(FM_E_OOM, "pieces of the checkpoint");
        c->piece = more;
        c->cap   = cap;
    }
    c->piece[c->n++] = (piece){.fd = fd, .at = at, .n = n};
    return FM_OK;
}

static fm_status add_range(content *c, int fd, uint64_t at, uint64_t n)
{
    for (uint64_t done = 0; done < n; done += PIECE_BYTES)
        FM_TRY(add_piece(c, fd, at + done, n - done < PIECE_BYTES ? n - done : PIECE_BYTES));
    return FM_OK;
}

static fm_status add_samples(content *c, int fd, uint64_t at, uint64_t n)
{
    if (n <= 3 * SAMPLE_BYTES) return add_range(c, fd, at, n);
    FM_TRY(add_piece(c, fd, at, SAMPLE_BYTES));
    FM_TRY(add_piece(c, fd, at + (n - SAMPLE_BYTES) / 2, SAMPLE_BYTES));
    return add_piece(c, fd, at + n - SAMPLE_BYTES, SAMPLE_BYTES);
}

static fm_status add_tensors(content *c, const content_file *f, const fm_safetensors_file *s)
{
    const unsigned char *data   = (const unsigned char *)s->map.data;
    uint64_t             header = 0;
    for (int i = LENGTH_BYTES; i > 0; i--) header = header << 8 | data[i - 1];
    const uint64_t data_at = LENGTH_BYTES + header;
    FM_TRY(add_range(c, f->fd, 0, data_at));
    for (int32_t i = 0; i < s->n_entry; i++)
        FM_TRY(add_samples(c, f->fd, data_at + s->entry[i].begin,
                           s->entry[i].end - s->entry[i].begin));
    return FM_OK;
}

/* The index, and a file beside the checkpoint that is no safetensors file, are hashed as a whole.
 */
static fm_status add_sampled(content *c, const content_file *f)
{
    fm_safetensors_file *s = NULL;
    if (fm_safetensors_open(&s, f->path) != FM_OK) return add_range(c, f->fd, 0, f->bytes);
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead behind a sample */
    const fm_status rc = add_tensors(c, f, s);
    fm_safetensors_close(s);
    return rc;
}

static fm_status add_pieces(content *c, uint64_t whole_bytes)
{
    for (int i = 0; i < c->n_file; i++)
        FM_TRY(c->bytes <= whole_bytes ? add_range(c, c->file[i].fd, 0, c->file[i].bytes)
                                       : add_sampled(c, &c->file[i]));
    return FM_OK;
}

/* --- hashing --------------------------------------------------------------- */

static int read_piece(const piece *p, char *to)
{
    for (uint64_t at = 0; at < p->n;) {
        const ssize_t got = pread(p->fd, to + at, p->n - at, (off_t)(p->at + at));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 ? errno : EIO; /* it has become shorter */
        at += (uint64_t)got;
    }
    return 0;
}

static void *hash_pieces(void *ctx)
{
    content *c    = ctx;
    char    *room = malloc(PIECE_BYTES);
    if (!room) c->bad = ENOMEM;
    for (size_t i; !c->bad && (i = c->next++) < c->n;) {
        const int bad = read_piece(&c->piece[i], room);
        if (bad) c->bad = bad;
        c->piece[i].sum = fm_hash_bytes(room, bad ? 0 : c->piece[i].n, 0);
    }
    free(room);
    return NULL;
}

/* This thread works as well, so that it needs no other. */
static int hash_all(content *c)
{
    pthread_t thread[THREADS];
    int       n = 0;
    while (n < THREADS - 1 && (size_t)n + 1 < c->n &&
           pthread_create(&thread[n], NULL, hash_pieces, c) == 0)
        n++;
    hash_pieces(c);
    while (n > 0) pthread_join(thread[--n], NULL);
    return c->bad;
}

static fm_hash128 mix(fm_hash128 sum, const void *bytes, size_t n)
{
    const fm_hash128 both[2] = {sum, fm_hash_bytes(bytes, n, 0)};
    return fm_hash_bytes(both, sizeof both, 0);
}

static fm_hash128 sum_up(const content *c)
{
    fm_hash128 sum = {0, 0};
    for (int i = 0; i < c->n_file; i++) {
        const char *name = strrchr(c->file[i].path, '/') + 1;
        sum              = mix(sum, name, strlen(name));
        sum              = mix(sum, &c->file[i].bytes, sizeof c->file[i].bytes);
    }
    for (size_t i = 0; i < c->n; i++) sum = mix(sum, &c->piece[i].sum, sizeof c->piece[i].sum);
    return sum;
}

/* --- files ----------------------------------------------------------------- */

static int ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && !strcmp(name + n - k, end);
}

static int is_content(const struct dirent *f)
{
    return ends_in(f->d_name, ".safetensors") || ends_in(f->d_name, ".safetensors.index.json");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static fm_status open_file(content *c, const char *dir, const char *name)
{
    content_file *f = &c->file[c->n_file];
    struct stat   st;
    if (asprintf(&f->path, "%s/%s", dir, name) < 0) return fm_fail(FM_E_OOM, "a path");
    c->n_file++;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return fm_fail(FM_E_IO, "%s: %s", f->path, strerror(errno));
    f->bytes = (uint64_t)st.st_size;
    c->bytes += f->bytes;
    return FM_OK;
}

static fm_status open_files(content *c, const char *dir)
{
    struct dirent **name = NULL;
    const int       n    = scandir(dir, &name, is_content, by_name);
    if (n < 0) return fm_fail(FM_E_IO, "%s: %s", dir, strerror(errno));
    fm_status rc = FM_OK;
    c->file      = calloc((size_t)n + 1, sizeof *c->file);
    if (!c->file) rc = fm_fail(FM_E_OOM, "files of the checkpoint");
    for (int i = 0; i < n; i++) {
        if (rc == FM_OK) rc = open_file(c, dir, name[i]->d_name);
        free(name[i]);
    }
    free(name);
    return rc;
}

static void close_files(content *c)
{
    for (int i = 0; i < c->n_file; i++) {
        if (c->file[i].fd >= 0) close(c->file[i].fd);
        free(c->file[i].path);
    }
    free(c->file);
    free(c->piece);
}

fm_status fm_checkpoint_print(fm_hash128 *out, const char *dir, uint64_t whole_bytes)
{
    content   c  = {0};
    fm_status rc = open_files(&c, dir);
    if (rc == FM_OK) rc = add_pieces(&c, whole_bytes);
    if (rc == FM_OK && hash_all(&c))
        rc = fm_fail(FM_E_IO, "%s: the checkpoint cannot be read: %s", dir, strerror(c.bad));
    if (rc == FM_OK) *out = sum_up(&c);
    close_files(&c);
    return rc;
}
