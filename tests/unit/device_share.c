/* SPDX-License-Identifier: Apache-2.0 */
/* One block of memory and several processes: what the others see, what they
 * cannot do, and that nothing is left of it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/host_share.h"

enum { BYTES = (5 << 20) + 123 };

static uint32_t *numbers(const fm_host_share *s)
{
    return s->base;
}

static void made(fm_host_share *s, fm_host_ticket *t)
{
    if (fm_host_share_create(s, t, BYTES, "test block") != FM_OK) {
        print_message("%s\n", fm_why());
        skip();
    }
    for (uint32_t i = 0; i < BYTES / 4; i++) numbers(s)[i] = i * 2654435761u;
}

static int holds(const fm_host_share *s)
{
    for (uint32_t i = 0; i < BYTES / 4; i++)
        if (numbers(s)[i] != i * 2654435761u) return 0;
    return 1;
}

/* The status of a child that does `work` with the ticket. */
static int in_child(int (*work)(const fm_host_ticket *), const fm_host_ticket *t)
{
    int         status = 0;
    const pid_t pid    = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(work(t));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int reads(const fm_host_ticket *t)
{
    fm_host_share s = {0};
    if (fm_host_share_join(&s, t) != FM_OK) return 1;
    fm_host_share_settle(&s, 1);
    const int good = holds(&s) && s.bytes == BYTES && (uintptr_t)s.base % (2 << 20) == 0;
    fm_host_share_close(&s);
    return good ? 0 : 2;
}

static int writes(const fm_host_ticket *t)
{
    fm_host_share s = {0};
    if (fm_host_share_join(&s, t) != FM_OK) return 1;
    signal(SIGSEGV, SIG_DFL);
    numbers(&s)[0] = 1;
    return 0;
}

/* Not even by opening the file anew. */
static int tampers(const fm_host_ticket *t)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)t->pid, (int)t->fd);
    const int fd = open(path, O_RDWR);
    if (fd < 0) return 0;
    if (write(fd, "x", 1) > 0 || ftruncate(fd, 1) == 0 || ftruncate(fd, BYTES + 1) == 0) return 1;
    return mmap(NULL, BYTES, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? 0 : 2;
}

static void others_read_what_one_wrote(void **state)
{
    (void)state;
    fm_host_share  s;
    fm_host_ticket t;
    made(&s, &t);
    assert_int_equal(in_child(reads, &t), 0);
    fm_host_share_close(&s);
    fm_host_share_close(&s); /* twice is fine */
    fm_host_share_close(NULL);
}

static void nobody_else_writes(void **state)
{
    (void)state;
    fm_host_share  s;
    fm_host_ticket t;
    made(&s, &t);
    const int status = in_child(writes, &t);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    assert_int_equal(in_child(tampers, &t), 0);
    assert_true(holds(&s));
    fm_host_share_close(&s);
}

/* The maker may go first. */
static void pages_outlive_their_maker(void **state)
{
    (void)state;
    fm_host_share  mine = {0}, s;
    fm_host_ticket t;
    made(&s, &t);
    assert_int_equal(fm_host_share_join(&mine, &t), FM_OK);
    fm_host_share_settle(&s, 2);
    assert_true(holds(&s));
    fm_host_share_close(&s);
    fm_host_share_settle(&mine, 2);
    assert_true(holds(&mine));
    fm_host_share_close(&mine);
}

static void a_wrong_ticket_is_noticed(void **state)
{
    (void)state;
    fm_host_share  s, other = {0};
    fm_host_ticket t;
    made(&s, &t);
    fm_host_ticket wrong[] = {t, t, t, t, t, t};
    wrong[0].pid           = 0;
    wrong[1].pid           = -5;
    wrong[2].fd            = 1 << 20;
    wrong[3].inode++;
    wrong[4].bytes += 1 << 20;
    wrong[5].fd = STDIN_FILENO;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(fm_host_share_join(&other, &wrong[i]), FM_E_NOSUP);
        assert_null(other.base);
    }
    fm_host_share_settle(&s, 1);
    assert_int_equal(fm_host_share_join(&other, &t), FM_E_NOSUP); /* too late */
    fm_host_share_close(&s);
}

static void too_much_is_refused(void **state)
{
    (void)state;
    fm_host_share  s = {0};
    fm_host_ticket t;
    assert_int_equal(fm_host_share_create(&s, &t, (size_t)1 << 62, "all there is"), FM_E_NOSUP);
    assert_null(s.base);
}

static size_t shared_kb(void)
{
    char   line[128];
    size_t kb = 0;
    FILE  *f  = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Shmem: %zu kB", &kb) == 1) break;
    if (f) fclose(f);
    return kb;
}

static int dies(const fm_host_ticket *unused)
{
    fm_host_share  s;
    fm_host_ticket t;
    (void)unused;
    if (fm_host_share_create(&s, &t, (size_t)64 << 20, "doomed") != FM_OK) return 1;
    memset(s.base, 1, s.bytes);
    raise(SIGKILL);
    return 0;
}

static void a_killed_process_leaves_nothing(void **state)
{
    (void)state;
    const size_t before = shared_kb();
    assert_true(WIFSIGNALED(in_child(dies, NULL)));
    assert_true(shared_kb() < before + (32 << 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_read_what_one_wrote),
        cmocka_unit_test(nobody_else_writes),
        cmocka_unit_test(pages_outlive_their_maker),
        cmocka_unit_test(a_wrong_ticket_is_noticed),
        cmocka_unit_test(too_much_is_refused),
        cmocka_unit_test(a_killed_process_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
