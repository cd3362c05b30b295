/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations against a naive model of the same cache: a flat list of
 * published prefixes, searched from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "llm/kv/kv_cache.h"

enum { MAX_TEXT = 700, MAX_PAGE = 64, N_LEASE = 5 };

typedef struct {
    int      alive;
    int      n_token; /* of the whole prefix, this page included */
    int32_t  token[MAX_TEXT];
    int      n_lock;
    uint64_t idle_since;
} prefix;

typedef struct {
    int         is_open;
    fm_kv_lease lease;
    int32_t     token[MAX_TEXT];
    int         n_published;      /* pages */
    int32_t     page[MAX_PAGE];   /* as last seen */
} sequence;

typedef struct {
    fm_kv   *kv;
    int      n_page, page_size, share;
    prefix   tree[MAX_PAGE]; /* by page */
    sequence seq[N_LEASE];
    uint64_t clock, key, n_draw;
} world;

static int draw(world *w, int n)
{
    return (int)(fm_rng_u32(w->key, w->n_draw++) % (uint32_t)n);
}

static int find(const world *w, const int32_t *token, int n)
{
    for (int i = 0; i < w->n_page; i++) {
        const prefix *p = &w->tree[i];
        if (p->alive && p->n_token == n && !memcmp(p->token, token, (size_t)n * sizeof *token))
            return i;
    }
    return -1;
}

static int n_match(const world *w, const int32_t *token, int n)
{
    int m = 0;
    while ((m + 1) * w->page_size <= n && find(w, token, (m + 1) * w->page_size) >= 0) m++;
    return m;
}

static int n_idle(const world *w)
{
    int n = 0;
    for (int i = 0; i < w->n_page; i++) n += w->tree[i].alive && !w->tree[i].n_lock;
    return n;
}

static int is_leaf(const world *w, int i)
{
    const prefix *p = &w->tree[i];
    for (int j = 0; j < w->n_page; j++) {
        const prefix *c = &w->tree[j];
        if (c->alive && c->n_token > p->n_token &&
            !memcmp(c->token, p->token, (size_t)p->n_token * sizeof *p->token))
            return 0;
    }
    return 1;
}

static void evict_oldest_leaf(world *w)
{
    int oldest = -1;
    for (int i = 0; i < w->n_page; i++) {
        const prefix *p = &w->tree[i];
        if (!p->alive || p->n_lock || !is_leaf(w, i)) continue;
        if (oldest < 0 || p->idle_since < w->tree[oldest].idle_since) oldest = i;
    }
    assert_true(oldest >= 0);
    w->tree[oldest].alive = 0;
}

/* Texts are branches of one small tree, so that prefixes meet often. */
static int draw_text(world *w, int32_t *token)
{
    const int n = 1 + draw(w, 10 * w->page_size);
    for (int i = 0; i < n; i++) token[i] = draw(w, 3 * w->page_size) == 0;
    return n;
}

static void begin(world *w, sequence *s)
{
    const int n = draw_text(w, s->token);
    const int m = w->share ? n_match(w, s->token, n - 1) : 0;
    int32_t   idle;

    assert_int_equal(fm_kv_match(w->kv, s->token, n),
                     w->share ? n_match(w, s->token, n) * w->page_size : 0);
    assert_int_equal(fm_kv_probe(w->kv, s->token, n, &idle), m * w->page_size);
    const int was_idle = n_idle(w);

    assert_int_equal(fm_kv_begin(w->kv, &s->lease, s->token, n), FM_OK);
    s->is_open     = 1;
    s->n_published = m;
    assert_int_equal(s->lease.n_cached, m * w->page_size);
    assert_int_equal(s->lease.n_shared, m);
    assert_int_equal(s->lease.n_page, m);
    for (int i = 0; i < m; i++) w->tree[find(w, s->token, (i + 1) * w->page_size)].n_lock++;
    assert_int_equal(was_idle - n_idle(w), idle);
    for (int i = n; i < MAX_TEXT; i++) s->token[i] = draw(w, 2); /* what it will generate */
}

static void grow(world *w, sequence *s)
{
    const int limit = w->n_page * w->page_size < MAX_TEXT ? w->n_page * w->page_size : MAX_TEXT;
    const int n     = 1 + draw(w, limit);
    const int more  = (n + w->page_size - 1) / w->page_size - s->lease.n_page;
    int       spare = fm_kv_free_pages(w->kv);
    const fm_kv_lease was = s->lease;

    if (more > spare + n_idle(w)) {
        assert_int_equal(fm_kv_grow(w->kv, &s->lease, n), FM_E_FULL);
        assert_memory_equal(&was, &s->lease, sizeof was);
        return;
    }
    for (; spare < more; spare++) evict_oldest_leaf(w);
    assert_int_equal(fm_kv_grow(w->kv, &s->lease, n), FM_OK);
    assert_int_equal(s->lease.n_page, was.n_page + (more > 0 ? more : 0));
}

static void publish(world *w, sequence *s)
{
    const int room = s->lease.n_page * w->page_size;
    const int n    = draw(w, (room < MAX_TEXT ? room : MAX_TEXT) + 1);

    fm_kv_publish(w->kv, &s->lease, s->token, n);
    for (; w->share && (s->n_published + 1) * w->page_size <= n; s->n_published++) {
        const int n_token = (s->n_published + 1) * w->page_size;
        int       page    = find(w, s->token, n_token);
        if (page < 0) {
            page          = s->page[s->n_published]; /* the lease's own becomes the tree's */
            w->tree[page] = (prefix){.alive = 1, .n_token = n_token};
            memcpy(w->tree[page].token, s->token, (size_t)n_token * sizeof *s->token);
        }
        s->page[s->n_published] = page;
        w->tree[page].n_lock++;
    }
}

static void end(world *w, sequence *s)
{
    for (int i = s->n_published; i-- > 0;) {
        prefix *p = &w->tree[s->page[i]];
        if (--p->n_lock == 0) p->idle_since = ++w->clock;
    }
    fm_kv_end(w->kv, &s->lease);
    s->is_open = 0;
}

static void touch(world *w)
{
    int32_t   token[MAX_TEXT];
    const int n = draw_text(w, token);
    for (int m = w->share ? n_match(w, token, n - 1) : 0; m > 0; m--) {
        prefix *p = &w->tree[find(w, token, m * w->page_size)];
        if (!p->n_lock) p->idle_since = ++w->clock;
    }
    fm_kv_touch(w->kv, token, n);
}

static int n_sole(const world *w, const sequence *s)
{
    int n = s->lease.n_page - s->n_published;
    for (int i = 0; i < s->n_published; i++) n += w->tree[s->lease.page[i]].n_lock == 1;
    return n;
}

/* After each operation the cache and the model agree, page by page. */
static void compare(world *w, const sequence *changed)
{
    int held = 0;
    for (int i = 0; i < w->n_page; i++) held += w->tree[i].alive;
    for (int k = 0; k < N_LEASE; k++) {
        sequence *s = &w->seq[k];
        if (!s->is_open) continue;
        assert_int_equal(s->lease.n_shared, s->n_published);
        for (int i = 0; i < s->n_published; i++)
            assert_int_equal(find(w, s->token, (i + 1) * w->page_size), s->lease.page[i]);
        assert_int_equal(fm_kv_sole_pages(w->kv, &s->lease), n_sole(w, s));
        if (s != changed)
            assert_memory_equal(s->page, s->lease.page, (size_t)s->lease.n_page * sizeof *s->page);
        memcpy(s->page, s->lease.page, (size_t)s->lease.n_page * sizeof *s->page);
        held += s->lease.n_page - s->lease.n_shared;
    }
    assert_int_equal(fm_kv_evictable_pages(w->kv), n_idle(w));
    assert_int_equal(fm_kv_free_pages(w->kv), w->n_page - held);
    fm_kv_audit(w->kv);
}

static void step(world *w)
{
    sequence *s = &w->seq[draw(w, N_LEASE)];
    const int what = draw(w, 10);

    if (draw(w, 200) == 0) {
        fm_kv_flush(w->kv);
        for (int i = 0; i < w->n_page; i++) w->tree[i].alive &= w->tree[i].n_lock > 0;
    }
    if (draw(w, 4) == 0) touch(w);
    if (!s->is_open)    begin(w, s);
    else if (what < 4)  grow(w, s);
    else if (what < 8)  publish(w, s);
    else                end(w, s);
    compare(w, s);
}

static void run(int n_page, int page_size, int share, uint64_t seed)
{
    const fm_kv_options opt = {.n_page = n_page, .page_size = page_size, .max_lease = N_LEASE,
                               .max_context = MAX_TEXT, .share = share};
    world *w = calloc(1, sizeof *w);
    *w = (world){.n_page = n_page, .page_size = page_size, .share = share, .key = seed};

    assert_int_equal(fm_kv_create(&w->kv, &opt), FM_OK);
    for (int i = 0; i < 1500; i++) step(w);
    for (int i = 0; i < N_LEASE; i++)
        if (w->seq[i].is_open) end(w, &w->seq[i]);
    fm_kv_flush(w->kv);
    assert_int_equal(fm_kv_free_pages(w->kv), n_page);
    fm_kv_audit(w->kv);
    fm_kv_destroy(w->kv);
    free(w);
}

static void agrees_with_the_model(void **state)
{
    const int      page_size = *(const int *)*state;
    static const int n_page[] = {1, 2, 5, 13, 40, MAX_PAGE};

    for (size_t i = 0; i < sizeof n_page / sizeof *n_page; i++) {
        run(n_page[i], page_size, 1, 100 * (uint64_t)page_size + i);
        run(n_page[i], page_size, 0, 7);
    }
}

/* A hundred thousand one-token pages: every operation stays cheap. */
static void carries_a_large_tree(void **state)
{
    (void)state;
    enum { N = 200000, TEXT = 1000 };
    const fm_kv_options opt = {.n_page = N, .page_size = 1, .max_lease = 2, .max_context = TEXT,
                               .share = 1};
    static int32_t token[TEXT];
    fm_kv         *kv = NULL;
    fm_kv_lease    l;

    assert_int_equal(fm_kv_create(&kv, &opt), FM_OK);
    for (int k = 0; k < 2000; k++) {
        for (int i = 0; i < TEXT; i++)
            token[i] = (int32_t)fm_rng_u32((uint64_t)k, (uint64_t)i) & 0xffff;
        assert_int_equal(fm_kv_begin(kv, &l, token, TEXT), FM_OK);
        assert_int_equal(fm_kv_grow(kv, &l, TEXT), FM_OK);
        fm_kv_publish(kv, &l, token, TEXT);
        fm_kv_end(kv, &l);
        assert_int_equal(fm_kv_match(kv, token, TEXT), TEXT);
    }
    assert_int_equal(fm_kv_evictable_pages(kv), N);
    fm_kv_audit(kv);
    fm_kv_destroy(kv);
}

int main(void)
{
    static const int size[] = {1, 2, 3, 7, 16, 64};
    struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(agrees_with_the_model, (void *)&size[0]),
        cmocka_unit_test_prestate(agrees_with_the_model, (void *)&size[1]),
        cmocka_unit_test_prestate(agrees_with_the_model, (void *)&size[2]),
        cmocka_unit_test_prestate(agrees_with_the_model, (void *)&size[3]),
        cmocka_unit_test_prestate(agrees_with_the_model, (void *)&size[4]),
        cmocka_unit_test_prestate(agrees_with_the_model, (void *)&size[5]),
        cmocka_unit_test(carries_a_large_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
