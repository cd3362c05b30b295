/* SPDX-License-Identifier: Apache-2.0 */
/* Which pages move between the pool and host memory below it: the policy with scheduler and books,
 * over a model of the bytes.  Pages that come in arrive one pass later, as a GPU copies them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "llm/tier_policy/tier_policy.h"

enum { PS = 4, MOST_PAGES = 64, MOST_REQUESTS = 1024, MOST_HOST = 8192, N_CHECK = 192 };

/* Requests of n_group shared prefixes, shuffled. */
typedef struct {
    int n_group, per_group;
    int prefix, question, output; /* tokens */
    int n_page, n_host;
    int ahead;        /* a step is planned before the one in flight is committed */
    int alters_every; /* every so many checks find an altered page; 0: none does */
} workload;

typedef struct {
    workload        w;
    fm_kv          *kv;
    fm_sched       *sched;
    fm_tier_policy *policy;
    fm_load_costs   costs;
    fm_request      request[MOST_REQUESTS];
    int32_t         text[MOST_REQUESTS][MOST_PAGES * PS];
    int             n_request;
    fm_page_hash    pool[MOST_PAGES * 64], host[MOST_HOST];
    struct {
        int32_t      page;
        fm_page_hash key;
    } coming[MOST_HOST]; /* with the copies of the last step */
    int           n_coming;
    fm_slot_state check[N_CHECK];
    int           n_checked, n_altered, n_step, n_in_flight, most_overtaken;
    int64_t       sum_running;
} model;

static const fm_page_hash garbage = {1, 1};

static fm_page_hash key_of(const int32_t *text, int32_t page)
{
    fm_page_hash key = fm_page_hash_root(0);
    for (int32_t i = 0; i <= page; i++) key = fm_page_hash_next(key, text + i * PS, PS);
    return key;
}

static fm_slot_state view(void *ctx, int slot)
{
    const model *m = ctx;
    assert_in_range(slot, 0, N_CHECK - 1);
    return m->check[slot];
}

static void open_model(model *m, const workload *w)
{
    const int              n_page = w->n_page, context = MOST_PAGES * PS;
    const fm_sched_options s      = {.max_running = 64, .chunk = 256, .max_prefill = 256,
                                     .max_context = context, .page_size = PS, .n_page = n_page,
                                     .other_leases = FM_TIER_POLICY_LOADS, .conservativeness = 1};
    const fm_kv_options    k      = {.n_page = n_page, .page_size = PS,
                                     .max_lease = 64 + FM_TIER_POLICY_LOADS, .max_context = context,
                                     .share = 1, .has_tiers = 1};
    memset(m, 0, sizeof *m);
    m->w = *w;
    assert_int_equal(fm_kv_create(&m->kv, &k), FM_OK);
    assert_int_equal(fm_sched_create(&m->sched, &s, m->kv), FM_OK);
    const fm_tier_policy_options o = {.kv = m->kv, .sched = m->sched, .costs = &m->costs,
                                      .saving = FM_KV_SAVE_AT_ONCE, .n_host = w->n_host,
                                      .n_check = N_CHECK, .most_in = 100, .most_out = 512,
                                      .is_async = 1, .waits = 1, .view = view, .view_ctx = m};
    assert_int_equal(fm_tier_policy_create(&m->policy, &o), FM_OK);
}

static void submit_all(model *m)
{
    const workload *w = &m->w;
    int             order[MOST_REQUESTS];
    m->n_request = w->n_group * w->per_group;
    for (int i = 0; i < m->n_request; i++) order[i] = i;
    for (int i = m->n_request - 1; i > 0; i--) {
        const int k = (int)(fm_rng_u32(3, (uint64_t)i) % (uint32_t)(i + 1)), was = order[i];
        order[i]    = order[k];
        order[k]    = was;
    }
    for (int i = 0; i < m->n_request; i++) {
        const int   group = order[i] % w->n_group;
        fm_request *r     = &m->request[i];
        for (int t = 0; t < w->prefix + w->question; t++)
            m->text[i][t] = t < w->prefix ? 1000 * (group + 1) + t : 1000000 + 1000 * i + t;
        *r = (fm_request){.id       = (uint64_t)i,
                          .token    = m->text[i],
                          .n_prompt = w->prefix + w->question,
                          .sampling = {.max_new_tokens = w->output, .ignore_eos = 1}};
        assert_int_equal(fm_sched_submit(m->sched, r), FM_OK);
    }
}

static void land(model *m)
{
    for (int i = 0; i < m->n_coming; i++) m->pool[m->coming[i].page] = m->coming[i].key;
    m->n_coming = 0;
}

static fm_slot_state checked(model *m, const fm_page_move *v)
{
    m->n_checked++;
    if (fm_hash_equal(m->host[v->slot], garbage)) return FM_SLOT_FAILED; /* since a check before */
    assert_true(fm_hash_equal(m->host[v->slot], v->key));
    if (!m->w.alters_every || m->n_checked % m->w.alters_every) return FM_SLOT_READY;
    m->host[v->slot] = garbage;
    m->n_altered++;
    return FM_SLOT_FAILED;
}

/* Copies read what the passes before left; pages that come in are garbage until the next step. */
static void carry_out(model *m)
{
    fm_moves *list = fm_tier_policy_moves(m->policy);
    for (int i = 0; i < list->n; i++) {
        const fm_page_move *v = &list->move[i];
        switch (v->kind) {
        case FM_MOVE_CHECK: m->check[v->depth] = checked(m, v); break;
        case FM_MOVE_OUT:
        case FM_MOVE_OUT_NOW: m->host[v->slot] = m->pool[v->page]; break;
        case FM_MOVE_IN_NOW: m->pool[v->page] = m->host[v->slot]; break;
        case FM_MOVE_IN:
            m->coming[m->n_coming].page  = v->page;
            m->coming[m->n_coming++].key = m->host[v->slot];
            m->pool[v->page]             = garbage;
            break;
        default: fail();
        }
    }
    list->n = 0;
}

static const fm_request *owner_of(const model *m, const fm_span *s)
{
    for (int i = 0; i < fm_sched_n_running(m->sched); i++)
        if (fm_sched_running(m->sched, i)->lease.page == s->page) return fm_sched_running(m->sched, i);
    return NULL;
}

/* What a span reads must be what was computed for its tokens; what it computes lies there then. */
static void run(model *m, const fm_batch *b)
{
    for (int i = 0; i < b->n_span; i++) {
        const fm_span    *s       = &b->span[i];
        const fm_request *r       = owner_of(m, s);
        const int32_t     n_known = r ? r->n_prompt / PS : 0, end = s->pos0 + s->n_row;
        for (int32_t p = 0; p < s->pos0 / PS && p < n_known; p++)
            assert_true(fm_hash_equal(m->pool[s->page[p]], key_of(r->token, p)));
        for (int32_t p = s->pos0 / PS; p * PS < end; p++)
            m->pool[s->page[p]] = p < n_known && (p + 1) * PS <= end ? key_of(r->token, p) : garbage;
    }
}

static void commit(model *m)
{
    static const int32_t token[2048] = {0};
    fm_sched_commit(m->sched, token);
    m->n_in_flight--;
    for (fm_request *r; (r = fm_sched_pop_done(m->sched));)
        if (r->n_overtaken + r->n_passed / 4 > m->most_overtaken)
            m->most_overtaken = r->n_overtaken + r->n_passed / 4;
}

static int step(model *m)
{
    land(m);
    fm_tier_policy_prepare(m->policy, ++m->n_step);
    const fm_batch *b = fm_sched_plan(m->sched);
    carry_out(m);
    if (b) {
        run(m, b);
        m->sum_running += fm_sched_n_running(m->sched);
        m->n_in_flight++;
        if (m->w.ahead) fm_sched_launched(m->sched);
    }
    while (m->n_in_flight > (b ? m->w.ahead : 0)) commit(m);
    const fm_sched_stats s = fm_sched_get_stats(m->sched);
    return s.n_waiting || s.n_running;
}

static fm_sched_stats run_all(model *m, const workload *w)
{
    open_model(m, w);
    submit_all(m);
    while (step(m)) {
        fm_kv_audit(m->kv);
        assert_true(m->n_step < 200000);
    }
    for (int i = 0; i < m->n_request; i++) assert_int_equal(m->request[i].finish, FM_FINISH_LENGTH);
    return fm_sched_get_stats(m->sched);
}

static void close_model(model *m)
{
    fm_tier_policy_destroy(m->policy);
    fm_sched_destroy(m->sched);
    assert_int_equal(fm_kv_free_pages(m->kv) + fm_kv_evictable_pages(m->kv), m->w.n_page);
    fm_kv_destroy(m->kv);
}

/* Eight times as many prefixes as the pool holds. */
static const workload crowded = {.n_group = 64, .per_group = 8, .prefix = 192, .question = 8,
                                 .output = 16, .n_page = 8 * 54, .n_host = 8000};

static void a_prefix_is_computed_once(void **state)
{
    static model m;
    (void)state;
    for (int ahead = 0; ahead <= 1; ahead++) {
        workload w = crowded;
        w.ahead    = ahead;
        const fm_sched_stats s    = run_all(&m, &w);
        const int            once = w.n_group * w.prefix + m.n_request * w.question;
        assert_in_range(s.n_prefill_row, once, once + m.n_request * 31); /* shorter ends do not pay */
        assert_int_equal(s.n_preemption, 0);
        close_model(&m);
    }
}

/* The pool holds eight sequences: as many run, and more where they share a prefix. */
static void loads_keep_the_pool_busy_and_the_order(void **state)
{
    static model m;
    (void)state;
    for (int ahead = 0; ahead <= 1; ahead++) {
        workload w = crowded;
        w.ahead    = ahead;
        (void)run_all(&m, &w);
        assert_true(m.sum_running > 8 * m.n_step);
        assert_in_range(m.most_overtaken, 1, 64 + 16);
        close_model(&m);
    }
}

/* What is behind an altered page is computed again, and the page itself. */
static void an_altered_page_is_a_miss(void **state)
{
    static model m;
    workload     w = crowded;
    (void)state;
    w.ahead        = 1;
    w.alters_every = 97;
    const fm_sched_stats       s = run_all(&m, &w); /* asserts what every span reads */
    const fm_tier_policy_stats t = fm_tier_policy_get_stats(m.policy);
    assert_true(m.n_altered > 10);
    assert_in_range(t.n_host_altered, m.n_altered / 2, m.n_altered);
    assert_true(s.n_prefill_row > w.n_group * w.prefix + m.n_request * w.question);
    close_model(&m);
}

/* Host memory for half of the prefixes: slots are taken again while others are copied. */
static void a_small_host_tier_forgets_and_stays_right(void **state)
{
    static model m;
    workload     w = crowded;
    (void)state;
    w.ahead  = 1;
    w.n_host = 1500;
    (void)run_all(&m, &w);
    close_model(&m);
}

static fm_request *submit_one(model *m, const int32_t *text, int32_t n, int priority)
{
    fm_request *r = &m->request[m->n_request++];
    *r = (fm_request){.token = m->text[r - m->request], .n_prompt = n, .priority = priority,
                      .sampling = {.max_new_tokens = 1, .ignore_eos = 1}};
    memcpy(r->token, text, (size_t)n * sizeof *text);
    assert_int_equal(fm_sched_submit(m->sched, r), FM_OK);
    return r;
}

/* Only the head of the queue is looked up.  A request whose pages are on their way when others push
 * it further back is looked up again when its turn comes: its prefix is loaded, not computed. */
static void a_request_pushed_back_is_loaded_later(void **state)
{
    static model m;
    workload     w = crowded;
    (void)state;
    w.per_group = 1;
    (void)run_all(&m, &w);
    const fm_request *r = submit_one(&m, m.text[0], w.prefix + w.question, 0);
    step(&m);
    assert_true(r->is_loading);
    for (int i = 0; i < FM_SCHED_LOOKUPS + 50; i++) {
        const int32_t text[PS] = {2000000 + i};
        submit_one(&m, text, PS, 1);
    }
    while (step(&m)) assert_true(m.n_step < 200000);
    assert_true(r->n_from_host >= w.prefix - PS);
    close_model(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prefix_is_computed_once),
        cmocka_unit_test(loads_keep_the_pool_busy_and_the_order),
        cmocka_unit_test(an_altered_page_is_a_miss),
        cmocka_unit_test(a_small_host_tier_forgets_and_stays_right),
        cmocka_unit_test(a_request_pushed_back_is_loaded_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
