/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's books with tiers below: a random workload against a model that keeps
 * "bytes" per page, saves what the books say is to be saved, and brings pages back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "llm/kv/kv_tiers.h"

enum { PS = 4, N_PAGE = 24, CONTEXT = 64, N_TEXT = 12, N_SAVED = 4096 };

typedef struct {
    fm_kv       *kv;
    fm_page_hash bytes[N_PAGE]; /* what lies in each page: the identity it was computed for */
    fm_page_hash saved[N_SAVED];
    int          n_saved;
    int32_t      text[N_TEXT][CONTEXT];
} model;

static int is_saved(const model *m, fm_page_hash key)
{
    for (int i = 0; i < m->n_saved; i++)
        if (fm_hash_equal(m->saved[i], key)) return 1;
    return 0;
}

/* What is saved is what lies in the page: it must be what its identity says. */
static void save(void *ctx, const fm_kv_page *p)
{
    model *m = ctx;
    assert_true(fm_hash_equal(m->bytes[p->page], p->key));
    if (!is_saved(m, p->key)) m->saved[m->n_saved++] = p->key;
    assert_true(m->n_saved < N_SAVED);
}

static fm_page_hash key_of(const int32_t *text, int32_t page)
{
    fm_page_hash key = fm_page_hash_root(0);
    for (int32_t i = 0; i <= page; i++) key = fm_page_hash_next(key, text + i * PS, PS);
    return key;
}

static void set_up(model *m, fm_kv_saving when)
{
    const fm_kv_options o = {.n_page      = N_PAGE,
                             .page_size   = PS,
                             .max_lease   = 2,
                             .max_context = CONTEXT,
                             .share       = 1,
                             .has_tiers   = 1};
    memset(m, 0, sizeof *m);
    assert_int_equal(fm_kv_create(&m->kv, &o), FM_OK);
    fm_kv_set_saving(m->kv, when, save, m);
    for (int t = 0; t < N_TEXT; t++)
        for (int i = 0; i < CONTEXT; i++) /* texts share beginnings of different length */
            m->text[t][i] = i < 8 * (t % 3 + 1) ? 7 * i : 1000 * t + i;
}

/* A request: what is cached must be what was computed for it, the rest is computed. */
static void run(model *m, const int32_t *text, int32_t n)
{
    fm_kv_lease l;
    assert_int_equal(fm_kv_begin(m->kv, &l, text, n), FM_OK);
    for (int32_t i = 0; i < l.n_page; i++)
        assert_true(fm_hash_equal(m->bytes[l.page[i]], key_of(text, i)));
    assert_int_equal(fm_kv_grow(m->kv, &l, n), FM_OK);
    for (int32_t i = l.n_shared; i < n / PS; i++) m->bytes[l.page[i]] = key_of(text, i);
    fm_kv_publish(m->kv, &l, text, n);
    fm_kv_end(m->kv, &l);
}

/* Saved pages of the text are loaded again, some at a time. */
static int bring_back(model *m, const int32_t *text, int32_t n)
{
    fm_page_hash  key;
    int32_t       page[CONTEXT / PS];
    const int32_t most = (n - 1) / PS, from = fm_kv_resident(m->kv, text, most, &key);
    int32_t       to = from;
    if (from) assert_true(fm_hash_equal(key, key_of(text, from - 1)));
    while (to < most && is_saved(m, key_of(text, to))) to++;
    if (to == from) return 0;
    fm_kv_lease   l;
    const int32_t got = fm_kv_adopt_begin(m->kv, &l, text, from, to, page);
    assert_true(got <= to - from);
    fm_kv_audit(m->kv);
    for (int32_t i = 0; i < got; i++)
        if (page[i] >= 0) m->bytes[page[i]] = key_of(text, from + i);
    if (got && n % 3 == 0) run(m, text, n < 20 ? n : 20); /* computed by another meanwhile */
    if (got) fm_kv_adopt_end(m->kv, &l, text, n % 2);
    assert_true(fm_kv_match(m->kv, text, to * PS) >= (from + got) * PS);
    return got;
}

static void workload(fm_kv_saving when, int keeps_up)
{
    static model m;
    int          n_back = 0;
    set_up(&m, when);
    for (uint64_t i = 0; i < 3000; i++) {
        const int32_t *text = m.text[fm_rng_u32(1, 3 * i) % N_TEXT];
        const int32_t  n    = 1 + (int32_t)(fm_rng_u32(1, 3 * i + 1) % CONTEXT);
        n_back += bring_back(&m, text, n);
        run(&m, text, n);
        for (fm_kv_page p; keeps_up && fm_kv_next_unsaved(m.kv, &p);) {
            save(&m, &p);
            fm_kv_saved(m.kv, p.page);
        }
        if (fm_rng_u32(1, 3 * i + 2) % 50 == 0) fm_kv_demote_all(m.kv);
        fm_kv_audit(m.kv);
    }
    assert_true(n_back > 100);
    fm_kv_demote_all(m.kv);
    assert_int_equal(fm_kv_free_pages(m.kv), N_PAGE);
    fm_kv_destroy(m.kv);
}

static void pages_come_back_as_they_were(void **state)
{
    (void)state;
    workload(FM_KV_SAVE_AT_ONCE, 1);
    workload(FM_KV_SAVE_AT_ONCE, 0); /* then they are saved when they are evicted */
    workload(FM_KV_SAVE_SECOND_USE, 1);
    workload(FM_KV_SAVE_AT_EVICTION, 1);
}

static void a_page_read_once_is_not_saved_selectively(void **state)
{
    static model m;
    fm_kv_page   p;
    (void)state;
    set_up(&m, FM_KV_SAVE_SECOND_USE);
    run(&m, m.text[0], 16);
    assert_false(fm_kv_next_unsaved(m.kv, &p));
    run(&m, m.text[0], 9); /* reads the first two pages again */
    for (int i = 0; i < 2; i++) {
        assert_true(fm_kv_next_unsaved(m.kv, &p));
        assert_true(fm_hash_equal(p.key, key_of(m.text[0], i)));
        fm_kv_saved(m.kv, p.page);
    }
    assert_false(fm_kv_next_unsaved(m.kv, &p));
    fm_kv_demote_all(m.kv);
    assert_int_equal(m.n_saved, 0);
    fm_kv_destroy(m.kv);
}

/* After a failed pass pages may be wrong: nothing of them goes below. */
static void a_flush_saves_nothing(void **state)
{
    static model m;
    fm_kv_page   p;
    (void)state;
    set_up(&m, FM_KV_SAVE_AT_ONCE);
    run(&m, m.text[1], 40);
    fm_kv_flush(m.kv);
    assert_false(fm_kv_next_unsaved(m.kv, &p));
    assert_int_equal(m.n_saved, 0);
    fm_kv_audit(m.kv);
    fm_kv_destroy(m.kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_come_back_as_they_were),
        cmocka_unit_test(a_page_read_once_is_not_saved_selectively),
        cmocka_unit_test(a_flush_saves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
