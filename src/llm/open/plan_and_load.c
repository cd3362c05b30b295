/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an engine: how memory is divided, and the weights that go into it. */
#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/rng.h"
#include "device/host.h"
#include "llm/open/agree.h"
#include "llm/open/open_internal.h"

enum { MAX_PLAN_BYTES = 1 << 30, SMALL_CHUNK = 16 };

/* --- plan ------------------------------------------------------------------ */

/* What the messages between ranks may hold. */
fm_status fm__open_set_courier(opening *p)
{
    const fm_engine *e     = p->e;
    const int        pages = fm__part_of(e->limits.max_context, e->limits.page_size);
    const int64_t    most  = (int64_t)p->sched.max_running * pages;
    const int        ahead = !e->backend->is_host && e->limits.n_lane == 1; /* two under way */
    const int        lanes = e->limits.n_lane + ahead;
    if (most * e->layout.n_group > MAX_PLAN_BYTES / (int64_t)sizeof(int32_t))
        return fm_fail(FM_E_ARG,
                       "%d sequences of %d tokens make step plans too long to send: lower "
                       "--max-running-requests or --context-length",
                       p->sched.max_running, e->limits.max_context);
    p->courier = (fm_courier_options){.limits    = {.n_lane         = e->tiers.file_bytes ? 2 * lanes : lanes,
                                                    .n_group        = e->layout.n_group,
                                                    .max_rows       = e->limits.max_rows,
                                                    .max_spans      = 2 * p->sched.max_running,
                                                    .max_outs       = e->limits.max_out,
                                                    .max_pages      = (int)most,
                                                    .max_span_pages = pages,
                                                    .page_size      = e->limits.page_size,
                                                    .n_page         = INT_MAX,
                                                    .vocab          = e->config.vocab,
                                                    .n_kept         = e->limits.n_kept,
                                                    .max_draft      = e->limits.max_draft,
                                                    .max_moves      = fm__tiers_max_moves(p->e),
                                                    .n_slot         = INT_MAX},
                                      .plan      = e->groups.plan,
                                      .heads     = e->groups.heads,
                                      .group     = e->layout.shard.group.index,
                                      .is_leader = e->layout.is_leader};
    p->e->tiers.lane0 = lanes;
    return FM_OK;
}

/* The chunk is halved until the workspace of a step fits in so many bytes; 0: it never does. */
static int64_t chunk_that_fits(const opening *p, const fm_backend *b, size_t room)
{
    const fm_engine *e     = p->e;
    fm_sched_options sched = p->sched;
    fm_run_limits    limit = e->limits;
    for (sched.chunk /= 2; sched.chunk >= SMALL_CHUNK; sched.chunk /= 2) {
        limit.max_rows = fm_sched_max_rows(&sched);
        if (b->workspace(&e->config, &e->layout.shard, p->act, &limit) <= room)
            return (int64_t)sched.chunk * e->layout.n_group;
    }
    return 0;
}

/* Indexes of n-grams are in main memory: with the workspace of a back end that is there, too. */
static size_t ngrams_elsewhere(const opening *p)
{
    const fm_backend *b = p->e->backend;
    return b->is_host || (b->also && b->also->is_host) ? 0 : fm__open_ngram_bytes(p);
}

static fm_status plan_on(fm_plan *out, const opening *p, const fm_backend *b,
                         const fm_backend_memory *m, size_t weights, int64_t max_tokens)
{
    const fm_engine   *e     = p->e;
    const size_t workspace = b->workspace(&e->config, &e->layout.shard, p->act, &e->limits);
    const size_t kv_page   = fm_planes_page_bytes(&e->limits.planes, e->limits.page_size);
    const size_t plans     = p->n_rank > 1 ? fm_courier_bytes(&p->courier) : 0;
    const size_t beside    = b->is_host ? e->tiers.bytes + fm__open_ngram_bytes(p) : 0;
    char               limit[400] = "";
    if (b->is_host) fm_host_limit_words(limit, sizeof limit);
    fm_plan_request q      = {.n_rank           = p->n_rank,
                              .n_layer          = e->config.n_layer,
                              .limited_by       = limit,
                              .where            = m->where,
                              .total            = m->total,
                              .available        = m->available,
                              .reserve          = m->reserve,
                              .kept_for         = m->kept_for,
                              .mem_fraction     = p->o->mem_fraction_static,
                              .max_total_tokens = max_tokens,
                              .page_size        = e->limits.page_size,
                              .max_running      = p->sched.max_running * e->limits.n_lane,
                              .max_context      = p->sched.max_context,
                              .weights          = weights,
                              .workspace        = workspace + plans + beside,
                              .kv_page          = kv_page + fm_kv_book_bytes(e->limits.page_size, e->tiers.file_bytes > 0),
                              .kv_type          = fm_planes_type(&e->limits.planes),
                              .host             = ngrams_elsewhere(p),
                              .host_for         = "n-grams for drafts"};
    const size_t    budget = fm_plan_budget(&q), others = q.workspace - workspace + weights + q.kv_page;
    if (workspace + others > budget && others < budget)
        q.chunk_fits = chunk_that_fits(p, b, budget - others);
    return fm_plan_make(out, &q);
}

/* Where two back ends run, both have the pages that the poorer can hold. */
fm_status fm__open_make_plan(opening *p, int64_t max_tokens)
{
    fm_engine        *e    = p->e;
    const fm_backend *also = e->backend->also;
    FM_TRY(plan_on(&e->plan, p, e->backend, &p->memory, e->slab.bytes, max_tokens));
    if (!also) return FM_OK;
    FM_TRY(plan_on(&e->beside.plan, p, also, &p->beside, e->beside.bytes, max_tokens));
    const int64_t here = e->plan.max_tokens, there = e->beside.plan.max_tokens;
    if (here > there) return plan_on(&e->plan, p, e->backend, &p->memory, e->slab.bytes, there);
    return plan_on(&e->beside.plan, p, also, &p->beside, e->beside.bytes, here);
}

static uint64_t content_of(const opening *p)
{
    char            text[512];
    const fm_shard *s = &p->e->layout.shard;
    snprintf(text, sizeof text, "%s %d %d/%d %d/%d %d/%d %d-%d+%d %lld", p->path.name, (int)p->act,
             s->attn.index, s->attn.n, s->expert.index, s->expert.n, s->channel.index, s->channel.n,
             s->layer.begin, s->layer.end, s->n_mtp, (long long)p->o->seed);
    return fm_rng_key(text, p->checkpoint);
}

/* First as if this rank had the whole host, so that what cannot fit is refused before memory is
 * reserved; then with its share. */
static fm_status plan_memory(opening *p)
{
    fm_engine    *e     = p->e;
    const size_t  bytes = e->slab.bytes;
    fm_status     rc    = fm__open_set_courier(p);
    if (rc == FM_OK) rc = fm__open_make_plan(p, p->o->max_total_tokens);
    FM_TRY(fm__agree_all_well(e->world, rc));
    if (e->backend->is_host) {
        const uint64_t content = content_of(p);
        FM_TRY(fm__open_together(e, fm_shared_open(&e->slab, e->world, content, bytes, "weights")));
        p->memory.total     = e->slab.total;
        p->memory.available = e->slab.available;
    }
    if (p->n_rank == 1) return FM_OK;
    FM_TRY(fm__agree_all_well(e->world, fm__open_make_plan(p, p->o->max_total_tokens)));
    int64_t n_page = e->plan.n_page;
    FM_TRY(fm__agree_least(e->world, &n_page));
    return fm__open_make_plan(p, n_page * e->limits.page_size);
}

/* Lanes divide the pages, but only as far as one can hold the longest text: a
 * prompt that one rank would take is not refused for the sake of speed. */
void fm__open_share_pages(opening *p)
{
    fm_engine *e     = p->e;
    const int  texts = (int)(e->plan.max_tokens / p->sched.max_context);
    p->n_lane        = texts < 1 ? 1 : texts < e->limits.n_lane ? texts : e->limits.n_lane;
    e->limits.n_page = p->courier.limits.n_page = e->plan.n_page;
    p->sched.n_page  = e->limits.lane_pages = e->plan.n_page / p->n_lane;
    fm__open_size_host(p);
    p->courier.limits.n_slot    = e->tiers.n_slot + e->tiers.n_host;
    p->courier.limits.n_check   = e->tiers.n_slot + e->tiers.n_check;
    p->courier.limits.max_moves = fm__tiers_max_moves(e);
    e->plan.n_host_page         = e->tiers.n_host;
    if (e->backend->is_host) return;
    e->plan.pinned = e->tiers.bytes;
    if (e->backend->pinned)
        e->plan.pinned += e->backend->pinned(&e->config, &e->layout.shard, &e->limits);
}

/* Every rank of the host pins as much. */
static fm_status check_pinned(opening *p)
{
    fm_plan *plan = &p->e->plan;
    if (!plan->pinned) return FM_OK;
    plan->main_available = fm__open_main_memory(p);
    if (plan->pinned <= plan->main_available || !plan->n_host_page) return FM_OK;
    const size_t others = plan->pinned - (size_t)plan->n_host_page * p->e->tiers.file_bytes;
    const size_t left   = plan->main_available > others ? plan->main_available - others : 0;
    return fm_fail(FM_E_OOM,
                   "%d pages of prefixes take %.2f GiB of main memory, of which %.2f GiB are free for "
                   "each rank: --hicache-size %.1f fits",
                   plan->n_host_page, (double)plan->pinned / 0x1p30,
                   (double)plan->main_available / 0x1p30, (double)(left / 100000000) * 0.1);
}

static fm_status show(opening *p)
{
    fm_engine *e     = p->e;
    fm_str     ranks = {0};
    fm_status  rc    = FM_OK;
    if (p->n_rank > 1) {
        rc = fm_world_placement(e->world, &ranks);
        fm_layout_print(&e->layout, p->stage, &e->config, &ranks);
    }
    const fm_plan all[] = {e->plan, e->beside.plan};
    if (rc == FM_OK && fm__open_shows(p))
        p->hooks->plan(all, e->backend->also ? 2 : 1, p->path.name, ranks.text);
    fm_str_fini(&ranks);
    return rc;
}

fm_status fm__open_plan(opening *p)
{
    FM_TRY(plan_memory(p));
    FM_TRY(fm__open_bound_host(p));
    fm__open_share_pages(p);
    FM_TRY(fm__agree_all_well(p->e->world, check_pinned(p)));
    return show(p);
}

/* --- load ------------------------------------------------------------------ */

static fm_status place_weights(opening *p)
{
    fm_engine *e = p->e;
    if (!e->backend->is_host) {
        FM_TRY(e->backend->alloc(&e->slab.base, e->slab.bytes, "weights"));
        e->slab.fills = 1;
    } else if (e->slab.fills) {
        fm_threads_spread(e->threads, e->slab.base, e->slab.bytes);
    }
    fm_slab place = {.base = e->slab.base, .size = e->slab.bytes};
    fm_weights_fini(&e->weights);
    return fm__open_lay_out(p, &e->weights, e->backend->packing, &place);
}

/* The same weights once more, as the back end that runs along wants them. */
static fm_status load_beside(opening *p)
{
    fm_engine        *e    = p->e;
    const fm_backend *also = e->backend->also;
    if (!also) return FM_OK;
    FM_TRY(also->alloc(&e->beside.slab, e->beside.bytes, "weights"));
    fm_slab place = {.base = e->beside.slab, .size = e->beside.bytes};
    fm_weights_fini(&e->beside.weights);
    FM_TRY(fm__open_lay_out(p, &e->beside.weights, also->packing, &place));
    return also->fill(&e->beside.weights, e->source, e->limits.n_thread, fm__open_shows(p));
}

static fm_status load(opening *p)
{
    fm_engine   *e     = p->e;
    FM_TRY(place_weights(p));
    const double began = fm_now();
    if (e->slab.fills)
        FM_TRY(e->backend->fill(&e->weights, e->source, e->limits.n_thread, fm__open_shows(p)));
    FM_TRY(load_beside(p));
    e->load_seconds = fm_now() - began;
    fm_source_close(e->source);
    e->source = NULL;
    return FM_OK;
}

fm_status fm__open_load(opening *p)
{
    fm_engine *e = p->e;
    FM_TRY(fm__agree_all_well(e->world, load(p)));
    return e->backend->is_host ? fm_shared_ready(&e->slab, e->limits.n_thread) : FM_OK;
}
