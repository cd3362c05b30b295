/* SPDX-License-Identifier: Apache-2.0 */
/* Pages on their way between the pool and the tiers below it: how a rank does what was
 * decided. */
#include <string.h>

#include "base/clock.h"
#include "llm/engine/engine_internal.h"

static char *image_of(const fm_tiers *t, int slot)
{
    const int at = slot < t->n_slot ? slot : slot + t->n_buffer; /* buffers lie between */
    return fm_page_file_image(t->memory + (size_t)at * t->file_bytes);
}

static fm_status make_copies(fm_engine *e)
{
    fm_tiers *t = &e->tiers;
    const int n = t->n_copy;
    t->n_copy   = 0;
    t->n_asked += n > 0;
    return fm_run_copy_pages(e->run, t->copy, n);
}

/* Copies that were added since the last call of make_copies belong to the next. */
static void add_copy(fm_engine *e, const fm_page_move *m)
{
    fm_tiers *t             = &e->tiers;
    t->copied_in[m->slot]   = t->n_asked + 1;
    t->copy[t->n_copy++]    = (fm_page_copy){.page   = m->page,
                                             .image  = image_of(t, m->slot),
                                             .is_out = m->kind != FM_MOVE_IN && m->kind != FM_MOVE_IN_NOW,
                                             .is_now = m->kind == FM_MOVE_OUT_NOW || m->kind == FM_MOVE_IN_NOW};
}

/* --- when copies have been made -------------------------------------------- */

/* The copies from and to the slot's memory that were asked for. */
static int is_made(const fm_tiers *t, int slot)
{
    return (int32_t)(t->n_made - t->copied_in[slot]) >= 0;
}

static void sum_arrived(fm_tiers *t)
{
    for (; t->n_unsummed; t->n_unsummed--) {
        const int slot = t->unsummed[t->first_unsummed];
        if (!is_made(t, t->n_slot + slot)) return;
        t->first_unsummed    = (t->first_unsummed + 1) % t->n_host;
        t->is_unsummed[slot] = 0;
        fm_host_sums_make(t->sums, slot);
    }
}

static fm_store_page page_of(const fm_page_move *m)
{
    return (fm_store_page){.key = m->key, .token = m->token, .depth = m->depth};
}

static void start_held_reads(fm_tiers *t)
{
    int n = 0;
    for (int i = 0; i < t->n_held; i++) {
        const fm_page_move *m    = &t->held[i];
        const fm_store_page page = page_of(m);
        if (is_made(t, m->slot))
            fm_store_read(t->store, m->slot, &page);
        else
            t->held[n++] = *m;
    }
    t->n_held = n;
}

fm_status fm__tiers_made(fm_engine *e, int waits)
{
    fm_tiers *t = &e->tiers;
    t->n_made   = e->run->ops->copied ? t->n_made : t->n_asked;
    if (t->n_made != t->n_asked) FM_TRY(fm_run_copied(e->run, waits, &t->n_made));
    sum_arrived(t);
    start_held_reads(t);
    return FM_OK;
}

/* --- what a copy costs ------------------------------------------------------ */

static fm_status copy_first_pages(fm_engine *e, int n, fm_move_kind kind)
{
    for (int i = 0; i < n; i++)
        add_copy(e, &(fm_page_move){.kind = (int32_t)kind, .page = i, .slot = e->tiers.n_slot + i});
    FM_TRY(make_copies(e));
    return fm__tiers_made(e, 1);
}

static int at_most(int n, int limit) { return n < limit ? n : limit; }

fm_status fm__tiers_time_copies(fm_engine *e)
{
    const fm_tiers *t = &e->tiers;
    const int       n = at_most(at_most(t->n_host, t->most_in), e->plan.n_page);
    if (n < 1 || !e->run->ops->copied) return FM_OK;
    FM_TRY(copy_first_pages(e, n, FM_MOVE_OUT_NOW));
    const double began = fm_now();
    FM_TRY(copy_first_pages(e, n, FM_MOVE_IN));
    fm_load_costs_loaded(&e->tiers.costs, 0, n, fm_now() - began);
    return FM_OK;
}

/* --- moves ------------------------------------------------------------------ */

/* No buffer is free: the page is not saved, and is computed again if it is needed. Tests wait for a
 * buffer. */
static char *buffer_for(fm_tiers *t)
{
    char *image = t->writes ? fm_store_take_buffer(t->store) : NULL;
    if (image || !t->writes || !t->demotes) return image;
    fm_store_drain(t->store);
    return fm_store_take_buffer(t->store);
}

/* Where the CPU copies: at once. */
static fm_status write_page(fm_engine *e, const fm_page_move *m)
{
    fm_tiers           *t     = &e->tiers;
    char *const         image = buffer_for(t);
    const fm_store_page page  = page_of(m);
    if (!image) return FM_OK;
    t->copy[t->n_copy++] = (fm_page_copy){.page = m->page, .image = image, .is_out = 1};
    FM_TRY(make_copies(e));
    fm_store_write(t->store, image, &page);
    return FM_OK;
}

static int host_slot(const fm_tiers *t, const fm_page_move *m)
{
    FM_BUG_UNLESS(m->slot >= t->n_slot && m->slot - t->n_slot < t->n_host);
    return m->slot - t->n_slot;
}

static int check_of(const fm_tiers *t, const fm_page_move *m)
{
    FM_BUG_UNLESS(m->depth >= t->n_slot && m->depth - t->n_slot < t->n_check);
    return m->depth - t->n_slot;
}

static void copy_out(fm_engine *e, const fm_page_move *m)
{
    fm_tiers *t    = &e->tiers;
    const int slot = host_slot(t, m);
    fm_host_sums_expect(t->sums, slot, m->key);
    add_copy(e, m);
    if (t->is_unsummed[slot]) return;
    t->is_unsummed[slot]                                              = 1;
    t->unsummed[(t->first_unsummed + t->n_unsummed++) % t->n_host] = slot;
}

/* If the copy of the page to host memory is still running, the page is not written to a file now.
 * The file gets the bytes the checksum is of, or none: they are copied by the thread that writes. */
static fm_status keep_page(fm_engine *e, const fm_page_move *m)
{
    fm_tiers  *t = &e->tiers;
    fm_hash128 sum;
    FM_TRY(fm__tiers_made(e, t->demotes));
    const int   has_sum = fm_host_sums_get(t->sums, host_slot(t, m), m->key, &sum);
    char *const image   = is_made(t, m->slot) ? buffer_for(t) : NULL;
    if (!image) return FM_OK;
    const char *const from = image_of(t, m->slot);
    if (!has_sum) memcpy(image, from, t->image_bytes);
    fm_store_write(t->store, image,
                   &(fm_store_page){m->key, m->token, m->depth, has_sum ? &sum : NULL,
                                    has_sum ? from : NULL});
    return FM_OK;
}

/* A slot that is still copied from is read into later: this does not wait. */
static fm_status read_page(fm_engine *e, const fm_page_move *m)
{
    fm_tiers *t = &e->tiers;
    if (!e->run->ops->copied) FM_TRY(make_copies(e));
    FM_BUG_UNLESS(t->n_held < t->n_slot);
    t->held[t->n_held++] = *m;
    return fm__tiers_made(e, 0);
}

static void clear_slot(fm_tiers *t, int slot)
{
    if (slot < t->n_slot) fm_store_clear_slot(t->store, slot);
}

static fm_status carry_out(fm_engine *e, const fm_page_move *m)
{
    fm_tiers *t = &e->tiers;
    switch ((fm_move_kind)m->kind) {
    case FM_MOVE_WRITE: return write_page(e, m);
    case FM_MOVE_KEEP: return keep_page(e, m);
    case FM_MOVE_READ: return read_page(e, m);
    case FM_MOVE_CHECK:
        fm_host_sums_check(t->sums, check_of(t, m), host_slot(t, m), m->key);
        return FM_OK;
    case FM_MOVE_OUT:
    case FM_MOVE_OUT_NOW: copy_out(e, m); return FM_OK;
    case FM_MOVE_IN:
    case FM_MOVE_IN_NOW: add_copy(e, m); /* fall through */
    case FM_MOVE_DROP: clear_slot(t, m->slot); return FM_OK;
    case FM_N_MOVE: break;
    }
    return FM_OK;
}

fm_status fm__tiers_carry_out(fm_engine *e, const fm_page_move *m, int n, int has_pass)
{
    FM_TRY(fm__tiers_made(e, 0));
    for (int i = 0; i < n; i++) FM_TRY(carry_out(e, &m[i]));
    if (e->tiers.n_copy && !has_pass) e->tiers.copy[e->tiers.n_copy - 1].is_now = 1;
    return make_copies(e);
}
