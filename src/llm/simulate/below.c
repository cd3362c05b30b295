/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/simulate/below.h"

#include <math.h>
#include <stdlib.h>

static const double nap = 0.002; /* seconds: engine/tiers_leader.c looks again after them */
enum { LEAST_PROMPT_ROWS = 32 }; /* as there: of a step whose cost is learned */

fm_status fm__below_open(fm__below *b, const fm_sim_tiers *sizes, fm__disk *disk)
{
    *b = (fm__below){.sizes = sizes, .disk = disk};
    if (!sizes) return FM_OK;
    b->n_free_buffer = sizes->n_buffer;
    b->slot          = calloc((size_t)sizes->n_slot + 1, sizeof *b->slot);
    if (!b->slot) return fm_fail(FM_E_OOM, "simulated tiers");
    if (sizes->n_host && sizes->is_async)
        fm_load_costs_loaded(&b->costs, 0, 1, sizes->page_bytes / sizes->in); /* timed at start */
    return FM_OK;
}

void fm__below_close(fm__below *b) { free(b->slot); }

/* --- what the policy asks --------------------------------------------------- */

static int is_on(void *ctx)
{
    (void)ctx;
    return 1;
}

static int has(void *ctx, fm_page_hash key)
{
    const fm__below *b = ctx;
    return fm_host_find(&b->disk->held, key) != FM__HOST_NONE;
}

/* Nothing is unreadable here. */
static void forget(void *ctx, fm_page_hash key)
{
    (void)ctx;
    (void)key;
}

static int free_buffers(void *ctx)
{
    const fm__below *b = ctx;
    return b->n_free_buffer;
}

static fm_slot_state view(void *ctx, int slot)
{
    const fm__below *b = ctx;
    return b->slot[slot];
}

fm_tier_policy_options fm__below_options(fm__below *b, int index, int n)
{
    static const fm_tier_files_ops files = {is_on, is_on, has, forget, free_buffers};
    const fm_sim_tiers            *z     = b->sizes;
    const int                      slots = z->n_slot / n, host = z->n_host / n;
    return (fm_tier_policy_options){.files    = {z->n_slot ? &files : NULL, b},
                                    .costs    = &b->costs,
                                    .saving   = z->saving,
                                    .slot0    = index * slots,
                                    .n_slot   = slots,
                                    .host0    = z->n_slot + index * host,
                                    .n_host   = host,
                                    .n_buffer = z->n_buffer,
                                    .most_in  = z->most_in,
                                    .most_out = z->most_out,
                                    .is_async = z->is_async,
                                    .waits    = 1,
                                    .view     = view,
                                    .view_ctx = b};
}

/* --- moves ------------------------------------------------------------------- */

static void write_file(fm__below *b, const fm_page_move *m, double now)
{
    if (b->n_free_buffer < 1) return; /* another partition took it: the page is not saved */
    b->n_free_buffer--;
    fm__disk_write(b->disk, m->key, now, &b->n_free_buffer);
}

static void release(fm__below *b, int slot)
{
    if (slot < b->sizes->n_slot) b->slot[slot] = FM_SLOT_IDLE;
}

static double make(fm__below *b, const fm_page_move *m, double now)
{
    const double in  = b->sizes->page_bytes / b->sizes->in,
                 out = b->sizes->page_bytes / b->sizes->out;
    switch ((fm_move_kind)m->kind) {
    case FM_MOVE_WRITE: write_file(b, m, now); return out;
    case FM_MOVE_KEEP: write_file(b, m, now); return 0;
    case FM_MOVE_READ: fm__disk_read(b->disk, m->key, now, &b->slot[m->slot]); return 0;
    case FM_MOVE_OUT:
    case FM_MOVE_OUT_NOW: return out;
    case FM_MOVE_IN:
    case FM_MOVE_IN_NOW: release(b, m->slot); return m->page >= 0 ? in : 0;
    case FM_MOVE_DROP: release(b, m->slot); return 0;
    case FM_MOVE_CHECK: /* by threads of the host, beside computing */
    case FM_N_MOVE: break;
    }
    return 0;
}

void fm__below_move(fm__below *b, fm_tier_policy *p, double now, double *busy, int *is_now)
{
    fm_moves *list = fm_tier_policy_moves(p);
    *busy          = 0;
    *is_now        = 0;
    for (int i = 0; i < list->n; i++) {
        *busy += make(b, &list->move[i], now);
        *is_now |= list->move[i].kind == FM_MOVE_OUT_NOW || list->move[i].kind == FM_MOVE_IN_NOW;
    }
    list->n = 0;
    fm__disk_advance(b->disk, now);
}

double fm__below_begins(fm__below *b, double now, double busy, int is_now, int has_pass)
{
    if (!b->sizes) return now;
    if (!b->sizes->is_async) return now + busy;
    const double before = b->due;
    if (busy > 0) b->copied = fmax(b->copied, now) + busy;
    b->due = b->copied;
    return fmax(now, is_now || !has_pass ? b->copied : before);
}

void fm__below_learn(fm__below *b, double launched, double now, int n_prompt_row, int n_row)
{
    if (!b->sizes) return;
    const double began = fmax(launched, b->learned);
    if (n_prompt_row >= LEAST_PROMPT_ROWS)
        fm_load_costs_computed(&b->costs, n_prompt_row, (now - began) * n_prompt_row / n_row);
    b->learned = now;
}

double fm__below_wakes(const fm__below *b, double now, double copies)
{
    if (copies > now) return copies;
    const double file = fm__disk_next(b->disk);
    return isfinite(file) ? file : now + nap;
}
