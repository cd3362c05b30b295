/* SPDX-License-Identifier: Apache-2.0 */
/* The file tier: pages come back as they went, and whatever happens to files or the
 * directory is a miss or the end of the tier, never another answer. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/tier/key_set.h"
#include "llm/tier/page_dir.h"
#include "llm/tier/prune.h"
#include "llm/tier/store.h"

enum { PAGE = 4, N_SLOT = 8, N_BUFFER = 8 };

static const fm_page_format format = {
    .model     = {.lo = 1, .hi = 0xabcdef0123456789u},
    .planes    = {.plane = {{FM_PLANE_LATENT, 96, FM_BF16, 5}, {FM_PLANE_SCALE, 1, FM_F32, 5}},
                  .n     = 2},
    .page_size = PAGE};

typedef struct {
    char      dir[64];
    char     *memory;
    fm_store *store;
} room;

static size_t image_bytes(void) { return fm_planes_page_bytes(&format.planes, PAGE); }

static fm_store *open_store(room *r, const fm_page_format *f, double limit, double faults)
{
    const fm_store_options o = {.dir        = r->dir,
                                .about      = "a model\n",
                                .format     = *f,
                                .limit      = limit,
                                .patience   = 2,
                                .n_thread   = 2,
                                .n_slot     = N_SLOT,
                                .n_buffer   = N_BUFFER,
                                .memory     = r->memory,
                                .fault_rate = faults};
    fm_store              *s = NULL;
    assert_int_equal(fm_store_open(&s, &o), FM_OK);
    return s;
}

static int set_up(void **state)
{
    room *r = calloc(1, sizeof *r);
    strcpy(r->dir, "/tmp/fathom-tier-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    r->memory = aligned_alloc(4096, (N_SLOT + N_BUFFER) * fm_page_file_bytes(&format));
    r->store  = open_store(r, &format, 0, 0);
    *state    = r;
    return 0;
}

static int tear_down(void **state)
{
    room *r = *state;
    char  line[256];
    fm_store_close(r->store);
    snprintf(line, sizeof line, "chmod -R u+w %s 2>/dev/null; rm -rf %s", r->dir, r->dir);
    assert_int_equal(system(line), 0);
    free(r->memory);
    free(r);
    return 0;
}

/* Page i of some text: its tokens, identity and bytes follow from i. */
static void tokens_of(int i, int32_t token[PAGE])
{
    for (int k = 0; k < PAGE; k++)
        token[k] = (int32_t)fm_rng_u32(7, (uint64_t)(i * PAGE + k)) & 0xffff;
}

static fm_page_hash key_of(int i)
{
    int32_t token[PAGE];
    tokens_of(i, token);
    return fm_page_hash_next(fm_page_hash_root(0), token, PAGE);
}

static char byte_of(int i, size_t k) { return (char)fm_rng_u32((uint64_t)i + 1, k); }

static int put(fm_store *s, int i)
{
    int32_t     token[PAGE];
    char *const image = fm_store_take_buffer(s);
    if (!image) return 0;
    for (size_t k = 0; k < image_bytes(); k++) image[k] = byte_of(i, k);
    tokens_of(i, token);
    fm_store_write(s, image, &(fm_store_page){key_of(i), token, i});
    return 1;
}

/* READY only with the right bytes. */
static fm_slot_state get(fm_store *s, int i, int slot)
{
    int32_t token[PAGE];
    tokens_of(i, token);
    fm_store_read(s, slot, &(fm_store_page){key_of(i), token, i});
    while (fm_store_slot(s, slot) == FM_SLOT_BUSY) fm_store_wait(s, 0.1);
    const fm_slot_state is = fm_store_slot(s, slot);
    for (size_t k = 0; is == FM_SLOT_READY && k < image_bytes(); k++)
        assert_int_equal(fm_store_slot_image(s, slot)[k], byte_of(i, k));
    fm_store_clear_slot(s, slot);
    return is;
}

static void path_of(const room *r, int i, char path[FM_PAGE_PATH])
{
    assert_true(fm_page_dir_page(path, r->dir, format.model, key_of(i)));
}

static void put_some(room *r, int n)
{
    for (int i = 0; i < n; i++) {
        while (!put(r->store, i)) fm_store_wait(r->store, 0.1);
    }
    fm_store_drain(r->store);
}

static void reopen(room *r)
{
    assert_int_equal(fm_store_close(r->store), 1);
    r->store = open_store(r, &format, 0, 0);
}

/* --- tests ----------------------------------------------------------------- */

static void pages_outlive_the_process(void **state)
{
    room *r = *state;
    put_some(r, 50);
    reopen(r);
    assert_int_equal(fm_store_get_stats(r->store).n_listed, 50);
    for (int i = 0; i < 50; i++) {
        assert_true(fm_store_has(r->store, key_of(i)));
        assert_int_equal(get(r->store, i, i % N_SLOT), FM_SLOT_READY);
    }
    assert_false(fm_store_has(r->store, key_of(50)));
    assert_int_equal(get(r->store, 50, 0), FM_SLOT_FAILED); /* gone: no error */
    assert_int_equal(fm_store_get_stats(r->store).n_gone, 1);
}

/* A page that stays where it is until a thread writes it: by its checksum, or not at all. */
static void pages_are_written_from_where_they_are(void **state)
{
    room   *r     = *state;
    char   *image = malloc(image_bytes());
    int32_t token[PAGE];
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < image_bytes(); k++) image[k] = byte_of(i, k);
        const fm_hash128 sum = fm_hash_bytes(image, image_bytes(), 0);
        image[image_bytes() / 2] ^= (char)i; /* the second is another's by then */
        tokens_of(i, token);
        fm_store_write(r->store, fm_store_take_buffer(r->store),
                       &(fm_store_page){key_of(i), token, i, &sum, image});
        fm_store_drain(r->store);
    }
    assert_int_equal(get(r->store, 0, 0), FM_SLOT_READY);
    assert_false(fm_store_has(r->store, key_of(1)));
    assert_int_equal(get(r->store, 1, 0), FM_SLOT_FAILED);
    free(image);
}

static void spoil(const char *path, long at, int truncates)
{
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    if (truncates) assert_int_equal(ftruncate(fileno(f), at), 0);
    fseek(f, at, SEEK_SET);
    const int c = truncates ? 0 : fgetc(f);
    fseek(f, at, SEEK_SET);
    if (!truncates) fputc(c ^ 1, f);
    fclose(f);
}

/* Any byte that matters: of the header, of the tokens, of each plane's bytes. */
static void an_altered_page_is_a_miss(void **state)
{
    room      *r    = *state;
    const long at[] = {0, 9, 17, 60, 150, 4096, 4096 + 1000, 4096 + (long)image_bytes() - 1};
    const int  n    = sizeof at / sizeof *at;
    char       path[FM_PAGE_PATH];
    put_some(r, n + 1);
    for (int i = 0; i < n; i++) {
        path_of(r, i, path);
        spoil(path, at[i], 0);
    }
    reopen(r);
    for (int i = 0; i < n; i++) {
        assert_int_equal(get(r->store, i, 0), FM_SLOT_FAILED);
        assert_false(fm_store_has(r->store, key_of(i))); /* it is not tried again */
    }
    assert_int_equal(get(r->store, n, 0), FM_SLOT_READY);
    const fm_store_stats st = fm_store_get_stats(r->store);
    assert_int_equal(st.n_altered + st.n_foreign, n);
    assert_true(st.is_on);
    assert_true(put(r->store, 0)); /* computed again: the file is replaced */
    fm_store_drain(r->store);
    assert_int_equal(get(r->store, 0, 0), FM_SLOT_READY);
}

static void a_short_or_unreadable_page_is_a_miss(void **state)
{
    room *r = *state;
    char  path[FM_PAGE_PATH];
    put_some(r, 5);
    path_of(r, 0, path);
    spoil(path, 5000, 1);
    path_of(r, 1, path);
    spoil(path, 0, 1);
    path_of(r, 2, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0777), 0); /* cannot be read by anybody */
    for (int i = 0; i < 3; i++) assert_int_equal(get(r->store, i, 0), FM_SLOT_FAILED);
    assert_int_equal(get(r->store, 3, 0), FM_SLOT_READY);
    assert_int_equal(fm_store_get_stats(r->store).n_short, 3 - 0);
    rmdir(path);
}

/* The same name, another model: in another folder, and refused when it is put in ours. */
static void another_model_is_a_miss(void **state)
{
    room          *r     = *state;
    fm_page_format other = format;
    char           from[FM_PAGE_PATH], to[FM_PAGE_PATH];
    put_some(r, 2);
    other.model.lo++; /* the folder's name does not differ: only the header does */
    fm_store_close(r->store);
    r->store = open_store(r, &other, 0, 0);
    assert_int_equal(get(r->store, 0, 0), FM_SLOT_FAILED);
    assert_int_equal(fm_store_get_stats(r->store).n_foreign, 1);
    fm_store_close(r->store);
    other.model.hi++;
    r->store = open_store(r, &other, 0, 0);
    assert_int_equal(fm_store_get_stats(r->store).n_listed, 0);
    reopen(r);
    path_of(r, 0, from);
    path_of(r, 1, to);
    assert_int_equal(rename(from, to), 0); /* another page under this name */
    assert_int_equal(get(r->store, 1, 0), FM_SLOT_FAILED);
    assert_int_equal(fm_store_get_stats(r->store).n_foreign, 1);
}

static void a_directory_that_vanishes_ends_the_tier(void **state)
{
    room *r = *state;
    char  line[256];
    put_some(r, 3);
    snprintf(line, sizeof line, "rm -rf %s", r->dir);
    assert_int_equal(system(line), 0);
    assert_int_equal(get(r->store, 1, 0), FM_SLOT_FAILED);
    assert_true(fm_store_is_on(r->store));
    assert_true(put(r->store, 4));
    fm_store_drain(r->store);
    assert_false(fm_store_is_on(r->store));
    assert_false(fm_store_has(r->store, key_of(0)));
    assert_null(fm_store_take_buffer(r->store));
    assert_int_equal(get(r->store, 0, 0), FM_SLOT_FAILED);
}

/* A directory without write permission.  Permissions do not bind root, so root changes its user. */
static void forbid_writing(room *r)
{
    char line[256];
    snprintf(line, sizeof line, "chmod -R a=rX %s", r->dir);
    assert_int_equal(system(line), 0);
    if (getuid() == 0) assert_int_equal(seteuid(65534), 0);
}

static void allow_writing(void)
{
    if (getuid() == 0) assert_int_equal(seteuid(0), 0);
}

/* Before it was opened, and while it is in use. */
static void a_read_only_directory_serves_what_it_has(void **state)
{
    room *r = *state;
    put_some(r, 5);
    fm_store_close(r->store);
    forbid_writing(r);
    r->store = open_store(r, &format, 0, 0);
    assert_true(fm_store_is_on(r->store));
    assert_false(fm_store_can_write(r->store));
    assert_null(fm_store_take_buffer(r->store));
    for (int i = 0; i < 5; i++) assert_int_equal(get(r->store, i, i), FM_SLOT_READY);
    assert_true(fm_store_get_stats(r->store).is_on);
    fm_store_close(r->store);
    fm_page_format other = format;
    other.model.hi++; /* it has nothing of this model, which another process may add */
    r->store = open_store(r, &other, 0, 0);
    assert_true(fm_store_is_on(r->store));
    assert_false(fm_store_can_write(r->store));
    allow_writing();
}

static void a_directory_that_becomes_read_only_serves_what_it_has(void **state)
{
    room *r = *state;
    put_some(r, 5);
    fm_store_close(r->store);
    if (getuid() == 0) { /* permissions do not bind root: the writing threads change their user */
        char line[256];
        snprintf(line, sizeof line, "chown -R 65534:65534 %s", r->dir);
        assert_int_equal(system(line), 0);
        assert_int_equal(seteuid(65534), 0);
    }
    r->store = open_store(r, &format, 0, 0);
    assert_true(fm_store_can_write(r->store));
    allow_writing();
    forbid_writing(r);
    assert_true(put(r->store, 5));
    put(r->store, 6); /* perhaps before the first has failed */
    fm_store_drain(r->store);
    assert_true(fm_store_is_on(r->store));
    assert_false(fm_store_can_write(r->store));
    assert_true(fm_store_get_stats(r->store).n_failed > 0);
    assert_int_equal(fm_store_free_buffers(r->store), N_BUFFER);
    for (int i = 0; i < 5; i++) assert_int_equal(get(r->store, i, i), FM_SLOT_READY);
    allow_writing();
}

static void a_name_that_is_no_directory_is_no_error(void **state)
{
    room *r = *state;
    char  keep[64];
    fm_store_close(r->store);
    strcpy(keep, r->dir);
    strcpy(r->dir, "/dev/null/x");
    r->store = open_store(r, &format, 0, 0);
    assert_false(fm_store_is_on(r->store));
    strcpy(r->dir, keep);
}

/* A reader of a FIFO blocks in open() until a writer opens it, as with a file system whose server
 * is gone. */
static void a_directory_that_hangs_ends_the_tier(void **state)
{
    room   *r = *state;
    char    path[FM_PAGE_PATH];
    int32_t token[PAGE];
    put_some(r, 3);
    path_of(r, 0, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0666), 0);
    tokens_of(0, token);
    const double began = fm_now();
    fm_store_read(r->store, 0, &(fm_store_page){key_of(0), token, 0});
    while (fm_store_slot(r->store, 0) == FM_SLOT_BUSY) fm_store_wait(r->store, 0.1);
    assert_int_equal(fm_store_slot(r->store, 0), FM_SLOT_FAILED);
    assert_false(fm_store_is_on(r->store));
    assert_true(fm_now() - began < 8);
    const int fd = open(path, O_WRONLY | O_NONBLOCK); /* the server is back */
    assert_true(fd >= 0);
    close(fd);
}

static int n_files(const char *dir, const char *end)
{
    char line[256];
    int  n = -1;
    snprintf(line, sizeof line, "find %s -name '*%s' -type f | wc -l", dir, end);
    FILE *f = popen(line, "r");
    assert_int_equal(fscanf(f, "%d", &n), 1);
    pclose(f);
    return n;
}

/* Killed at any time: what is there is whole, and only temporary files are left over. */
static void a_killed_process_leaves_whole_pages(void **state)
{
    room *r = *state;
    fm_store_close(r->store);
    for (int round = 0; round < 8; round++) {
        const pid_t child = fork();
        if (child == 0) {
            r->store = open_store(r, &format, 0, 0);
            for (int i = 0;; i++) put(r->store, i % 1000);
        }
        usleep(20000 + 7000 * (useconds_t)round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    r->store = open_store(r, &format, 0, 0);
    int n    = 0;
    for (int i = 0; i < 1000; i++) {
        if (!fm_store_has(r->store, key_of(i))) continue;
        assert_int_equal(get(r->store, i, 0), FM_SLOT_READY);
        n++;
    }
    assert_true(n > 0 && n == n_files(r->dir, ".page"));
}

/* Writers and readers of the same pages at once: a reader that finds a page finds it complete. */
static void processes_share_a_directory(void **state)
{
    room *r = *state;
    pid_t child[3];
    fm_store_close(r->store);
    for (int c = 0; c < 3; c++) {
        if ((child[c] = fork()) != 0) continue;
        r->store = open_store(r, &format, 0, 0);
        int bad  = 0;
        for (int i = 0; i < 600; i++) {
            while (!put(r->store, (i * 7 + c * 13) % 100)) fm_store_wait(r->store, 0.1);
            const int k = (i * 11 + c) % 100;
            if (fm_store_has(r->store, key_of(k)))
                bad += get(r->store, k, i % N_SLOT) != FM_SLOT_READY;
        }
        fm_store_drain(r->store);
        bad += fm_store_get_stats(r->store).n_failed > 0 || !fm_store_is_on(r->store);
        _exit(bad != 0);
    }
    for (int c = 0; c < 3; c++) {
        int is = -1;
        waitpid(child[c], &is, 0);
        assert_int_equal(is, 0);
    }
    r->store = open_store(r, &format, 0, 0);
    assert_int_equal(fm_store_get_stats(r->store).n_listed, 100);
    assert_int_equal(n_files(r->dir, ".tmp"), 0);
}

static void open_with_room_for(room *r, int n)
{
    fm_store_close(r->store);
    r->store = open_store(r, &format, n * (double)fm_page_file_bytes(&format), 0);
    for (int i = 0; i < 200 && n_files(r->dir, ".page") > n * 9 / 10; i++) usleep(20000);
    assert_int_equal(n_files(r->dir, ".page"), n * 9 / 10);
}

/* Of pages used together, those deep in their text. */
static void the_least_used_pages_go_first(void **state)
{
    room *r = *state;
    put_some(r, 40);
    sleep(1); /* times are in whole seconds, less the depth */
    for (int i = 0; i < 40; i++)
        if (i % 4 == 0) assert_int_equal(get(r->store, i, 0), FM_SLOT_READY);
    open_with_room_for(r, 20); /* 18 are left: 10 that were read, then the first of the others */
    for (int i = 0; i < 40; i++)
        assert_int_equal(fm_store_has(r->store, key_of(i)), i % 4 == 0 || i < 11);
}

/* Faults in every call: right bytes or a miss, and every slot and buffer comes back. */
static void faults_change_no_byte(void **state)
{
    room *r = *state;
    fm_store_close(r->store);
    r->store    = open_store(r, &format, 0, 0.1);
    int n_ready = 0;
    for (int i = 0; i < 10000; i++) {
        const int page = (int)(fm_rng_u32(3, (uint64_t)i) % 200);
        if (i % 2)
            while (!put(r->store, page)) fm_store_wait(r->store, 0.1);
        else if (fm_store_has(r->store, key_of(page)))
            n_ready += get(r->store, page, i % N_SLOT) == FM_SLOT_READY;
    }
    fm_store_drain(r->store);
    assert_true(n_ready > 500);
    const fm_store_stats st = fm_store_get_stats(r->store);
    assert_true(st.n_failed > 100 && st.n_altered > 10 && st.n_short > 10 && st.n_unreadable > 10);
    assert_int_equal(st.n_queued, 0);
    char *buffer[N_BUFFER + 1];
    for (int i = 0; i < N_BUFFER; i++) assert_non_null(buffer[i] = fm_store_take_buffer(r->store));
    assert_null(fm_store_take_buffer(r->store));
}

static int count_one(void *n, const fm_stored_page *p)
{
    *(int *)n += p->bytes > 0;
    return 0;
}

/* Listing says that it failed, and pruning counts as removed what is gone, whichever calls fail. */
static void faults_reach_listing_and_pruning(void **state)
{
    enum { N = 60, ROUNDS = 60 };
    room     *r   = *state;
    fm_disk   all = {.rate = 1, .seed = 1};
    char      path[FM_PAGE_PATH];
    int       n_bad = 0, n_whole = 0, n_left = N;
    const int most = (int)fm_page_file_bytes(&format);
    put_some(r, N);
    path_of(r, 0, path);
    assert_int_equal(fm_disk_remove(&all, path), EIO);
    assert_int_equal(n_files(r->dir, ".page"), N);
    for (int i = 0; i < ROUNDS; i++) {
        fm_disk                d    = {.rate = 0.002, .seed = (uint64_t)i};
        const double           left = (double)most * (N - i);
        const fm_prune_options o    = {.limit = left, .down_to = left};
        int                    seen = 0;
        fm_pruned              sum;
        const int              bad = fm_page_dir_walk(&d, r->dir, count_one, &seen);
        assert_true(seen <= n_left && (bad == EIO || bad == 0));
        if (!d.n_fault) assert_true(!bad && seen == n_left);
        n_bad += bad != 0;
        n_whole += !d.n_fault;
        fm_prune(&d, r->dir, &o, &sum);
        n_left -= (int)sum.n_removed;
        assert_int_equal(n_files(r->dir, ".page"), n_left);
    }
    assert_true(n_bad > 5 && n_whole > 5 && n_left < N / 2);
}

/* A store that keeps a limit while calls fail: the same answers, and the limit is kept in the end.
 */
static void faults_change_no_byte_while_pruning(void **state)
{
    enum { LIMIT = 40, N = 400 };
    room *r = *state;
    fm_store_close(r->store);
    r->store = open_store(r, &format, LIMIT * (double)fm_page_file_bytes(&format), 0.001);
    for (int i = 0; i < 3000; i++) {
        const int page = (int)(fm_rng_u32(11, (uint64_t)i) % N);
        if (i % 2)
            while (!put(r->store, page)) fm_store_wait(r->store, 0.1);
        else if (fm_store_has(r->store, key_of(page)))
            get(r->store, page, i % N_SLOT);
    }
    fm_store_drain(r->store);
    const fm_store_stats st = fm_store_get_stats(r->store);
    assert_true(st.n_pruned > 0 && st.n_fault > 0);
    for (int i = 0; i < 2; i++) { /* the first has pruned by the time it is closed */
        fm_store_close(r->store);
        r->store = open_store(r, &format, LIMIT * (double)fm_page_file_bytes(&format), 0);
    }
    assert_true(n_files(r->dir, ".page") <= LIMIT);
}

/* A scan reads names alone: 10 GB of pages of the built-in r1-mini are 46,000 names. */
static void ten_gigabytes_are_listed_at_once(void **state)
{
    enum { N = 46000, PAGE_BYTES = 225280 };
    room *r = *state;
    char  path[FM_PAGE_PATH];
    fm_store_close(r->store);
    for (int i = 0; i < FM_PAGE_FOLDERS; i++) {
        assert_true(fm_page_dir_folder(path, r->dir, format.model, i));
        mkdir(path, 0777);
    }
    for (int i = 0; i < N; i++) {
        path_of(r, i, path);
        const int fd = open(path, O_CREAT | O_WRONLY, 0666);
        assert_true(fd >= 0);
        close(fd);
    }
    r->store                = open_store(r, &format, 0, 0);
    const fm_store_stats st = fm_store_get_stats(r->store);
    assert_int_equal(st.n_listed, N);
    assert_true(st.scan_seconds < 2);
    assert_true((double)st.index_bytes < 0.01 * N * PAGE_BYTES);
}

static void a_set_of_keys_is_a_set(void **state)
{
    (void)state;
    enum { N = 5000 };
    fm_key_set  s = {0};
    static char is_in[N];
    for (int i = 0; i < 60000; i++) {
        const int          k   = (int)(fm_rng_u32(5, (uint64_t)i) % N);
        const fm_page_hash key = key_of(k);
        if (fm_rng_u32(6, (uint64_t)i) % 2)
            assert_true(fm_key_set_add(&s, key));
        else
            fm_key_set_remove(&s, key);
        is_in[k] = fm_rng_u32(6, (uint64_t)i) % 2;
    }
    size_t n = 0;
    for (int k = 0; k < N; k++) {
        assert_int_equal(fm_key_set_has(&s, key_of(k)), is_in[k]);
        n += (size_t)is_in[k];
    }
    assert_int_equal(s.n, n);
    fm_key_set_fini(&s);
}

int main(void)
{
#define IN_ROOM(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_ROOM(pages_outlive_the_process),
        IN_ROOM(pages_are_written_from_where_they_are),
        IN_ROOM(an_altered_page_is_a_miss),
        IN_ROOM(a_short_or_unreadable_page_is_a_miss),
        IN_ROOM(another_model_is_a_miss),
        IN_ROOM(a_directory_that_vanishes_ends_the_tier),
        IN_ROOM(a_read_only_directory_serves_what_it_has),
        IN_ROOM(a_directory_that_becomes_read_only_serves_what_it_has),
        IN_ROOM(a_name_that_is_no_directory_is_no_error),
        IN_ROOM(a_directory_that_hangs_ends_the_tier),
        IN_ROOM(a_killed_process_leaves_whole_pages),
        IN_ROOM(processes_share_a_directory),
        IN_ROOM(the_least_used_pages_go_first),
        IN_ROOM(faults_change_no_byte),
        IN_ROOM(faults_reach_listing_and_pruning),
        IN_ROOM(faults_change_no_byte_while_pruning),
        IN_ROOM(ten_gigabytes_are_listed_at_once),
        cmocka_unit_test(a_set_of_keys_is_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
