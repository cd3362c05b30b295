/* SPDX-License-Identifier: Apache-2.0 */
/* What replicas tell each other: prompts and events as bytes, and the line
 * they travel on, over a wire that delays and reorders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "comm_sim.h"
#include "llm/rank/mailbox.h"
#include "llm/rank/replica_wire.h"

/* A copy of exactly its length, aligned, so that a sanitizer sees a step too far. */
static char *exact(const fm_str *s, size_t n)
{
    char *copy = malloc(n ? n : 1);
    memcpy(copy, s->text, n);
    return copy;
}

static fm_prompt sample_prompt(const int32_t *token, const fm_logit_bias *bias,
                               const char *const *stop)
{
    fm_prompt p       = {.token = token, .n_token = 5, .sampling = fm_sampling_default(),
                         .stop = stop, .n_stop = 3, .keep_stop = 1, .n = 2, .priority = -4,
                         .id = 77};
    p.sampling.bias   = bias;
    p.sampling.n_bias = 2;
    p.sampling.seed   = 0x123456789abcdefu;
    return p;
}

static void prompts_travel(void **state)
{
    (void)state;
    const int32_t       token[] = {1, 2, 3, 50000, 5};
    const fm_logit_bias bias[]  = {{7, 0.5f}, {9, -100}};
    const char *const   stop[]  = {"###", "", "much longer than eight bytes"};
    const fm_prompt     p       = sample_prompt(token, bias, stop);
    fm_str              wire    = {0};
    fm_prompt           q;
    fm_prompt_write(&wire, &p);
    char *data = exact(&wire, wire.len);
    assert_int_equal(fm_prompt_read(&q, data, wire.len), FM_OK);
    assert_int_equal(q.id, 77);
    assert_int_equal(q.n_token, 5);
    assert_memory_equal(q.token, token, sizeof token);
    assert_memory_equal(q.sampling.bias, bias, sizeof bias);
    assert_int_equal(q.sampling.seed, p.sampling.seed);
    assert_int_equal(q.priority, -4);
    for (int i = 0; i < 3; i++) assert_string_equal(q.stop[i], stop[i]);
    free((void *)q.stop);
    free(data);
    for (size_t n = 0; n < wire.len; n += 4) { /* cut short anywhere: refused */
        data = exact(&wire, n);
        assert_int_equal(fm_prompt_read(&q, data, n), FM_E_FORMAT);
        free(data);
    }
    fm_str_fini(&wire);
}

static void events_travel(void **state)
{
    (void)state;
    const fm_top_logprob top[] = {{3, -0.1f}, {4, -2.5f}, {9, -7}};
    const fm_event ev   = {.id = 5, .index = 1, .token = 3, .text = "héllo", .text_len = 6,
                           .prompt_at = -1, .logprob = -0.1f, .n_top = 3, .top = top,
                           .finish = FM_FINISH_STOP, .matched_id = -1, .n_output = 12};
    fm_str         wire = {0};
    fm_event       got;
    fm_event_write(&wire, &ev);
    char *data = exact(&wire, wire.len);
    assert_int_equal(fm_event_read(&got, data, wire.len), FM_OK);
    assert_int_equal(got.id, 5);
    assert_memory_equal(got.text, "héllo", 6);
    assert_memory_equal(got.top, top, sizeof top);
    assert_int_equal(got.finish, FM_FINISH_STOP);
    free(data);
    for (size_t n = 0; n < wire.len; n += 4) {
        data = exact(&wire, n);
        assert_int_equal(fm_event_read(&got, data, n), FM_E_FORMAT);
        free(data);
    }
    fm_str_fini(&wire);
}

/* Frame i of a side: its length and bytes follow from (key, i). */
static size_t frame_bytes(uint64_t key, uint64_t i)
{
    const uint32_t x = fm_rng_u32(key, i);
    return x % 5 == 0 ? 0 : x % 7 == 0 ? x % 30000 : x % 300;
}

static void put_frame(fm_mailbox *m, uint64_t key, uint64_t i)
{
    fm_str *s = fm_mailbox_begin(m, (uint32_t)i);
    for (size_t k = 0; k < frame_bytes(key, i); k++) {
        const char c = (char)fm_rng_u32(key ^ i, k);
        fm_str_add(s, &c, 1);
    }
    assert_int_equal(fm_mailbox_end(m), FM_OK);
}

static void check_frame(const fm_frame *f, uint64_t key, uint64_t i)
{
    assert_int_equal(f->kind, i);
    assert_int_equal(f->bytes, frame_bytes(key, i));
    assert_int_equal((uintptr_t)f->data % 8, 0);
    for (size_t k = 0; k < f->bytes; k++) assert_int_equal(f->data[k], (char)fm_rng_u32(key ^ i, k));
}

enum { N_FRAME = 150 };

/* Both talk at once, each in its own time. */
static void talk(uint64_t key)
{
    sim        *s      = sim_create(2, key, 0);
    fm_mailbox *box[2] = {NULL, NULL};
    uint64_t    said[2] = {0}, heard[2] = {0};
    for (int r = 0; r < 2; r++)
        assert_int_equal(fm_mailbox_create(&box[r], sim_group(s, r)), FM_OK);
    for (long turns = 0; heard[0] < N_FRAME || heard[1] < N_FRAME; turns++) {
        const int r = (int)sim_draw(s, 2);
        fm_frame  f;
        assert_true(turns < 2000000);
        if (said[r] < N_FRAME && sim_draw(s, 3) == 0) {
            put_frame(box[r], key + (uint64_t)r, said[r]);
            said[r]++;
        }
        assert_int_equal(fm_mailbox_move(box[r]), FM_OK);
        while (fm_mailbox_next(box[r], &f)) {
            check_frame(&f, key + (uint64_t)(1 - r), heard[r]);
            heard[r]++;
        }
        assert_false(fm_mailbox_is_over(box[r]));
    }
    for (int r = 0; r < 2; r++) {
        sim_group(s, r)->is_broken = 1; /* each still listens */
        fm_mailbox_destroy(box[r]);
    }
    sim_destroy(s);
}

static void frames_come_whole_and_in_order(void **state)
{
    (void)state;
    for (uint64_t key = 1; key < 6; key++) talk(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(prompts_travel),
                                       cmocka_unit_test(events_travel),
                                       cmocka_unit_test(frames_come_whole_and_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
