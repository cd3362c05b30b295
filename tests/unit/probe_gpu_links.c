/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks measure links between GPUs, and what is said where none do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "probe/gpu_links.h"

enum { N = 4 };

/* Four ranks on one machine with a GPU each. */
static void fill(fm_gpu_seat *seat)
{
    for (int i = 0; i < N; i++) {
        seat[i] = (fm_gpu_seat){.has_gpu = 1};
        snprintf(seat[i].pci, sizeof seat[i].pci, "0000:0%d:00.0", i);
    }
}

static void chosen(const fm_gpu_seat *seat, const char *want, const char *words)
{
    char is_member[N], why[240];
    int  n = 0, n_want = 0;
    n = fm_gpu_links_choose(seat, N, is_member, why, sizeof why);
    for (int i = 0; i < N; i++) {
        assert_int_equal(is_member[i], want[i] == '1');
        n_want += want[i] == '1';
    }
    assert_int_equal(n, n_want);
    assert_string_equal(why, words);
}

static void ranks_with_a_gpu_of_their_own_take_part(void **state)
{
    (void)state;
    fm_gpu_seat seat[N];
    fill(seat);
    chosen(seat, "1111", "");
    seat[1].has_gpu = 0;
    chosen(seat, "1011", "");
    strcpy(seat[3].pci, seat[2].pci); /* the third takes part for both */
    chosen(seat, "1010", "");
    seat[3].machine = 3; /* the same address on another machine is another GPU */
    chosen(seat, "1011", "");
}

static void few_gpus_need_no_words(void **state)
{
    (void)state;
    fm_gpu_seat seat[N] = {{0}};
    chosen(seat, "0000", "");
    seat[2].has_gpu = 1;
    chosen(seat, "0000", "");
}

static void one_gpu_for_all(void **state)
{
    (void)state;
    fm_gpu_seat seat[N];
    fill(seat);
    for (int i = 0; i < N; i++) strcpy(seat[i].pci, "0000:1B:00.0");
    chosen(seat, "0000", "ranks 0 and 1 share a GPU");
    for (int i = 0; i < N; i++) seat[i].has_host_id = 1; /* NCCL takes them for four hosts */
    chosen(seat, "1111", "");
    for (int i = 0; i < N; i++) seat[i].pci[0] = 0; /* not known */
    chosen(seat, "1111", "");
}

static void all_must_have_nccl(void **state)
{
    (void)state;
    fm_gpu_seat seat[N];
    fill(seat);
    strcpy(seat[2].no_nccl, "no such library");
    chosen(seat, "0000", "rank 2 cannot use NCCL: no such library");
    seat[2].has_gpu = 0; /* it need not have it */
    chosen(seat, "1101", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_with_a_gpu_of_their_own_take_part),
        cmocka_unit_test(few_gpus_need_no_words),
        cmocka_unit_test(one_gpu_for_all),
        cmocka_unit_test(all_must_have_nccl),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
