/* SPDX-License-Identifier: Apache-2.0 */
/* Moves of pages through the wire: what comes out is what went in, and a garbled message is an
 * error, never a crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/rank/moves_wire.h"

enum { N_GROUP = 3, MOVES = 40, PAGE = 8, N_PAGE = 100, N_SLOT = 20, N_CHECK = 9 };

static const fm_plan_limits limits = {.n_lane = 2, .n_group = N_GROUP, .max_rows = 4,
                                      .max_spans = 4, .max_outs = 4, .max_pages = 8,
                                      .max_span_pages = 8, .page_size = PAGE, .n_page = N_PAGE,
                                      .vocab = 1000, .max_moves = MOVES, .n_slot = N_SLOT, .n_check = N_CHECK};

static uint64_t n_drawn;

static int draw(int below)
{
    return (int)(fm_rng_u32(11, n_drawn++) % (uint32_t)below);
}

static void draw_move(fm_page_move *m)
{
    memset(m, 0, sizeof *m);
    m->kind  = draw(FM_N_MOVE);
    m->page  = m->kind == FM_MOVE_READ || m->kind == FM_MOVE_DROP || m->kind == FM_MOVE_KEEP ? -1 : draw(N_PAGE);
    m->slot  = m->kind == FM_MOVE_WRITE ? -1 : draw(N_SLOT);
    m->depth = draw(m->kind == FM_MOVE_CHECK ? N_CHECK : 1000);
    m->key   = (fm_page_hash){(uint64_t)draw(1 << 30), (uint64_t)draw(1 << 30)};
    for (int k = 0; k < PAGE; k++) m->token[k] = draw(1000);
}

static size_t write_drawn(int32_t *wire, fm_page_move room[N_GROUP][MOVES], int n[N_GROUP], int asks)
{
    fm_moves        list[N_GROUP];
    const fm_moves *all[N_GROUP];
    for (int g = 0; g < N_GROUP; g++) {
        n[g] = draw(MOVES + 1);
        for (int i = 0; i < n[g]; i++) draw_move(&room[g][i]);
        list[g] = (fm_moves){room[g], n[g], MOVES};
        all[g]  = &list[g];
    }
    const fm_moves_plan p = {{FM_PLAN_MOVES, 1, 77, 0}, all, asks, !asks};
    return fm_moves_write(wire, &p, &limits);
}

static void what_goes_in_comes_out(void **state)
{
    static fm_page_move want[N_GROUP][MOVES], got[MOVES];
    int32_t            *wire = malloc(fm_plan_max_words(&limits) * sizeof *wire);
    (void)state;
    for (int round = 0; round < 200; round++) {
        int          n[N_GROUP];
        size_t       words = 0;
        const size_t wrote = write_drawn(wire, want, n, round % 2);
        assert_int_equal(fm_plan_length(wire, &limits, &words), FM_OK);
        assert_int_equal(words, wrote);
        for (int g = 0; g < N_GROUP; g++) {
            fm_read_plan       p;
            const fm_plan_room room = {.move = got};
            assert_int_equal(fm_plan_read(&p, &room, wire, &limits, g), FM_OK);
            assert_true(p.head.kind == FM_PLAN_MOVES && p.n_move == n[g] && p.asks == round % 2 &&
                        p.has_pass == !p.asks);
            assert_memory_equal(p.move, want[g], (size_t)n[g] * sizeof *got);
        }
    }
    free(wire);
}

static void garbled_moves_are_refused(void **state)
{
    static fm_page_move want[N_GROUP][MOVES], got[MOVES];
    int32_t            *wire = malloc(fm_plan_max_words(&limits) * sizeof *wire);
    int                 n[N_GROUP], n_refused = 0;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        fm_read_plan       p     = {0};
        const fm_plan_room room  = {.move = got};
        const size_t       wrote = write_drawn(wire, want, n, 0);
        wire[5 + draw((int)wrote - 5)] = draw(2) ? draw(1 << 30) : -draw(1 << 30);
        n_refused += fm_plan_read(&p, &room, wire, &limits, draw(N_GROUP)) != FM_OK;
        for (int i = 0; i < p.n_move && n_refused == 0; i++) assert_true(p.move[i].slot < N_SLOT);
    }
    assert_true(n_refused > 100);
    free(wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out),
        cmocka_unit_test(garbled_moves_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
