/* SPDX-License-Identifier: Apache-2.0 */
/* The file tier of the KV cache alone: fills a directory with pages, lists it as a process does
 * that starts, and reads pages back as a load does.
 *
 *     bench_store DIR GB [LAYERS [THREADS]]
 *
 * A page has 16 tokens of MLA's latents: 12 layers are the built-in r1-mini, 27 V2-Lite, 61 R1.
 * As root the page cache is dropped before the first listing and the first reading.  Pages that
 * are there from an earlier run are not written again. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/tier/store.h"

enum { N_SLOT = 64, N_BUFFER = 64, TOKENS = 16, MOST_READ = 8192 };

typedef struct {
    fm_store_options o;
    fm_store        *store;
    int              n;
    double           page_bytes;
} job;

static int32_t *tokens_of(int i)
{
    static int32_t token[TOKENS];
    for (int k = 0; k < TOKENS; k++)
        token[k] = (int32_t)(fm_rng_u32(1, (uint64_t)i * TOKENS + (uint64_t)k) >> 8);
    return token;
}

static fm_store_page page_of(int i)
{
    int32_t *token = tokens_of(i);
    return (fm_store_page){fm_page_hash_next(fm_page_hash_root(0), token, TOKENS), token, 0};
}

static int open_store(job *j)
{
    if (fm_store_open(&j->store, &j->o) == FM_OK && fm_store_is_on(j->store)) return 1;
    fprintf(stderr, "bench_store: %s cannot be used\n", j->o.dir);
    return 0;
}

/* 0: this process may not. */
static int drop_caches(void)
{
    sync();
    const int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    const int ok = fd >= 0 && write(fd, "3", 1) == 1;
    if (fd >= 0) close(fd);
    return ok;
}

static void show(const char *what, int n, double seconds, const job *j)
{
    printf("%-34s %7d pages %8.2f s %8.0f MB/s\n", what, n, seconds,
           n * j->page_bytes / seconds * 1e-6);
    fflush(stdout);
}

static void fill(job *j)
{
    const size_t bytes = (size_t)j->page_bytes - FM_PAGE_FILE_BLOCK;
    char        *noise = malloc(bytes);
    for (size_t k = 0; k < bytes; k++) noise[k] = (char)fm_rng_u32(2, k);
    const double began = fm_now();
    for (int i = 0; i < j->n; i++) {
        const fm_store_page p     = page_of(i);
        char               *image = NULL;
        while (fm_store_is_on(j->store) && !(image = fm_store_take_buffer(j->store)))
            fm_store_wait(j->store, 0.1);
        if (!image) break;
        memcpy(image, noise, bytes);
        memcpy(image, &i, sizeof i);
        fm_store_write(j->store, image, &p);
    }
    fm_store_drain(j->store);
    sync();
    show("written, synchronised", (int)fm_store_get_stats(j->store).n_written, fm_now() - began, j);
    free(noise);
}

static int list_again(job *j, const char *how)
{
    fm_store_close(j->store);
    const double began = fm_now();
    if (!open_store(j)) return 0;
    const fm_store_stats s = fm_store_get_stats(j->store);
    printf("%-34s %7lld pages %8.3f s; index %.2f MB, %.4f %% of the pages\n", how,
           (long long)s.n_listed, fm_now() - began, (double)s.index_bytes * 1e-6,
           100 * (double)s.index_bytes / ((double)s.n_listed * j->page_bytes));
    fflush(stdout);
    return 1;
}

/* As loads do it: all slots under way. */
static void read_back(job *j, const char *how)
{
    const int    n       = j->n < MOST_READ ? j->n : MOST_READ;
    const double began   = fm_now();
    int          n_ready = 0, asked = 0;
    for (int i = 0; i < n; i++) {
        for (; asked < n && asked < i + N_SLOT; asked++) {
            const fm_store_page p = page_of(asked);
            fm_store_read(j->store, asked % N_SLOT, &p);
        }
        while (fm_store_slot(j->store, i % N_SLOT) == FM_SLOT_BUSY) fm_store_wait(j->store, 0.1);
        n_ready += fm_store_slot(j->store, i % N_SLOT) == FM_SLOT_READY;
        fm_store_clear_slot(j->store, i % N_SLOT);
    }
    show(how, n_ready, fm_now() - began, j);
}

static int prepare(job *j, int argc, char **argv)
{
    const double gb     = argc > 2 ? atof(argv[2]) : 0;
    const int    layers = argc > 3 ? atoi(argv[3]) : 12;
    if (!(gb > 0) || layers < 1) {
        fprintf(stderr, "usage: bench_store DIR GB [LAYERS [THREADS]]\n");
        return 0;
    }
    j->o = (fm_store_options){
        .dir      = argv[1],
        .about    = "bench_store\n",
        .format   = {.model     = {.lo = 1, .hi = (uint64_t)layers},
                     .planes    = {.plane = {{FM_PLANE_LATENT, 576, FM_BF16, layers}}, .n = 1},
                     .page_size = TOKENS},
        .n_thread = argc > 4 ? atoi(argv[4]) : 0,
        .n_slot   = N_SLOT,
        .n_buffer = N_BUFFER};
    j->page_bytes = (double)fm_page_file_bytes(&j->o.format);
    j->n          = (int)(gb * 1e9 / j->page_bytes) + 1;
    j->o.memory   = aligned_alloc(FM_PAGE_FILE_BLOCK, (N_SLOT + N_BUFFER) * (size_t)j->page_bytes);
    return j->o.memory && open_store(j);
}

int main(int argc, char **argv)
{
    job j = {0};
    if (!prepare(&j, argc, argv)) return 2;
    printf("%d pages of %.0f bytes\n", j.n, j.page_bytes);
    if (fm_store_get_stats(j.store).n_listed < j.n) fill(&j);
    const int is_cold = drop_caches();
    if (!list_again(&j, is_cold ? "start, nothing in memory" : "start")) return 1;
    if (!list_again(&j, "start again")) return 1;
    if (is_cold) drop_caches();
    read_back(&j, is_cold ? "read, nothing in memory" : "read");
    read_back(&j, "read again");
    fm_store_close(j.store);
    free(j.o.memory);
    return 0;
}
