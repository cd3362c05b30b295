/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors files: what was written is read; anything else is refused with a
 * sentence that says what is wrong. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "chem/vectors/vectors.h"

enum { N = 7, M = 6 };

static char     dir[]       = "/tmp/fathom-vectors-XXXXXX", path[64];
static double   exponent[2] = {1.5, 0.2}, coef[2] = {0.7, 0.4}, other[2] = {1.5, 0.21};
static fm_shell shell[3];
static fm_basis basis = {.shell = shell, .n_shell = 3, .n_function = N};

static int make_basis(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        shell[i] = (fm_shell){.atom     = i,
                              .l        = i == 2 ? 2 : 0,
                              .is_pure  = 1,
                              .n_prim   = 2,
                              .n_contr  = 1,
                              .exponent = exponent,
                              .coef     = coef,
                              .first    = i};
    if (!mkdtemp(dir)) return -1;
    snprintf(path, sizeof path, "%s/x.movecs", dir);
    return 0;
}

static int remove_dir(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(dir);
}

static fm_vectors some(int n_set)
{
    fm_vectors v = {0};
    assert_int_equal(fm_vectors_init(&v, N, M, n_set), FM_OK);
    v.n_occ[0] = 3, v.n_occ[1] = 2;
    v.energy = -76.25, v.iteration = 9, v.is_converged = 1;
    v.fingerprint = fm_vectors_fingerprint(&basis);
    for (int s = 0; s < n_set; s++) {
        for (int i = 0; i < M; i++) v.eps[s][i] = i - 3.25 + s;
        for (int i = 0; i < N * M; i++) v.C[s][i] = 0.01 * i - s;
    }
    return v;
}

static void what_was_written_is_read(void **state)
{
    (void)state;
    for (int n_set = 1; n_set <= 2; n_set++) {
        fm_vectors v = some(n_set), r = {0};
        assert_int_equal(fm_vectors_write(&v, path, n_set == 1), FM_OK);
        assert_int_equal(fm_vectors_read(&r, path, &basis), FM_OK);
        assert_int_equal(r.n_set, n_set);
        assert_int_equal(r.n_orbital, M);
        assert_int_equal(r.n_occ[1], 2);
        assert_int_equal(r.iteration, 9);
        assert_true(r.energy == v.energy && r.is_converged);
        for (int s = 0; s < n_set; s++) {
            assert_memory_equal(r.C[s], v.C[s], N * M * sizeof(double));
            assert_memory_equal(r.eps[s], v.eps[s], M * sizeof(double));
        }
        fm_vectors_fini(&r);
        fm_vectors_fini(&v);
    }
}

static void expect_refusal(const char *words)
{
    fm_vectors r = {0};
    assert_int_equal(fm_vectors_read(&r, path, &basis), FM_E_FORMAT);
    if (!strstr(fm_why(), words)) fail_msg("\"%s\" does not say \"%s\"", fm_why(), words);
    assert_null(r.eps[0]);
}

static long file_size(void)
{
    FILE *f = fopen(path, "rb");
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    fclose(f);
    return n;
}

static void no_prefix_is_accepted(void **state)
{
    (void)state;
    fm_vectors v = some(1);
    fm_vectors r = {0};
    assert_int_equal(fm_vectors_write(&v, path, 0), FM_OK);
    for (long n = file_size() - 1; n >= 0; n -= n > 200 ? 13 : 1) {
        assert_int_equal(truncate(path, n), 0);
        assert_int_equal(fm_vectors_read(&r, path, &basis), FM_E_FORMAT);
    }
    expect_refusal("empty");
    fm_vectors_fini(&v);
}

static void a_changed_byte_is_noticed(void **state)
{
    (void)state;
    fm_vectors v = some(2);
    assert_int_equal(fm_vectors_write(&v, path, 0), FM_OK);
    const long n = file_size();
    for (long at = 20; at < n; at += 41) {
        FILE         *f = fopen(path, "r+b");
        unsigned char byte;
        fm_vectors    r = {0};
        fseek(f, at, SEEK_SET);
        byte = (unsigned char)fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(byte ^ 4, f);
        fclose(f);
        assert_int_equal(fm_vectors_read(&r, path, &basis), FM_E_FORMAT);
        f = fopen(path, "r+b");
        fseek(f, at, SEEK_SET);
        fputc(byte, f);
        fclose(f);
    }
    fm_vectors_fini(&v);
}

static void put_bytes(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    fwrite(bytes, 1, n, f);
    fclose(f);
}

static void strangers_are_named(void **state)
{
    (void)state;
    static const unsigned char fortran[] = {26,  0,   0,   0,   'b', 'a', 's', 'i', 's',
                                            's', 'u', 'm', ' ', 0,   1,   2,   3,   4,
                                            5,   6,   7,   8,   9,   10,  11,  12};
    put_bytes(fortran, sizeof fortran);
    expect_refusal("NWChem's binary movecs cannot be read");
    put_bytes("hello", 5);
    expect_refusal("is not a vectors file");
}

static void another_basis_is_refused(void **state)
{
    (void)state;
    fm_vectors v = some(1);
    assert_int_equal(fm_vectors_write(&v, path, 0), FM_OK);
    shell[1].exponent = other;
    expect_refusal("another basis that also has 7 functions");
    shell[1].exponent = exponent;
    basis.n_function  = N + 1;
    expect_refusal("vectors of 7 functions, this basis has 8");
    basis.n_function = N;
    shell[0].xyz[0]  = 3; /* a moved atom keeps its vectors */
    fm_vectors r     = {0};
    assert_int_equal(fm_vectors_read(&r, path, &basis), FM_OK);
    fm_vectors_fini(&r);
    fm_vectors_fini(&v);
}

static void a_missing_file_or_folder_is_said(void **state)
{
    (void)state;
    fm_vectors v = some(1), r = {0};
    assert_int_equal(fm_vectors_read(&r, "/nowhere/x.movecs", &basis), FM_E_IO);
    assert_int_equal(fm_vectors_write(&v, "/nowhere/x.movecs", 0), FM_E_IO);
    assert_non_null(strstr(fm_why(), "/nowhere/x.movecs"));
    fm_vectors_fini(&v);
}

/* A writer that is killed at any moment leaves a whole file. */
static void a_killed_writer_leaves_a_whole_file(void **state)
{
    (void)state;
    fm_vectors v = some(2);
    assert_int_equal(fm_vectors_write(&v, path, 0), FM_OK);
    for (int turn = 0; turn < 20; turn++) {
        const pid_t pid = fork();
        if (pid == 0)
            for (int i = 0;; i++) {
                v.iteration = i;
                if (fm_vectors_write(&v, path, 0) != FM_OK) _exit(1);
            }
        usleep((useconds_t)(500 + 777 * turn % 3000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        fm_vectors r = {0};
        assert_int_equal(fm_vectors_read(&r, path, &basis), FM_OK);
        fm_vectors_fini(&r);
    }
    char beside[80];
    snprintf(beside, sizeof beside, "%s.new", path);
    unlink(beside);
    fm_vectors_fini(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(no_prefix_is_accepted),
        cmocka_unit_test(a_changed_byte_is_noticed),
        cmocka_unit_test(strangers_are_named),
        cmocka_unit_test(another_basis_is_refused),
        cmocka_unit_test(a_missing_file_or_folder_is_said),
        cmocka_unit_test(a_killed_writer_leaves_a_whole_file),
    };
    return cmocka_run_group_tests(tests, make_basis, remove_dir);
}
