/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint of a checkpoint: every tensor counts, whole or by samples; place and date of the
 * files do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "llm/load/checkpoint_print.h"
#include "load_support.h"

enum { N_TENSOR = 40, BYTES = 8192, N_FILE = 2, SMALL = 64, ALL = 1 << 30 };

/* Two files of 40 tensors of 8 KiB and one small one each; byte `at` of tensor `which` differs. */
static fm_hash128 print_of(uint64_t whole_bytes, int which, size_t at)
{
    static unsigned char byte[BYTES];
    temp_dir             d;
    fm_hash128           print = {0, 0};
    temp_dir_make(&d);
    for (int f = 0, i = 0; f < N_FILE; f++) {
        st_writer w = {0};
        char      name[64];
        for (int k = 0; k < N_TENSOR; k++, i++) {
            memset(byte, i, sizeof byte);
            if (i == which) byte[at] ^= 0x80;
            snprintf(name, sizeof name, "model.layers.%d.weight", i);
            st_add(&w, name, "BF16", k ? "[64, 64]" : "[1, 32]", byte, k ? BYTES : SMALL);
        }
        snprintf(name, sizeof name, "model-%d.safetensors", f);
        st_save(&w, &d, name);
    }
    temp_text(&d, "config.json", "{}");
    if (fm_checkpoint_print(&print, d.path, whole_bytes) != FM_OK) fail_msg("%s", fm_why());
    temp_dir_remove(&d);
    return print;
}

static int differs(uint64_t whole_bytes, int which, size_t at)
{
    static fm_hash128 original[2]; /* by samples, whole */
    fm_hash128 *const want = &original[whole_bytes > 0];
    if (!want->lo) *want = print_of(whole_bytes, -1, 0);
    return !fm_hash_equal(print_of(whole_bytes, which, at), *want);
}

static void copies_have_the_same_print(void **state)
{
    (void)state;
    assert_false(differs(ALL, -1, 0));
    assert_false(differs(0, -1, 0));
}

static void any_byte_of_a_small_checkpoint_counts(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILE * N_TENSOR; i += 13)
        for (size_t at = i % N_TENSOR ? 1000 : 5; at < (i % N_TENSOR ? BYTES : SMALL); at += 3000)
            assert_true(differs(ALL, i, at));
}

/* Whichever tensor it is, and of a small one any byte. */
static void every_tensor_of_a_large_checkpoint_counts(void **state)
{
    (void)state;
    for (int i = 0; i < N_FILE * N_TENSOR; i++) {
        const size_t n = i % N_TENSOR ? BYTES : SMALL;
        assert_true(differs(0, i, 0));
        assert_true(differs(0, i, n / 2));
        assert_true(differs(0, i, n - 1));
    }
    assert_false(differs(0, 3, BYTES / 4)); /* between samples: why small ones are hashed whole */
}

static void a_file_that_is_no_checkpoint_is_hashed_as_it_is(void **state)
{
    temp_dir   d;
    fm_hash128 print[2];
    (void)state;
    temp_dir_make(&d);
    temp_text(&d, "a.safetensors", "not one");
    assert_int_equal(fm_checkpoint_print(&print[0], d.path, 0), FM_OK);
    temp_text(&d, "a.safetensors", "nor one");
    assert_int_equal(fm_checkpoint_print(&print[1], d.path, 0), FM_OK);
    assert_false(fm_hash_equal(print[0], print[1]));
    temp_text(&d, "model.safetensors.index.json", "{\"weight_map\": {}}");
    assert_int_equal(fm_checkpoint_print(&print[0], d.path, 0), FM_OK);
    assert_false(fm_hash_equal(print[0], print[1]));
    temp_dir_remove(&d);
    assert_int_equal(fm_checkpoint_print(&print[0], d.path, 0), FM_E_IO); /* it is gone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_have_the_same_print),
        cmocka_unit_test(any_byte_of_a_small_checkpoint_counts),
        cmocka_unit_test(every_tensor_of_a_large_checkpoint_counts),
        cmocka_unit_test(a_file_that_is_no_checkpoint_is_hashed_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
