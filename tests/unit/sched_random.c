/* SPDX-License-Identifier: Apache-2.0 */
/* Random workloads in tiny pools: whatever is chunked, shared, preempted, drafted
 * or cancelled on the way, and whether steps are planned ahead of their tokens,
 * every request has the output it would have had alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sched_model.h"

enum { MAX_REQUEST = 40, MAX_DRAFT = 3, MAX_TEXT = 256, VOCAB = 150, STEP_LIMIT = 50000 };

typedef struct {
    uint64_t key, n_draw;
} dice;

typedef struct {
    fm_request r;
    int32_t    token[2 * MAX_TEXT];
    int        is_submitted, is_done, was_ended;
    int        n_scored; /* prompt positions whose logits were asked for, in order */
} job;

typedef struct {
    dice             d;
    fm_sched_options opt;
    fm_kv           *kv;
    fm_sched        *s;
    fake_model       m;
    job              job[MAX_REQUEST];
    fm_request      *live[MAX_REQUEST];
    int              n_job, n_live, n_submitted, n_done;
    int              calm, prompt_part;
    int              ahead, n_in_flight; /* a step is planned while another is in flight */
    int32_t          token[2][(1 + MAX_DRAFT) * MAX_REQUEST + FM_SCORE_ROWS]; /* of the steps in flight */
    int64_t          n_ahead; /* steps that were planned so */
    int64_t          n_preempted, n_cached, n_scored, n_accepted, n_wrong;
} world;

static int draw(dice *d, int n)
{
    return (int)(fm_rng_u32(d->key, d->n_draw++) % (uint32_t)n);
}

static int one_in(world *w, int n)
{
    return draw(&w->d, n) == 0;
}

/* Prompts are cuts of a few texts, some with an ending of their own. */
static void draw_job(world *w, job *j)
{
    dice stem = {.key = 1000 + (uint64_t)draw(&w->d, 3)};
    fm_request *r = &j->r;

    *r = (fm_request){.id = (uint64_t)(j - w->job), .token = j->token};
    r->n_prompt = 1 + draw(&w->d, one_in(w, 12) ? MAX_TEXT : w->opt.max_context / w->prompt_part);
    for (int i = 0; i < r->n_prompt; i++) j->token[i] = draw(&stem, VOCAB);
    for (int i = draw(&w->d, r->n_prompt); one_in(w, 2) && i < r->n_prompt; i++)
        j->token[i] = draw(&w->d, VOCAB);
    r->n_score  = one_in(w, 3) ? draw(&w->d, r->n_prompt) : 0;
    r->priority = one_in(w, 4) ? draw(&w->d, 3) - 1 : 0;
    r->is_sequential = one_in(w, 3);
    r->sampling = (fm_sampling){.max_new_tokens = draw(&w->d, one_in(w, 2) ? MAX_TEXT : 30),
                                .min_new_tokens = one_in(w, 3) ? draw(&w->d, 20) : 0,
                                .ignore_eos     = one_in(w, 3),
                                .stop_id        = {5},
                                .n_stop_id      = one_in(w, 2)};
}

static void submit(world *w)
{
    job *j = &w->job[w->n_submitted++];
    draw_job(w, j);

    const int room = w->opt.n_page * w->opt.page_size < w->opt.max_context
                         ? w->opt.n_page * w->opt.page_size : w->opt.max_context;
    const int fits = j->r.n_prompt + (j->r.sampling.max_new_tokens > 0) <= room;
    const int asked = j->r.sampling.max_new_tokens;

    assert_int_equal(fm_sched_submit(w->s, &j->r), fits ? FM_OK : FM_E_ARG);
    if (!fits) {
        assert_non_null(strstr(fm_why(), "the prompt has"));
        w->n_done++;
        return;
    }
    const int cut = asked < room - j->r.n_prompt ? asked : room - j->r.n_prompt;
    assert_int_equal(j->r.sampling.max_new_tokens, cut);
    j->is_submitted = 1;
    w->live[w->n_live++] = &j->r;
}

static void end_someone(world *w)
{
    if (w->calm || !w->n_live || !one_in(w, 15)) return;
    fm_request *r = w->live[draw(&w->d, w->n_live)];
    job        *j = &w->job[r->id];
    if (r->finish == FM_FINISH_NONE) j->was_ended = 1;
    if (one_in(w, 2)) fm_sched_cancel(w->s, r);
    else              fm_sched_finish(w->s, r, FM_FINISH_STOP);
}

/* Every prompt position from the asked one on is scored once, in order. */
static void count_scores(world *w, const fm_batch *b)
{
    int n_score = 0;
    for (int i = 0; i < b->n_out; i++) {
        const fm_out     *o = fm_sched_out(w->s, b, i);
        const fm_request *r = o->r;
        job              *j = &w->job[r->id];
        if (!o->is_score) continue;
        assert_int_equal(o->pos, r->n_prompt - 1 - r->n_score + j->n_scored++);
        n_score++;
    }
    assert_true(n_score <= FM_SCORE_ROWS);
    assert_true(b->n_out <= fm_sched_max_out(&w->opt));
    w->n_scored += n_score;
}

static void check_answer(world *w, const job *j)
{
    int32_t   want[MAX_TEXT * 2];
    fm_finish why;
    const int n     = fake_answer(&w->m, &w->opt, &j->r, want, &why);
    const int n_got = fm_request_n_output(&j->r);

    assert_int_equal(j->r.state, FM_REQ_DONE);
    assert_int_equal(j->r.has_lease, 0);
    assert_int_equal(j->r.n_pending, 0);
    if (!j->was_ended) {
        assert_int_equal(j->n_scored, j->r.n_score);
        assert_int_equal(n_got, n);
        assert_int_equal(j->r.finish, why);
        assert_int_equal(j->r.matched_stop, why == FM_FINISH_STOP ? want[n - 1] : -1);
    }
    assert_true(n_got <= n);
    assert_memory_equal(want, j->token + j->r.n_prompt, (size_t)n_got * sizeof *want);
}

static void collect(world *w)
{
    for (fm_request *r; (r = fm_sched_pop_done(w->s));) {
        job *j = &w->job[r->id];
        assert_false(j->is_done);
        j->is_done = 1;
        check_answer(w, j);
        w->n_preempted += r->n_preempted;
        w->n_cached += r->n_cached;
        w->n_done++;
        for (int i = 0; i < w->n_live; i++)
            if (w->live[i] == r) w->live[i--] = w->live[--w->n_live];
    }
}

static void check_counts(const world *w, const fm_batch *b)
{
    const fm_sched_stats st = fm_sched_get_stats(w->s);
    int                  n_decode = 0, n_running = 0, n_draft = 0;

    for (int i = 0; i < w->n_live; i++) {
        const fm_request *r = w->live[i];
        n_running += r->state == FM_REQ_RUNNING;
        if (r->finish != FM_FINISH_NONE || fm_request_n_output(r) == r->sampling.max_new_tokens)
            continue; /* it is known to end with the step in flight */
        n_decode += r->state == FM_REQ_RUNNING && r->n_token > r->n_prompt &&
                    r->n_computed == r->n_token - 1;
    }
    assert_int_equal(st.n_running, n_running);
    assert_int_equal(st.n_waiting, w->n_live - n_running);
    assert_true(n_running <= w->opt.max_running);
    assert_in_range(b->n_row, 1, fm_sched_max_rows(&w->opt));
    for (int i = 0; i < n_decode; i++) { /* each has its row, in front of the prefills */
        assert_in_range(b->span[i].n_row, 1, 1 + w->opt.max_draft);
        assert_int_equal(b->span[i].form, FM_FORM_GENERATED);
        n_draft += b->span[i].n_row - 1;
    }
    const int n_prefill = b->n_row - n_decode - n_draft;
    if (w->opt.chunk > 0) assert_true(n_prefill <= w->opt.chunk);
    if (w->opt.chunk > 0) assert_true(n_prefill <= w->opt.max_prefill);
}

/* Drafts that are right, but for one now and then. */
static void propose(world *w)
{
    for (int i = 0; w->opt.max_draft && i < w->n_live; i++) {
        fm_request *r = w->live[i];
        int32_t     want[MAX_TEXT * 2];
        fm_finish   why;
        if (one_in(w, 3)) continue;
        const int n   = fake_answer(&w->m, &w->opt, r, want, &why);
        const int at  = fm_request_n_output(r);
        const int len = n - at < MAX_DRAFT ? n - at : MAX_DRAFT;
        if (len < 1) continue;
        if (one_in(w, 3)) want[at + draw(&w->d, len)]++;
        assert_true(fm_sched_propose(w->s, r, want + at, len) <= len);
    }
}

static int run_next(world *w)
{
    if (!w->n_in_flight) propose(w);
    const fm_batch *b = fm_sched_plan(w->s);

    if (!b) return 0;
    if (!w->calm && one_in(w, 40)) b = fm_sched_plan(w->s); /* the first is given up */
    check_counts(w, b);
    fm_kv_audit(w->kv);
    fake_run(&w->m, w->s, b, w->live, w->n_live, w->token[w->m.n_step % 2]);
    count_scores(w, b);
    end_someone(w);
    return 1;
}

static void commit(world *w, const int32_t *token)
{
    fm_sched_commit(w->s, token);
    end_someone(w);
}

static int step(world *w)
{
    if (!run_next(w)) return 0;
    commit(w, w->m.chosen);
    return 1;
}

static void lose_steps(world *w)
{
    fm_sched_give_up(w->s);
    fm_kv_audit(w->kv);
    w->n_in_flight = 0;
    for (int i = 0; i < w->n_live; i++) w->job[w->live[i]->id].n_scored = w->live[i]->n_scored;
}

/* The next step runs before the tokens of the last are looked at; now and then
 * one is waited for, and now and then the device fails. */
static int step_ahead(world *w)
{
    const int planned = w->n_in_flight && one_in(w, 6) ? 0 : run_next(w);
    if (planned) {
        fm_sched_launched(w->s);
        end_someone(w);
        w->n_in_flight++;
    }
    if (!w->calm && w->n_in_flight && one_in(w, 50)) lose_steps(w);
    if (!w->n_in_flight || (planned && w->n_in_flight == 1)) return planned;
    w->n_ahead += w->n_in_flight == 2;
    commit(w, w->token[(w->m.n_step - w->n_in_flight) % 2]);
    w->n_in_flight--;
    return 1;
}

static void open_world(world *w, const fm_sched_options *opt, int share, uint64_t seed)
{
    const fm_kv_options kv = {.n_page = opt->n_page, .page_size = opt->page_size,
                              .max_lease = opt->max_running, .max_context = opt->max_context,
                              .share = share};
    *w = (world){.d = {.key = seed}, .opt = *opt, .n_job = MAX_REQUEST};
    w->prompt_part = opt->max_context > 20 ? 1 + draw(&w->d, 10) : 1;
    assert_int_equal(fm_kv_create(&w->kv, &kv), FM_OK);
    assert_int_equal(fm_sched_create(&w->s, opt, w->kv), FM_OK);
    fake_open(&w->m, opt, VOCAB, opt->deterministic || !share);
}

static void close_world(world *w)
{
    const fm_sched_stats st = fm_sched_get_stats(w->s);
    w->n_accepted           = st.n_accepted;
    w->n_wrong              = st.n_draft - st.n_accepted;
    fm_kv_audit(w->kv);
    assert_int_equal(fm_kv_free_pages(w->kv) + fm_kv_evictable_pages(w->kv), w->opt.n_page);
    fm_sched_destroy(w->s);
    fm_kv_destroy(w->kv);
    fake_close(&w->m);
}

static void run(world *w)
{
    int n_step = 0;
    while (w->n_done < w->n_job) {
        assert_true(n_step++ < STEP_LIMIT);
        while (w->n_submitted < w->n_job && one_in(w, 2)) submit(w);
        if (!(w->ahead ? step_ahead(w) : step(w)) && w->n_submitted < w->n_job) submit(w);
        collect(w);
    }
    while (w->n_in_flight) step_ahead(w); /* rows of texts that had ended */
    assert_null(fm_sched_plan(w->s));
    close_world(w);
}

static void draw_options(dice *d, fm_sched_options *o, int page_size)
{
    static const int chunk[] = {1, 2, 7, 33, 300, 0, -1};
    *o = (fm_sched_options){
        .max_running = 1 + draw(d, 12), .chunk = chunk[draw(d, 7)],
        .max_prefill = 1 + draw(d, 200), .max_context = 2 + draw(d, MAX_TEXT - 2),
        .page_size = page_size, .n_page = 1 + draw(d, 1 + 300 / page_size),
        .policy = draw(d, 2) ? FM_POLICY_LPM : FM_POLICY_FCFS, .deterministic = draw(d, 2),
        .conservativeness = 0.3 * draw(d, 4), .eos = {1, 2}, .n_eos = draw(d, 3),
        .max_draft = draw(d, 1 + MAX_DRAFT),
    };
}

static void run_worlds(int page_size, int ahead)
{
    dice      d = {.key = (uint64_t)page_size};
    world    *w = calloc(1, sizeof *w);
    int64_t   n_preempted = 0, n_cached = 0, n_scored = 0, n_ahead = 0;
    int64_t   n_accepted = 0, n_wrong = 0;

    for (int i = 0; i < 150; i++) {
        fm_sched_options opt;
        draw_options(&d, &opt, page_size);
        const int share = draw(&d, 4) > 0;
        open_world(w, &opt, share, (uint64_t)i);
        w->calm  = i % 2;
        w->ahead = ahead;
        run(w);
        n_accepted += w->n_accepted;
        n_wrong += w->n_wrong;
        n_ahead += w->n_ahead;
        n_preempted += w->n_preempted;
        n_cached += w->n_cached;
        n_scored += w->n_scored;
    }
    assert_true(n_preempted > 20); /* the pools were tight enough to mean something */
    assert_true(n_cached > 100);
    assert_true(n_scored > 1000);
    assert_true(n_accepted > 1000);
    assert_true(n_wrong > 100);
    if (ahead) assert_true(n_ahead > 1000);
    free(w);
}

static void says_the_same_as_alone(void **state)
{
    run_worlds(*(const int *)*state, 0);
}

static void says_the_same_when_planned_ahead(void **state)
{
    run_worlds(*(const int *)*state, 1);
}

int main(void)
{
    static const int size[] = {1, 2, 3, 8, 16, 31, 64};
    struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(says_the_same_as_alone, (void *)&size[0]),
        cmocka_unit_test_prestate(says_the_same_as_alone, (void *)&size[1]),
        cmocka_unit_test_prestate(says_the_same_as_alone, (void *)&size[2]),
        cmocka_unit_test_prestate(says_the_same_as_alone, (void *)&size[3]),
        cmocka_unit_test_prestate(says_the_same_as_alone, (void *)&size[4]),
        cmocka_unit_test_prestate(says_the_same_as_alone, (void *)&size[5]),
        cmocka_unit_test_prestate(says_the_same_as_alone, (void *)&size[6]),
        cmocka_unit_test_prestate(says_the_same_when_planned_ahead, (void *)&size[0]),
        cmocka_unit_test_prestate(says_the_same_when_planned_ahead, (void *)&size[2]),
        cmocka_unit_test_prestate(says_the_same_when_planned_ahead, (void *)&size[3]),
        cmocka_unit_test_prestate(says_the_same_when_planned_ahead, (void *)&size[4]),
        cmocka_unit_test_prestate(says_the_same_when_planned_ahead, (void *)&size[6]),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
