/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of a request, read as the workers read them: the same dialects, chat
 * templates and tokenizer.  The router needs them to know who has their prefix; what it cannot
 * read it passes on unread, and the worker says what is wrong with it. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/read.h"
#include "llm/kv/page_hash.h"
#include "llm/load/model_path.h"
#include "llm/route/route_internal.h"
#include "llm/serve/loop/responses_store.h"
#include "llm/serve/loop/workers.h"

enum { GUESSED_OUTPUT = 256, LONG_BODY = 32 << 10 };
static const double expected_seconds = 20;

struct fm__prompts {
    fm_tokenizer         *tokenizer;
    fm_tokenizer_scratch *scratch;
    fm__facts             facts;
};

void fm__prompts_close(fm__prompts *p)
{
    if (!p) return;
    fm_tokenizer_scratch_destroy(p->scratch);
    fm_tokenizer_close(p->tokenizer);
    fm__responses_destroy(p->facts.responses);
    free(p);
}

static fm_status open_dir(fm__prompts *p, const char *dir, const fm_route_options *o)
{
    FM_TRY(fm_tokenizer_open(&p->tokenizer, dir));
    FM_TRY(fm_tokenizer_scratch_create(&p->scratch, p->tokenizer));
    FM_TRY(fm__responses_create(&p->facts.responses));
    p->facts.tokenizer    = p->tokenizer;
    p->facts.prompts_only = 1;
    p->facts.defaults     = fm_sampling_default();
    p->facts.vocab        = INT32_MAX; /* whether it fits is for the worker to say */
    p->facts.context      = INT32_MAX / 2;
    p->facts.model        = "";
    fm__facts_pick(&p->facts, o->reasoning_parser, o->tool_call_parser);
    return FM_OK;
}

/* A directory with a tokenizer, or the name of a model that has one. */
fm_status fm__prompts_open(fm__prompts **out, const char *path, const fm_route_options *o)
{
    fm_model_path where;
    const char   *dir = path;
    if (!o->tokenizer_path && !fm_tokenizer_exists(path)) {
        FM_TRY(fm_model_path_find(&where, path));
        dir = where.dir;
    }
    if (!*dir || !fm_tokenizer_exists(dir))
        return fm_fail(FM_E_IO, "%s: there is no tokenizer", path);
    fm__prompts *p = calloc(1, sizeof *p);
    if (!p) return fm_fail(FM_E_OOM, "tokenizer");
    const fm_status rc = open_dir(p, dir, o);
    if (rc != FM_OK) {
        fm__prompts_close(p);
        return rc;
    }
    *out = p;
    return FM_OK;
}

/* The first prompt stands for all. */
static void take(fm__rcall *c, fm__ask *a)
{
    const fm_sampling *s = &fm__ask_params(a, 0)->sampling;
    c->prompt            = a->prompt[0].token;
    a->prompt[0].token   = (fm_ids){0};
    c->n_output          = s->max_new_tokens < GUESSED_OUTPUT ? s->max_new_tokens : GUESSED_OUTPUT;
}

/* Long prompts would hold up every stream of the loop. */
static void give_to_thread(fm__rcall *c)
{
    fm__task *task = calloc(1, sizeof *task);
    FM_BUG_UNLESS(task != NULL);
    *task = (fm__task){
        .call = c->id, .body = c->body, .body_len = c->body_len, .read = c->dialect->read};
    c->body  = NULL; /* comes back with the task */
    c->state = FM__CALL_READING;
    fm__workers_give(c->route->readers, task);
}

static void take_task(fm_route *r, fm__task *task)
{
    fm__rcall *c = r->calls;
    while (c && c->id != task->call) c = c->next;
    if (!c) return; /* the client left meanwhile */
    c->body    = task->body;
    task->body = NULL;
    if (task->rc == FM_OK && task->ask && task->ask->n_prompt) take(c, task->ask);
    fm__rcall_admit(c);
}

static void on_read(void *ctx)
{
    fm_route *r = ctx;
    for (fm__task *task; (task = fm__workers_take(r->readers));) {
        take_task(r, task);
        fm__task_destroy(task);
    }
}

fm_status fm__prompts_start(fm_route *r)
{
    if (!r->prompts || r->readers) return FM_OK;
    FM_TRY(fm_loop_bell(&r->read, r->loop, on_read, r));
    return fm__workers_start(&r->readers, 1, &r->prompts->facts, r->read);
}

void fm__prompts_stop(fm_route *r)
{
    fm__workers_stop(r->readers);
    fm_loop_event_destroy(r->read);
    fm__prompts_close(r->prompts);
}

static void read_now(fm__rcall *c, const fm__prompts *p)
{
    json_t *body = NULL;
    if (fm_json_parse(&body, c->body, c->body_len, "request") != FM_OK) return;
    fm__ask         *a = fm__ask_create();
    const fm__reader r = {.facts = &p->facts, .scratch = p->scratch};
    if (json_is_object(body) && c->dialect->read(a, body, &r) == FM_OK && a->n_prompt) take(c, a);
    fm__ask_release(a);
    json_decref(body);
}

int fm__prompt_read(fm__rcall *c)
{
    const fm_route *r = c->route;
    if (!r->prompts || !c->dialect || !c->body_len) return 0;
    if (c->body_len > LONG_BODY && r->readers) {
        give_to_thread(c);
        return 1;
    }
    read_now(c, r->prompts);
    return 0;
}

/* Identities of the prompt's pages of this size; a page that is not full is never shared, and
 * one token is always computed. */
static void hash_pages(fm__rcall *c, int page_size)
{
    const int n = c->prompt.n ? (int)((c->prompt.n - 1) / (size_t)page_size) : 0;
    if (c->page_size == page_size) return;
    free(c->page);
    c->page      = calloc((size_t)n + 1, sizeof *c->page);
    c->n_page    = n;
    c->page_size = page_size;
    FM_BUG_UNLESS(c->page != NULL);
    fm_page_hash h = fm_page_hash_root(0);
    for (int i = 0; i < n; i++) {
        h          = fm_page_hash_next(h, c->prompt.id + (size_t)i * (size_t)page_size, page_size);
        c->page[i] = h.lo;
    }
}

int32_t fm__prompt_cached(fm__rcall *c, const fm_worker *w)
{
    if (!c->prompt.n || !w->feed.page_size) return 0;
    hash_pages(c, w->feed.page_size);
    return fm_cache_index_match(&w->feed.pages, c->page, c->n_page, fm_now()) * c->page_size;
}

void fm__prompt_expect(fm__rcall *c, fm_worker *w)
{
    if (!c->prompt.n || !w->feed.page_size) return;
    hash_pages(c, w->feed.page_size);
    c->expected = fm_now() + expected_seconds;
    for (int i = 0; i < c->n_page; i++)
        fm_cache_index_expect(&w->feed.pages, c->page[i], c->expected);
    fm_cache_index_use(&w->feed.pages, c->page, c->n_page, fm_now());
}

void fm__prompt_unexpect(const fm__rcall *c, fm_worker *w)
{
    if (!c->page || c->page_size != w->feed.page_size) return;
    for (int i = 0; i < c->n_page; i++)
        fm_cache_index_unexpect(&w->feed.pages, c->page[i], c->expected);
}
