/* SPDX-License-Identifier: Apache-2.0 */
#include "route_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "llm/kv/page_feed.h"
#include "llm/route/route_internal.h"
#include "llm/sched/sched.h"
#include "llm/serve/loop/rates.h"

enum { PAGE = 16, RUNNING = 64, CONTEXT = 4096, CHUNK = 2048, MAX_GROUPS = 64 };

/* Of one core, about those of fathom-tiny. */
static const double step_seconds = 0.7e-3, prompt_row = 2e-5, decode_row = 1e-4;
static const double request_seconds = 1.5e-3; /* HTTP, JSON and text */
static const double feed_pause      = 0.01;   /* after a reply of the feed */
static const double insert_wait     = 0.1;    /* of a feed that tells of no eviction */

typedef struct {
    double     due, first; /* when it was sent, and had its first token; 0: not yet */
    int        group, turn, worker, is_done;
    int32_t   *token;
    fm_request r;
    fm__rcall  call;
} job;

typedef struct {
    fm_sched     *sched;
    fm_kv        *kv;
    fm_page_feed *feed;
    fm_worker     known; /* to the router */
    fm__rates     rates;
    double        next_read;             /* of the feed */
    double        began, left, overhead; /* of the step under way: seconds of one core */
    int           is_busy, n_prefill, n_decode, load;
} server;

typedef struct {
    model_load       load;
    model_policy     policy;
    model_places    *places; /* or NULL */
    int              n_server, n_core;
    uint64_t         seed, n_draw;
    fm_route_options opt;
    fm_route         route;
    server           server[MODEL_WORKERS];
    job              job[MODEL_REQUESTS];
    job             *sent[MODEL_REQUESTS];
    int              n_job, n_sent, n_turn, next_of_loop;
    int              n_prefix[MAX_GROUPS];
    double           weight[MAX_GROUPS];
} model;

/* --- time ------------------------------------------------------------------ */

static double now;

double __wrap_fm_now(void); /* the linker puts it in the place of fm_now() */
double __wrap_fm_now(void) { return now; }

/* --- what is asked --------------------------------------------------------- */

static double uniform(model *m) { return fm_rng_u32(m->seed, m->n_draw++) * 0x1p-32; }

static double exponential(model *m, double mean) { return -mean * log(1 - uniform(m)); }

static void put_text(int32_t *to, int n, uint64_t key)
{
    for (int i = 0; i < n; i++) to[i] = (int32_t)(fm_rng_u32(key, (uint64_t)i) % 100000);
}

static job *add_job(model *m, int group, double due)
{
    assert_true(m->n_job < MODEL_REQUESTS);
    job *j = &m->job[m->n_job++];
    *j     = (job){.due = due, .group = group, .worker = -1};
    return j;
}

/* The first n_common tokens are from `common` or the group's prefix, the others its own. */
static void write_prompt(model *m, job *j, const int32_t *common, int n_common)
{
    const int n = n_common + m->load.n_question;
    j->token    = calloc((size_t)(n + m->load.n_output), sizeof *j->token);
    assert_non_null(j->token);
    if (common)
        memcpy(j->token, common, (size_t)n_common * sizeof *common);
    else
        put_text(j->token, n_common, m->seed << 32 | (uint64_t)j->group);
    put_text(j->token + n_common, m->load.n_question,
             m->seed << 32 | (uint64_t)(j - m->job + 1000));
    j->r                         = (fm_request){.token    = j->token,
                                                .n_prompt = n,
                                                .n_token  = n,
                                                .sampling = fm_sampling_default(),
                                                .user     = j};
    j->r.sampling.max_new_tokens = m->load.n_output;
    j->r.sampling.ignore_eos     = 1;
}

static int draw_group(model *m)
{
    double sum = 0, at;
    for (int g = 0; g < m->load.n_group; g++) sum += m->weight[g];
    at = uniform(m) * sum;
    for (int g = 0; g < m->load.n_group - 1; g++)
        if ((at -= m->weight[g]) < 0) return g;
    return m->load.n_group - 1;
}

static void shuffle(model *m)
{
    for (int i = m->n_job - 1; i > 0; i--) {
        const int k = (int)(uniform(m) * (i + 1)), g = m->job[i].group;
        m->job[i].group = m->job[k].group;
        m->job[k].group = g;
    }
}

static void make_load(model *m)
{
    const model_load *l    = &m->load;
    const int         n    = l->n_turn ? l->n_request / l->n_turn : l->n_request;
    const double      rate = l->n_turn ? l->rate / l->n_turn : l->rate;
    double            at   = 0;
    for (int g = 0; g < l->n_group; g++) {
        m->n_prefix[g] = (int)(l->n_prefix * pow(l->spread, 2 * uniform(m) - 1));
        m->weight[g]   = pow(g + 1, -l->zipf);
    }
    for (int i = 0; i < n; i++) {
        at += l->n_client ? 0 : exponential(m, 1 / rate);
        add_job(m, l->n_client ? i % l->n_group : draw_group(m),
                l->n_client && i >= l->n_client ? HUGE_VAL : at);
    }
    if (l->n_client) shuffle(m);
    m->next_of_loop = l->n_client;
    for (int i = 0; i < n; i++) write_prompt(m, &m->job[i], NULL, m->n_prefix[m->job[i].group]);
}

/* A client that always asks goes on to the next prompt, a conversation to its next turn. */
static void follow(model *m, const job *j)
{
    if (m->load.n_client && m->next_of_loop < m->n_job) m->job[m->next_of_loop++].due = now;
    if (j->turn + 1 >= m->load.n_turn) return;
    job *next  = add_job(m, j->group, now + exponential(m, m->load.think));
    next->turn = j->turn + 1;
    write_prompt(m, next, j->token, j->r.n_token);
}

/* --- where it goes --------------------------------------------------------- */

static int n_common(const job *a, const job *b)
{
    int n = 0;
    while (n < a->r.n_prompt && n < b->r.n_prompt && a->token[n] == b->token[n]) n++;
    return n;
}

static int by_tree(const model *m, const job *j)
{
    int low = 0, high = 0, best = 0, n_best = 0;
    for (int i = 0; i < m->n_server; i++) {
        if (m->server[i].load < m->server[low].load) low = i;
        if (m->server[i].load > m->server[high].load) high = i;
    }
    if (m->server[high].load > m->server[low].load + 64 &&
        m->server[high].load > 1.5 * m->server[low].load)
        return low;
    for (int i = 0; i < m->n_sent; i++) {
        const int n = n_common(m->sent[i], j);
        if (n <= n_best) continue;
        n_best = n;
        best   = m->sent[i]->worker;
    }
    return n_best > 0.3 * j->r.n_prompt ? best : low;
}

/* As the router counts a request that it sends (attempt.c). */
static int by_route(model *m, job *j)
{
    int32_t    n_cached = 0;
    fm__rcall *c        = &j->call;
    c->route            = &m->route;
    c->n_output         = m->load.n_output;
    for (int i = 0; i < j->r.n_prompt; i++) fm_ids_add(&c->prompt, j->token[i]);
    fm_worker *w = fm__choose_worker(&m->route, c, &n_cached);
    assert_non_null(w);
    c->worker  = w;
    c->counted = j->r.n_prompt - n_cached;
    w->pending_tokens += c->counted;
    w->promised_tokens += c->n_output;
    w->n_active++;
    fm__prompt_expect(c, w);
    return w->id - 1;
}

static void send_job(model *m, job *j)
{
    const int turn  = m->n_turn++ % m->n_server;
    int      *place = m->places ? &m->places->server[j - m->job] : NULL;
    j->worker       = m->policy == MODEL_OURS    ? by_route(m, j)
                      : m->policy == MODEL_TREE  ? by_tree(m, j)
                      : m->policy == MODEL_GIVEN ? *place
                                                 : turn;
    if (place) *place = j->worker;
    m->sent[m->n_sent++] = j;
    server *s            = &m->server[j->worker];
    s->load++;
    s->overhead += request_seconds;
    assert_int_equal(fm_sched_submit(s->sched, &j->r), FM_OK);
}

/* --- servers --------------------------------------------------------------- */

static void plan(server *s)
{
    const fm_batch *b = s->is_busy ? NULL : fm_sched_plan(s->sched);
    if (!b) return;
    s->n_prefill = s->n_decode = 0;
    for (int i = 0; i < b->n_span; i++)
        *(b->span[i].form == FM_FORM_PROMPT ? &s->n_prefill : &s->n_decode) += b->span[i].n_row;
    s->left     = step_seconds + prompt_row * s->n_prefill + decode_row * s->n_decode + s->overhead;
    s->overhead = 0;
    s->began    = now;
    s->is_busy  = 1;
}

static void see_first_tokens(model *m, const server *s)
{
    for (int i = 0; i < m->n_sent; i++) {
        job *j = m->sent[i];
        if (&m->server[j->worker] != s || j->first > 0 || j->r.n_token == j->r.n_prompt) continue;
        j->first = now;
        if (j->call.worker) j->call.worker->pending_tokens -= j->call.counted;
    }
}

static void end_step(model *m, server *s)
{
    static int32_t token[2 * RUNNING + FM_SCORE_ROWS];
    for (size_t i = 0; i < sizeof token / sizeof *token; i++)
        token[i] = 100000 + (int32_t)(m->n_draw++ % 100000);
    fm__rates_add(&s->rates, s->n_prefill, s->n_decode, now - s->began);
    s->is_busy = 0;
    fm_sched_commit(s->sched, token);
    see_first_tokens(m, s);
    for (fm_request *r; (r = fm_sched_pop_done(s->sched));) {
        job *j     = r->user;
        j->is_done = 1;
        s->load--;
        if (j->call.worker) {
            j->call.worker->promised_tokens -= j->call.n_output;
            j->call.worker->n_active--;
        }
        follow(m, j);
    }
}

static void read_feed(server *s)
{
    fm_worker_feed          *f     = &s->known.feed;
    fm_str                   lines = {0}, text = {0};
    int                      is_all = 0;
    const fm_page_feed_state state =
        fm_page_feed_read(s->feed, f->epoch, f->version, &lines, &is_all);
    fm_str_printf(&text,
                  "fathom-cache 1 epoch=%016" PRIx64 " version=%" PRIu64
                  " page_size=%d pages=%d all=%d prefill_rate=%.6g row_seconds=%.6g load=%d\n",
                  state.epoch, state.version, state.page_size, (int)state.n_page, is_all,
                  fm__rates_prefill(&s->rates), fm__rates_row(&s->rates), s->load);
    if (lines.len) fm_str_add(&text, lines.text, lines.len);
    assert_true(fm__feed_read(f, text.text));
    fm_cache_index_expire(&f->pages, now, 1024);
    f->rated     = now;
    s->next_read = now + feed_pause;
    fm_str_fini(&lines);
    fm_str_fini(&text);
}

static void open_server(model *m, server *s, int id)
{
    const int           n_page = (m->policy == MODEL_ONE ? MODEL_WORKERS : 1) * MODEL_POOL / PAGE;
    const fm_kv_options kv     = {.n_page      = n_page,
                                  .page_size   = PAGE,
                                  .max_lease   = RUNNING,
                                  .max_context = CONTEXT,
                                  .share       = 1,
                                  .has_tiers   = 1};
    const fm_sched_options o   = {.max_running      = RUNNING,
                                  .chunk            = CHUNK,
                                  .max_prefill      = CHUNK,
                                  .max_context      = CONTEXT,
                                  .page_size        = PAGE,
                                  .n_page           = n_page,
                                  .conservativeness = 1};
    assert_int_equal(fm_kv_create(&s->kv, &kv), FM_OK);
    assert_int_equal(fm_page_feed_create(&s->feed, n_page, PAGE), FM_OK);
    assert_int_equal(fm_page_feed_follow(s->feed, s->kv, 0), FM_OK);
    assert_int_equal(fm_sched_create(&s->sched, &o, s->kv), FM_OK);
    s->known.id      = id;
    s->known.health  = FM_WORKER_UP;
    s->known.next    = m->route.workers;
    m->route.workers = &s->known;
    read_feed(s);
}

/* --- a run ----------------------------------------------------------------- */

static double speed(const model *m)
{
    int n_busy = 0;
    for (int i = 0; i < m->n_server; i++) n_busy += m->server[i].is_busy;
    if (m->policy == MODEL_ONE) return m->n_core;
    return n_busy > m->n_core ? (double)m->n_core / n_busy : 1;
}

static job *next_job(model *m)
{
    job *first = NULL;
    for (job *j = m->job; j < m->job + m->n_job; j++)
        if (j->worker < 0 && isfinite(j->due) && (!first || j->due < first->due)) first = j;
    return first;
}

static void pass_time(model *m, double until)
{
    const double done = (until - now) * speed(m);
    for (int i = 0; i < m->n_server; i++)
        if (m->server[i].is_busy) m->server[i].left -= done;
    now = until;
}

static server *next_to_end(model *m)
{
    server *first = NULL;
    for (server *s = m->server; s < m->server + m->n_server; s++)
        if (s->is_busy && (!first || s->left < first->left)) first = s;
    return first;
}

/* When its feed replies: after the step that evicted something and after the pause, or later
 * (serve/loop/cache_feed.c). */
static double time_of_reply(const server *s)
{
    const fm_page_feed_state f  = fm_page_feed_get_state(s->feed);
    const uint64_t           v  = s->known.feed.version;
    const double             at = f.version == v  ? HUGE_VAL
                                  : f.evicted > v ? s->next_read
                                                  : s->next_read + insert_wait;
    return fmax(at, now);
}

static server *next_to_read(model *m)
{
    server *first = m->server;
    for (server *s = m->server; s < m->server + m->n_server; s++)
        if (time_of_reply(s) < time_of_reply(first)) first = s;
    return first;
}

/* The next of: a step ends, a request comes, a feed is read.  0: there is nothing more. */
static int go_on(model *m)
{
    for (int i = 0; i < m->n_server; i++) plan(&m->server[i]);
    server      *ends = next_to_end(m), *reads = next_to_read(m);
    job         *comes = next_job(m);
    const double end   = ends ? now + ends->left / speed(m) : HUGE_VAL;
    const double due   = comes ? fmax(comes->due, now) : HUGE_VAL;
    const double read  = time_of_reply(reads);
    if (!ends && !comes) return 0;
    if (read < fmin(end, due)) {
        pass_time(m, read);
        read_feed(reads);
    } else if (end < due) {
        pass_time(m, end);
        end_step(m, ends);
    } else {
        pass_time(m, due);
        send_job(m, comes);
    }
    return 1;
}

static void close_model(model *m)
{
    for (server *s = m->server; s < m->server + m->n_server; s++) {
        fm_sched_destroy(s->sched);
        fm_page_feed_destroy(s->feed);
        fm_kv_destroy(s->kv);
        fm_cache_index_fini(&s->known.feed.pages);
    }
    for (job *j = m->job; j < m->job + m->n_job; j++) {
        free(j->token);
        fm_ids_fini(&j->call.prompt);
        free(j->call.page);
    }
    free(m);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static model_result result_of(const model *m)
{
    static double ttft[MODEL_REQUESTS];
    model_result  r = {0};
    for (int i = 0; i < m->n_job; i++) {
        assert_true(m->job[i].is_done);
        r.n_cached += m->job[i].r.n_cached;
        ttft[i] = m->job[i].first - m->job[i].due;
    }
    qsort(ttft, (size_t)m->n_job, sizeof *ttft, compare);
    r.ttft50 = ttft[m->n_job / 2];
    r.ttft99 = ttft[(int)(0.99 * m->n_job)];
    return r;
}

model_result model_run(const model_load *l, model_policy p, int n_core, uint64_t seed)
{
    return model_run_places(l, p, n_core, seed, NULL);
}

model_result model_run_places(const model_load *l, model_policy p, int n_core, uint64_t seed,
                              model_places *places)
{
    model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    *m                = (model){.load     = *l,
                                .policy   = p,
                                .places   = places,
                                .n_server = p == MODEL_ONE ? 1 : MODEL_WORKERS,
                                .n_core   = n_core,
                                .seed     = seed};
    m->opt.no_breaker = 1;
    m->route.opt      = &m->opt;
    m->route.policy   = FM_ROUTE_CACHE_AWARE;
    now               = 0;
    make_load(m);
    for (int i = m->n_server; i-- > 0;) open_server(m, &m->server[i], i + 1);
    while (go_on(m)) continue;
    const model_result r = result_of(m);
    close_model(m);
    return r;
}
