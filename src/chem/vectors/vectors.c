/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "chem/vectors/vectors.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include "chem/eigen/dense.h"

enum { VERSION = 1, MOST = 1 << 20 };

static const char magic[16] = "fathom vectors\n";

typedef struct {
    char     magic[16];
    uint32_t version;
    int32_t  n_function, n_orbital, n_set, n_occ[2], is_converged, iteration;
    uint64_t fingerprint;
    double   energy;
} header;

/* FNV-1a over 64-bit words: every number of a file counts. */
static uint64_t hash_words(uint64_t h, const void *p, size_t bytes)
{
    const unsigned char *at = p;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    return h;
}

static const uint64_t hash_start = 0xcbf29ce484222325u;

uint64_t fm_vectors_fingerprint(const fm_basis *b)
{
    uint64_t h = hash_start;
    for (int i = 0; i < b->n_shell; i++) {
        const fm_shell *s       = &b->shell[i];
        const int32_t   shape[] = {s->atom, s->l, s->is_pure, s->n_prim, s->n_contr, 0};
        h                       = hash_words(h, shape, sizeof shape);
        h                       = hash_words(h, s->exponent, (size_t)s->n_prim * sizeof(double));
        h = hash_words(h, s->coef, (size_t)(s->n_prim * s->n_contr) * sizeof(double));
    }
    return h;
}

fm_status fm_vectors_init(fm_vectors *v, int n_function, int n_orbital, int n_set)
{
    fm_vectors   made = {.n_function = n_function, .n_orbital = n_orbital, .n_set = n_set};
    const size_t m = (size_t)n_orbital, per_set = m * (size_t)n_function + m;
    double      *block = fm_dense_new(per_set * (size_t)n_set);
    if (!block) return fm_fail(FM_E_OOM, "%d orbitals of %d functions", n_orbital, n_function);
    for (int s = 0; s < n_set; s++) {
        made.eps[s] = block + (size_t)s * per_set;
        made.C[s]   = made.eps[s] + m;
    }
    *v = made;
    return FM_OK;
}

void fm_vectors_fini(fm_vectors *v)
{
    free(v->eps[0]); /* the block */
    *v = (fm_vectors){0};
}

static size_t body_bytes(const fm_vectors *v)
{
    const size_t m = (size_t)v->n_orbital;
    return (m * (size_t)v->n_function + m) * (size_t)v->n_set * sizeof(double);
}

/* --- writing --------------------------------------------------------------- */

static int put(FILE *f, const void *p, size_t bytes) { return fwrite(p, 1, bytes, f) == bytes; }

static int put_all(FILE *f, const fm_vectors *v)
{
    header h = {.version      = VERSION,
                .n_function   = v->n_function,
                .n_orbital    = v->n_orbital,
                .n_set        = v->n_set,
                .n_occ        = {v->n_occ[0], v->n_occ[1]},
                .is_converged = v->is_converged,
                .iteration    = v->iteration,
                .fingerprint  = v->fingerprint,
                .energy       = v->energy};
    memcpy(h.magic, magic, sizeof magic);
    const uint64_t sum = hash_words(hash_words(hash_start, &h, sizeof h), v->eps[0], body_bytes(v));
    return put(f, &h, sizeof h) && put(f, v->eps[0], body_bytes(v)) && put(f, &sum, sizeof sum);
}

fm_status fm_vectors_write(const fm_vectors *v, const char *path, int is_last)
{
    char beside[PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return fm_fail(FM_E_ARG, "the name of the vectors file is too long");
    FILE *f = fopen(beside, "wb");
    if (!f) return fm_fail(FM_E_IO, "vectors file %s: %s", beside, strerror(errno));
    int good = put_all(f, v) && fflush(f) == 0 && (!is_last || fsync(fileno(f)) == 0);
    good     = fclose(f) == 0 && good && rename(beside, path) == 0;
    if (good) return FM_OK;
    const int why = errno;
    unlink(beside);
    return fm_fail(FM_E_IO, "vectors file %s: %s", path, strerror(why));
}

/* --- reading --------------------------------------------------------------- */

static fm_status check_magic(const header *h, size_t got, const char *path)
{
    if (got >= sizeof magic && !memcmp(h->magic, magic, sizeof magic)) return FM_OK;
    if (got == 0) return fm_fail(FM_E_FORMAT, "%s: the vectors file is empty", path);
    return fm_fail(FM_E_FORMAT,
                   "%s is not a vectors file of fathom (NWChem's binary movecs cannot be read; "
                   "begin with `vectors input atomic`)",
                   path);
}

static fm_status check_header(const header *h, size_t got, const char *path)
{
    FM_TRY(check_magic(h, got, path));
    if (got < sizeof *h) return fm_fail(FM_E_FORMAT, "%s: cut short after %zu bytes", path, got);
    if (h->version != VERSION)
        return fm_fail(FM_E_FORMAT, "%s: vectors file of version %u, this program reads %d", path,
                       h->version, VERSION);
    if (h->n_function < 1 || h->n_function > MOST || h->n_orbital < 1 ||
        h->n_orbital > h->n_function || h->n_set < 1 || h->n_set > 2)
        return fm_fail(FM_E_FORMAT, "%s: damaged: impossible sizes", path);
    return FM_OK;
}

static fm_status check_basis(const header *h, const char *path, const fm_basis *b)
{
    if (h->n_function != b->n_function)
        return fm_fail(FM_E_FORMAT, "%s: vectors of %d functions, this basis has %d", path,
                       h->n_function, b->n_function);
    if (h->fingerprint != fm_vectors_fingerprint(b))
        return fm_fail(FM_E_FORMAT,
                       "%s: vectors of another basis that also has %d functions: exponents, "
                       "shells or their order differ",
                       path, h->n_function);
    return FM_OK;
}

static fm_status take_body(fm_vectors *v, const header *h, FILE *f, const char *path)
{
    uint64_t     sum = 0;
    const size_t n   = body_bytes(v);
    if (fread(v->eps[0], 1, n, f) != n || fread(&sum, 1, sizeof sum, f) != sizeof sum)
        return fm_fail(FM_E_FORMAT, "%s: cut short", path);
    if (fgetc(f) != EOF) return fm_fail(FM_E_FORMAT, "%s: bytes after the end", path);
    if (sum != hash_words(hash_words(hash_start, h, sizeof *h), v->eps[0], n))
        return fm_fail(FM_E_FORMAT, "%s: damaged: the checksum does not match", path);
    return FM_OK;
}

static fm_status take_all(fm_vectors *v, FILE *f, const char *path, const fm_basis *b)
{
    header h;
    FM_TRY(check_header(&h, fread(&h, 1, sizeof h, f), path));
    FM_TRY(check_basis(&h, path, b));
    FM_TRY(fm_vectors_init(v, h.n_function, h.n_orbital, h.n_set));
    v->n_occ[0] = h.n_occ[0], v->n_occ[1] = h.n_occ[1];
    v->is_converged = h.is_converged, v->iteration = h.iteration;
    v->fingerprint = h.fingerprint, v->energy = h.energy;
    return take_body(v, &h, f, path);
}

fm_status fm_vectors_read(fm_vectors *out, const char *path, const fm_basis *b)
{
    fm_vectors v = {0};
    FILE      *f = fopen(path, "rb");
    if (!f) return fm_fail(FM_E_IO, "vectors file %s: %s", path, strerror(errno));
    const fm_status rc = take_all(&v, f, path, b);
    fclose(f);
    if (rc == FM_OK)
        *out = v;
    else
        fm_vectors_fini(&v);
    return rc;
}

int fm_vectors_fit(const char *path, const fm_basis *b, int n_orbital)
{
    header h;
    FILE  *f = fopen(path, "rb");
    if (!f) return 0;
    const fm_status rc = check_header(&h, fread(&h, 1, sizeof h, f), path);
    fclose(f);
    return rc != FM_OK || (h.n_function == b->n_function && h.n_orbital >= n_orbital &&
                           h.fingerprint == fm_vectors_fingerprint(b));
}
