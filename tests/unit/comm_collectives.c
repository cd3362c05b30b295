/* SPDX-License-Identifier: Apache-2.0 */
/* Every collective against a plain computation, over a wire that delays and
 * reorders: random lengths with zeros, 2 to 17 ranks, several jobs at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "comm_sim.h"

enum { LONGEST = 40000, ROOM = SIM_RANKS * LONGEST };

static _Alignas(8) float in[SIM_RANKS][ROOM], out[SIM_RANKS][ROOM], want[SIM_RANKS][ROOM];
static size_t count[SIM_RANKS][SIM_RANKS], back[SIM_RANKS][SIM_RANKS];

static void fill(int n_rank, size_t n, uint64_t key)
{
    for (int r = 0; r < n_rank; r++)
        for (size_t i = 0; i < n; i++)
            in[r][i] = ((float)(fm_rng_u32(key + (uint64_t)r, i) >> 8) - 0x1p23f) *
                       (float)(1 << fm_rng_u32(key, i) % 12) * 0x1p-20f;
}

/* The definition: the first power of two, then the rest. */
static float tree(int first, int n, size_t i)
{
    if (n == 1) return in[first][i];
    int half = 1;
    while (2 * half < n) half *= 2;
    return tree(first, half, i) + tree(first + half, n - half, i);
}

static void start(sim *s, fm_comm_job *job, int rank, fm_comm_call call)
{
    assert_int_equal(fm_comm_start(sim_group(s, rank), job, call), FM_OK);
}

/* Polls jobs in random order until all are done. */
static void run(sim *s, fm_comm_job *job, int n)
{
    int left = 0;
    for (int i = 0; i < n; i++) left += !job[i].is_done;
    for (long turns = 0; left; turns++) {
        fm_comm_job *j    = &job[sim_draw(s, (uint32_t)n)];
        int          done = 0;
        assert_true(turns < 10000000);
        if (j->is_done) continue;
        assert_int_equal(fm_comm_test(j, &done), FM_OK);
        left -= done;
    }
    assert_int_equal(sim_undelivered(s), 0);
}

static size_t draw_length(sim *s)
{
    static const size_t special[] = {0, 1, 2, 15, 16, 17, 4095, 4096, 4097, LONGEST};
    return sim_draw(s, 2) ? special[sim_draw(s, 10)] : sim_draw(s, LONGEST);
}

static void sums_follow_the_tree(sim *s, int n_rank)
{
    const size_t n = draw_length(s);
    fm_comm_job  job[SIM_RANKS];
    fill(n_rank, n, 7);
    for (int r = 0; r < n_rank; r++) memcpy(out[r], in[r], n * sizeof(float)), out[r][n] = 42;
    for (int r = 0; r < n_rank; r++) start(s, &job[r], r, fm_call_all_reduce_f32(out[r], n));
    run(s, job, n_rank);
    for (size_t i = 0; i < n; i++) want[0][i] = tree(0, n_rank, i);
    for (int r = 0; r < n_rank; r++) {
        assert_memory_equal(out[r], want[0], n * sizeof(float));
        assert_true(out[r][n] == 42);
    }
}

/* Doubles, in rooms of the floats: half as many fit. */
static double wide_leaf(int rank, size_t i)
{
    return (double)in[rank][i] * (1 + 0x1p-30 * (double)(i % 1000)) + 0x1p-40;
}

static double wide_tree(int first, int n, size_t i)
{
    if (n == 1) return wide_leaf(first, i);
    int half = 1;
    while (2 * half < n) half *= 2;
    return wide_tree(first, half, i) + wide_tree(first + half, n - half, i);
}

static void wide_sums_follow_the_tree(sim *s, int n_rank)
{
    const size_t n = draw_length(s);
    fm_comm_job  job[SIM_RANKS];
    fill(n_rank, n, 11);
    for (int r = 0; r < n_rank; r++) {
        double *x = (double *)out[r];
        for (size_t i = 0; i < n; i++) x[i] = wide_leaf(r, i);
        x[n] = 42;
        start(s, &job[r], r, fm_call_all_reduce_f64(x, n));
    }
    run(s, job, n_rank);
    for (int r = 0; r < n_rank; r++) {
        const double *x = (const double *)out[r];
        for (size_t i = 0; i < n; i++) assert_true(x[i] == wide_tree(0, n_rank, i));
        assert_true(x[n] == 42);
    }
}

static size_t draw_counts(sim *s, int n_rank, size_t *of)
{
    size_t all = 0;
    for (int i = 0; i < n_rank; i++) all += of[i] = draw_length(s) / (size_t)n_rank;
    return all;
}

static void gathers_in_rank_order(sim *s, int n_rank)
{
    const size_t n = draw_counts(s, n_rank, count[0]); /* bytes */
    fm_comm_job  job[SIM_RANKS];
    fill(n_rank, LONGEST, 9);
    size_t at = 0;
    for (int r = 0; r < n_rank; at += count[0][r++]) {
        memcpy((char *)want[0] + at, in[r], count[0][r]);
        const int   in_place = (int)sim_draw(s, 2);
        const void *src      = in_place ? (char *)out[r] + at : (char *)in[r];
        if (in_place) memcpy((char *)out[r] + at, in[r], count[0][r]);
        start(s, &job[r], r, fm_call_all_gather(out[r], src, count[0]));
    }
    run(s, job, n_rank);
    for (int r = 0; r < n_rank; r++) assert_memory_equal(out[r], want[0], n);
}

static void exchanges_real_counts(sim *s, int n_rank)
{
    fm_comm_job job[SIM_RANKS];
    size_t      n[SIM_RANKS] = {0};
    fill(n_rank, LONGEST, 10);
    for (int r = 0; r < n_rank; r++)
        for (int to = 0; to < n_rank; to++)
            back[to][r] = count[r][to] = sim_draw(s, 3) ? draw_length(s) / (size_t)n_rank : 0;
    for (int r = 0; r < n_rank; r++) { /* the definition: piece by piece */
        size_t at = 0;
        for (int to = 0; to < n_rank; at += count[r][to++]) {
            size_t place = 0;
            for (int i = 0; i < r; i++) place += back[to][i];
            memcpy((char *)want[to] + place, (char *)in[r] + at, count[r][to]);
            n[to] += count[r][to];
        }
    }
    for (int r = 0; r < n_rank; r++)
        start(s, &job[r], r, fm_call_all_to_all(out[r], back[r], in[r], count[r]));
    run(s, job, n_rank);
    for (int r = 0; r < n_rank; r++) assert_memory_equal(out[r], want[r], n[r]);
}

static void root_reaches_all(sim *s, int n_rank)
{
    const size_t n    = draw_length(s);
    const int    root = (int)sim_draw(s, (uint32_t)n_rank);
    fm_comm_job  job[SIM_RANKS];
    fill(n_rank, LONGEST / 4 + 1, 11);
    for (int r = 0; r < n_rank; r++) memcpy(out[r], in[r], n);
    for (int r = 0; r < n_rank; r++) start(s, &job[r], r, fm_call_broadcast(out[r], n, root));
    run(s, job, n_rank);
    for (int r = 0; r < n_rank; r++) assert_memory_equal(out[r], in[root], n);
}

/* Nobody may pass before the last has come. */
static void barrier_holds(sim *s, int n_rank)
{
    const int   late = (int)sim_draw(s, (uint32_t)n_rank);
    fm_comm_job job[SIM_RANKS];
    for (int r = 0; r < n_rank; r++)
        if (r != late) start(s, &job[r], r, fm_call_barrier());
    for (int turn = 0; turn < 200; turn++)
        for (int r = 0; r < n_rank; r++) {
            int done = 0;
            if (r == late) continue;
            assert_int_equal(fm_comm_test(&job[r], &done), FM_OK);
            assert_false(done);
        }
    start(s, &job[late], late, fm_call_barrier());
    run(s, job, n_rank);
}

static void messages_reach_their_tag(sim *s, int n_rank)
{
    const size_t n  = draw_length(s) / 2;
    const int    to = n_rank - 1;
    fm_comm_job  job[4];
    fill(1, LONGEST, 12);
    start(s, &job[0], 0, fm_call_send(in[0], n, to, 3));
    start(s, &job[1], 0, fm_call_send(in[0] + n / 4 + 1, n, to, FM_COMM_MAX_TAG));
    start(s, &job[2], to, fm_call_recv(out[1], n, 0, FM_COMM_MAX_TAG)); /* the later one first */
    start(s, &job[3], to, fm_call_recv(out[0], n, 0, 3));
    run(s, job, 4);
    assert_memory_equal(out[0], in[0], n);
    assert_memory_equal(out[1], in[0] + n / 4 + 1, n);
}

static void every_collective_on_any_ranks(void **state)
{
    (void)state;
    static void (*const each[])(sim *, int) = {
        sums_follow_the_tree, gathers_in_rank_order,    exchanges_real_counts,    root_reaches_all,
        barrier_holds,        messages_reach_their_tag, wide_sums_follow_the_tree};
    for (int n_rank = 2; n_rank <= SIM_RANKS; n_rank += n_rank < 9 ? 1 : 4) {
        const size_t scratch = n_rank % 2 ? 0 : 64 << 10; /* pieces, or one go */
        sim         *s       = sim_create(n_rank, (uint64_t)n_rank, scratch);
        for (int turn = 0; turn < 5; turn++)
            for (size_t k = 0; k < sizeof each / sizeof *each; k++) each[k](s, n_rank);
        sim_destroy(s);
    }
}

static void jobs_side_by_side(void **state)
{
    (void)state;
    enum { N = 5 };
    sim        *s = sim_create(N, 99, 0);
    fm_comm_job job[N * 3];
    for (int turn = 0; turn < 20; turn++) {
        const size_t n = 1 + draw_length(s) / 2, bytes = 1 + draw_length(s);
        fill(N, ROOM / 8, (uint64_t)turn + 100);
        for (int r = 0; r < N; r++) {
            memcpy(out[r], in[r], 2 * LONGEST * sizeof(float));
            memcpy(want[r], in[r], LONGEST);
            start(s, &job[r], r, fm_call_all_reduce_f32(out[r], n));
            start(s, &job[N + r], r, fm_call_all_reduce_f32(out[r] + LONGEST, n));
            start(s, &job[2 * N + r], r, fm_call_broadcast(want[r], bytes, turn % N));
        }
        run(s, job, 3 * N);
        for (int r = 0; r < N; r++) {
            assert_memory_equal(want[r], in[turn % N], bytes);
            for (size_t i = 0; i < n; i++) {
                assert_true(out[r][i] == tree(0, N, i));
                assert_true(out[r][LONGEST + i] == tree(0, N, LONGEST + i));
            }
        }
    }
    sim_destroy(s);
}

static void only_so_many_in_flight(void **state)
{
    (void)state;
    sim        *s = sim_create(2, 5, 0);
    fm_comm_job job[2 * FM_COMM_IN_FLIGHT], more;
    for (int i = 0; i < FM_COMM_IN_FLIGHT; i++) start(s, &job[i], 0, fm_call_barrier());
    assert_int_equal(fm_comm_start(sim_group(s, 0), &more, fm_call_barrier()), FM_E_FULL);
    for (int i = 0; i < FM_COMM_IN_FLIGHT; i++)
        start(s, &job[FM_COMM_IN_FLIGHT + i], 1, fm_call_barrier());
    run(s, job, 2 * FM_COMM_IN_FLIGHT);
    sim_destroy(s);
}

static void two_groups_do_not_mix(void **state)
{
    (void)state;
    const int   even[] = {0, 2}, all[] = {2, 1, 0};
    sim        *s = sim_create(3, 6, 0);
    fm_comm    *a[3], *b[3];
    fm_comm_job job[5];
    for (int r = 0; r < 3; r++) {
        a[r] = r == 1 ? NULL : sim_add_group(s, r, even, 2, r / 2, 1);
        b[r] = sim_add_group(s, r, all, 3, 2 - r, 2); /* ranks the other way round */
    }
    fill(3, 100, 13);
    for (int r = 0; r < 3; r++) {
        memcpy(out[r], in[r], 400), memcpy(want[r], in[r], 400);
        assert_int_equal(fm_comm_start(b[r], &job[r], fm_call_all_reduce_f32(out[r], 100)), FM_OK);
        if (a[r])
            assert_int_equal(
                fm_comm_start(a[r], &job[3 + r / 2], fm_call_all_reduce_f32(want[r], 100)), FM_OK);
    }
    run(s, job, 5);
    for (size_t i = 0; i < 100; i++) {
        assert_true(want[0][i] == in[0][i] + in[2][i]);
        assert_true(out[1][i] == (in[2][i] + in[1][i]) + in[0][i]);
    }
    for (int r = 0; r < 3; r++) fm_comm_close(a[r]), fm_comm_close(b[r]);
    sim_destroy(s);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    sim        *s = sim_create(2, 7, 0);
    fm_comm    *c = sim_group(s, 0);
    fm_comm_job job;
    size_t      to[] = {4, 0}, from[] = {8, 0};
    assert_int_equal(fm_comm_start(c, &job, fm_call_send(in, 4, 0, 0)), FM_E_ARG);
    assert_int_equal(fm_comm_start(c, &job, fm_call_send(in, 4, 2, 0)), FM_E_ARG);
    assert_int_equal(fm_comm_start(c, &job, fm_call_recv(in, 4, 1, 128)), FM_E_ARG);
    assert_int_equal(fm_comm_start(c, &job, fm_call_broadcast(in, 4, -1)), FM_E_ARG);
    assert_int_equal(fm_comm_start(c, &job, fm_call_all_to_all(out, from, in, to)), FM_E_ARG);
    assert_false(c->is_broken);
    sim_destroy(s);
}

static void a_shorter_message_is_a_failure(void **state)
{
    (void)state;
    sim        *s = sim_create(2, 8, 0);
    fm_comm_job job[2];
    start(s, &job[0], 0, fm_call_broadcast(out[0], 8, 0));
    fm_status rc = fm_comm_start(sim_group(s, 1), &job[1], fm_call_broadcast(out[1], 12, 0));
    for (int i = 0, done; i < 100 && rc == FM_OK; i++) rc = fm_comm_test(&job[1], &done);
    assert_int_equal(rc, FM_E_COMM);
    assert_non_null(strstr(fm_why(), "rank 0 sent 8 bytes where rank 1 expects 12"));
    assert_int_equal(fm_comm_start(sim_group(s, 1), &job[1], fm_call_barrier()), FM_E_COMM);
    for (int i = 0, done = 0; i < 100 && !done; i++) fm_comm_test(&job[0], &done);
    sim_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_on_any_ranks),
        cmocka_unit_test(jobs_side_by_side),
        cmocka_unit_test(only_so_many_in_flight),
        cmocka_unit_test(two_groups_do_not_mix),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(a_shorter_message_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
