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
    return fm_run_copy_pages(e->run, t->copy, n);
}

static void add_copy(fm_engine *e, const fm_page_move *m, char *image)
{
    e->tiers.copy[e->tiers.n_copy++] = (fm_page_copy){.page   = m->page,
                                                      .image  = image,
                                                      .is_out = m->kind != FM_MOVE_IN,
                                                      .is_now = m->kind == FM_MOVE_OUT_NOW};
}

static fm_status copy_first_pages(fm_engine *e, int n, int is_out)
{
    int made = 0;
    for (int i = 0; i < n; i++)
        e->tiers.copy[e->tiers.n_copy++] =
            (fm_page_copy){.page   = i,
                           .image  = image_of(&e->tiers, e->tiers.n_slot + i),
                           .is_out = is_out,
                           .is_now = is_out};
    FM_TRY(make_copies(e));
    return fm_run_copied(e->run, 1, &made);
}

static int at_most(int n, int limit) { return n < limit ? n : limit; }

fm_status fm__tiers_time_copies(fm_engine *e)
{
    const fm_tiers *t = &e->tiers;
    const int       n = at_most(at_most(t->n_host, t->most_in), e->plan.n_page);
    if (n < 1 || !e->run->ops->copied) return FM_OK;
    FM_TRY(copy_first_pages(e, n, 1));
    const double began = fm_now();
    FM_TRY(copy_first_pages(e, n, 0));
    fm_load_costs_loaded(&e->tiers.costs, 0, n, fm_now() - began);
    return FM_OK;
}

/* No buffer is free: the page is not saved, and is computed again if it is needed. Tests wait for a
 * buffer. */
static char *buffer_for(fm_tiers *t)
{
    char *image = t->writes ? fm_store_take_buffer(t->store) : NULL;
    if (image || !t->writes || !t->demotes) return image;
    fm_store_drain(t->store);
    return fm_store_take_buffer(t->store);
}

static fm_status write_page(fm_engine *e, const fm_page_move *m)
{
    char *const image = buffer_for(&e->tiers);
    if (!image) return FM_OK;
    add_copy(e, m, image);
    FM_TRY(make_copies(e));
    fm_store_write(e->tiers.store, image, &(fm_store_page){m->key, m->token, m->depth});
    return FM_OK;
}

/* The copy of the page to host memory is still running: the page is not written to a file now. */
static fm_status keep_page(fm_engine *e, const fm_page_move *m)
{
    fm_tiers *t    = &e->tiers;
    int       made = 0;
    FM_TRY(fm_run_copied(e->run, t->demotes, &made));
    char *const image = made ? buffer_for(t) : NULL;
    if (!image) return FM_OK;
    memcpy(image, image_of(t, m->slot), t->image_bytes);
    fm_store_write(t->store, image, &(fm_store_page){m->key, m->token, m->depth});
    return FM_OK;
}

/* Copies out of the slot must be finished before the slot is read into again. */
static fm_status read_page(fm_engine *e, const fm_page_move *m)
{
    int made = 0;
    FM_TRY(make_copies(e));
    FM_TRY(fm_run_copied(e->run, 0, &made));
    if (!made) FM_TRY(fm_run_copied(e->run, 1, &made));
    fm_store_read(e->tiers.store, m->slot, &(fm_store_page){m->key, m->token, m->depth});
    return FM_OK;
}

static fm_status carry_out(fm_engine *e, const fm_page_move *m)
{
    fm_tiers *t = &e->tiers;
    switch ((fm_move_kind)m->kind) {
    case FM_MOVE_WRITE: return write_page(e, m);
    case FM_MOVE_KEEP: return keep_page(e, m);
    case FM_MOVE_READ: return read_page(e, m);
    case FM_MOVE_OUT:
    case FM_MOVE_OUT_NOW: add_copy(e, m, image_of(t, m->slot)); return FM_OK;
    case FM_MOVE_IN: add_copy(e, m, image_of(t, m->slot)); /* fall through */
    case FM_MOVE_DROP:
        if (m->slot < t->n_slot) fm_store_clear_slot(t->store, m->slot);
        return FM_OK;
    case FM_N_MOVE: break;
    }
    return FM_OK;
}

fm_status fm__tiers_carry_out(fm_engine *e, const fm_page_move *m, int n, int has_pass)
{
    for (int i = 0; i < n; i++) FM_TRY(carry_out(e, &m[i]));
    if (e->tiers.n_copy && !has_pass) e->tiers.copy[e->tiers.n_copy - 1].is_now = 1;
    return make_copies(e);
}
