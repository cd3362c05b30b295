/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/tier_policy/tier_policy.h"

#include <stdlib.h>
#include <string.h>

#include "llm/tier_policy/tier_policy_internal.h"

static int n_window(const fm_tier_policy_options *o)
{
    enum { HOST_PAGES = 512 }; /* of one load, before one step */
    const int least = o->n_host ? HOST_PAGES : 1;
    return o->n_slot > least ? o->n_slot : least;
}

/* The most moves before one pass: each slot dropped and read into again, each check ended and begun
 * again, a whole window of pages copied to the pool, and all buffers and copies to host memory. */
int fm_tier_policy_most_moves(const fm_tier_policy_options *o)
{
    return 2 * (o->n_slot + o->n_check) + n_window(o) + o->n_buffer + o->most_out;
}

fm_page_move *fm__tier_policy_move(fm_tier_policy *s, fm_move_kind kind)
{
    if (s->moves.n == s->moves.cap) return NULL;
    fm_page_move *m = &s->moves.move[s->moves.n++];
    *m              = (fm_page_move){.kind = (int32_t)kind, .page = -1, .slot = -1};
    return m;
}

/* --- slots for reading ----------------------------------------------------- */

void fm__tier_policy_rest(fm_tier_policy *s, int slot)
{
    if (!s->opt.is_async) {
        s->free_slot[s->n_free_slot++] = slot;
        return;
    }
    const int at        = (s->first_resting + s->n_resting++) % s->opt.n_slot;
    s->resting[at].slot = slot;
    s->resting[at].step = s->step;
}

static void wake_rested(fm_tier_policy *s)
{
    while (s->n_resting && s->step - s->resting[s->first_resting].step >= FM__STEPS_REST) {
        s->free_slot[s->n_free_slot++] = s->resting[s->first_resting].slot;
        s->first_resting               = (s->first_resting + 1) % s->opt.n_slot;
        s->n_resting--;
    }
}

/* --- saving ---------------------------------------------------------------- */

static void describe(const fm_tier_policy *s, fm_page_move *m, const fm_kv_page *p)
{
    m->page  = p->page;
    m->key   = p->key;
    m->depth = p->depth;
    memcpy(m->token, p->token, (size_t)s->page_size * sizeof *p->token);
}

/* 0: not now, all buffers are in use. */
static int save_to_file(fm_tier_policy *s, const fm_kv_page *p)
{
    if (!fm__tier_policy_writes_files(s) || fm__tier_policy_has_file(s, p->key)) return 1;
    if (s->n_writing >= fm__tier_policy_free_buffers(s)) return 0;
    fm_page_move *m = fm__tier_policy_move(s, FM_MOVE_WRITE);
    if (!m) return 0;
    describe(s, m, p);
    s->n_writing++;
    return 1;
}

/* It becomes a file when its bytes are sure to be in host memory. */
static void keep_for_file(fm_tier_policy *s, const fm_kv_page *p, int32_t slot)
{
    if (!fm__tier_policy_writes_files(s) || s->n_kept == FM__KEPT) return;
    fm__kept *k = &s->kept[(s->first_kept + s->n_kept++) % FM__KEPT];
    *k          = (fm__kept){.slot = slot, .depth = p->depth, .key = p->key, .step = s->step};
    memcpy(k->token, p->token, (size_t)s->page_size * sizeof *p->token);
}

static int save_to_host(fm_tier_policy *s, const fm_kv_page *p, int is_evicted)
{
    if (fm_host_find(&s->host, p->key) != FM__HOST_NONE) return 1;
    if (s->n_out == s->opt.most_out) return 0;
    const int32_t slot = fm_host_take(&s->host, p->key);
    if (slot == FM__HOST_NONE) return 0;
    fm_page_move *m = fm__tier_policy_move(s, is_evicted ? FM_MOVE_OUT_NOW : FM_MOVE_OUT);
    FM_BUG_UNLESS(m); /* counted by most_out */
    m->page = p->page;
    m->slot = s->opt.host0 + slot;
    m->key  = p->key;
    s->n_out++;
    s->stats.n_host_page++;
    keep_for_file(s, p, slot);
    return 1;
}

static int save(fm_tier_policy *s, const fm_kv_page *p, int is_evicted)
{
    return s->host.n ? save_to_host(s, p, is_evicted) : save_to_file(s, p);
}

static void save_evicted(void *policy, const fm_kv_page *p)
{
    fm_tier_policy *s = policy;
    s->stats.n_unsaved += !save(s, p, 1);
}

/* Host memory -> files, as far as buffers are free. */
static int keep(fm_tier_policy *s)
{
    int n = 0;
    for (; s->n_kept; s->first_kept = (s->first_kept + 1) % FM__KEPT, s->n_kept--) {
        const fm__kept *k = &s->kept[s->first_kept];
        if (s->step - k->step < FM__STEPS_REST) return n;
        if (!fm__tier_policy_writes_files(s) || !fm_host_holds(&s->host, k->slot, k->key) ||
            fm__tier_policy_has_file(s, k->key))
            continue;
        if (s->n_writing >= fm__tier_policy_free_buffers(s)) return n;
        fm_page_move *m = fm__tier_policy_move(s, FM_MOVE_KEEP);
        if (!m) return n;
        m->slot  = s->opt.host0 + k->slot;
        m->key   = k->key;
        m->depth = k->depth;
        memcpy(m->token, k->token, sizeof m->token);
        s->n_writing++;
        n++;
    }
    return n;
}

int fm_tier_policy_save(fm_tier_policy *s)
{
    int n = keep(s);
    for (fm_kv_page p; fm_kv_next_unsaved(s->opt.kv, &p) && save(s, &p, 0); n++)
        fm_kv_saved(s->opt.kv, p.page);
    return n;
}

void fm_tier_policy_settled(fm_tier_policy *s)
{
    s->step += FM__STEPS_REST;
    wake_rested(s);
}

void fm_tier_policy_flush(fm_tier_policy *s) { fm_host_forget_all(&s->host); }

/* --- calls ----------------------------------------------------------------- */

static fm_status allocate(fm_tier_policy *s)
{
    const size_t n_slot = (size_t)s->opt.n_slot + 1, n = (size_t)s->n_window;
    s->moves.cap  = fm_tier_policy_most_moves(&s->opt);
    s->moves.move = calloc((size_t)s->moves.cap, sizeof *s->moves.move);
    s->free_slot  = calloc(n_slot, sizeof *s->free_slot);
    s->free_check = calloc((size_t)s->opt.n_check + 1, sizeof *s->free_check);
    s->resting    = calloc(n_slot, sizeof *s->resting);
    s->page       = calloc(n, sizeof *s->page);
    s->kept       = calloc(FM__KEPT, sizeof *s->kept);
    int is_whole  = s->moves.move && s->free_slot && s->free_check && s->resting && s->page && s->kept;
    for (int i = 0; i < FM__LOADS; i++)
        is_whole &= (s->load[i].window = calloc(n, sizeof *s->load[i].window)) != NULL;
    if (!is_whole) return fm_fail(FM_E_OOM, "moves of pages");
    return fm_host_books_init(&s->host, s->opt.n_host);
}

fm_status fm_tier_policy_create(fm_tier_policy **out, const fm_tier_policy_options *o)
{
    fm_tier_policy *s = calloc(1, sizeof *s);
    if (!s) return fm_fail(FM_E_OOM, "moves of pages");
    s->opt             = *o;
    s->page_size       = fm_kv_get_options(o->kv)->page_size;
    s->n_window        = n_window(o);
    const fm_status rc = allocate(s);
    if (rc != FM_OK) {
        fm_tier_policy_destroy(s);
        return rc;
    }
    for (int i = o->n_slot; i > 0; i--) s->free_slot[s->n_free_slot++] = o->slot0 + i - 1;
    for (int i = o->n_check; i > 0; i--) s->free_check[s->n_free_check++] = o->check0 + i - 1;
    fm_sched_await_lookups(o->sched);
    fm_kv_set_saving(o->kv, o->saving, save_evicted, s);
    *out = s;
    return FM_OK;
}

void fm_tier_policy_destroy(fm_tier_policy *s)
{
    if (!s) return;
    for (int i = 0; i < FM__LOADS; i++) {
        if (s->load[i].is_held) fm_kv_end(s->opt.kv, &s->load[i].lease);
        free(s->load[i].window);
    }
    fm_host_books_fini(&s->host);
    free(s->moves.move);
    free(s->free_slot);
    free(s->free_check);
    free(s->resting);
    free(s->page);
    free(s->kept);
    free(s);
}

static int32_t n_held(const fm_tier_policy *s)
{
    int32_t n = 0;
    for (int i = 0; i < FM__LOADS; i++)
        if (s->load[i].is_held) n += s->load[i].lease.n_page - s->load[i].lease.n_shared;
    return n;
}

/* While sequences run, what comes in must be there before the step after next. */
static int most_in(const fm_tier_policy *s)
{
    if (!fm_sched_n_running(s->opt.sched)) return s->n_window;
    return s->opt.is_async ? fm_load_fits_step(s->opt.costs, s->opt.most_in) : s->opt.most_in;
}

void fm_tier_policy_prepare(fm_tier_policy *s, double now)
{
    s->now = now;
    s->step++;
    s->most_in_now = most_in(s);
    s->has_given = s->n_reserved = 0;
    wake_rested(s);
    fm__loads_advance(s);
    fm__loads_start(s);
    fm_tier_policy_save(s);
    fm_sched_set_held(s->opt.sched, n_held(s));
}

fm_moves *fm_tier_policy_moves(fm_tier_policy *s)
{
    s->n_writing = s->n_out = 0; /* they are made now */
    return &s->moves;
}

int fm_tier_policy_is_loading(const fm_tier_policy *s)
{
    for (int i = 0; i < FM__LOADS; i++)
        if (s->load[i].is_used) return 1;
    return 0;
}

fm_tier_policy_stats fm_tier_policy_get_stats(const fm_tier_policy *s)
{
    fm_tier_policy_stats st = s->stats;
    for (int i = 0; i < FM__LOADS; i++) st.n_loading += s->load[i].is_used;
    return st;
}
