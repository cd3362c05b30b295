/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of drafts: where hidden states are kept, and the rows a chain starts from.
 *
 * A lease has two sets of 1 + max_draft places.  A step keeps the states of the rows it samples in
 * the set that the step before did not use, since it reads that one; which of them belongs to the
 * last row is known when drafts are accepted.  A chain keeps its own states in the first place of
 * the set that the next step will write. */
#include "llm/sched/sched.h"

#include "llm/sched/sched_internal.h"

static int set_size(const fm_sched_options *o) { return 1 + o->max_draft; }

static int n_lease(const fm_sched_options *o)
{
    return o->max_running + o->other_leases;
}

/* A request may get any lease of the kv. */
int fm_sched_n_kept(const fm_sched_options *o)
{
    return o->keeps_states ? n_lease(o) * 2 * set_size(o) : 0;
}

void fm_sched_keep_states(fm_sched *s, int keep) { s->rests_states = !keep; }

/* Prompt rows are never left out: their pages are published, and later requests that reuse them
 * would be drafted for from latents that were never written. */
int fm__keeps_states(const fm_sched *s, const fm_request *r)
{
    return s->opt.keeps_states && (!s->rests_states || !fm__is_decoding(r));
}

int32_t fm__keep_at(const fm_sched *s, const fm_request *r)
{
    FM_BUG_UNLESS(r->lease.slot >= 0 && r->lease.slot < n_lease(&s->opt));
    return (r->lease.slot * 2 + !r->kept_half) * set_size(&s->opt);
}

void fm__carve_chain(fm_sched *s, fm_slab *slab)
{
    const size_t n = s->opt.keeps_states ? (size_t)s->opt.max_running : 0;
    fm_batch    *b = &s->chain;
    b->token       = fm_slab_take(slab, n * sizeof *b->token);
    b->pos         = fm_slab_take(slab, n * sizeof *b->pos);
    b->span        = fm_slab_take(slab, n * sizeof *b->span);
    b->out         = fm_slab_take(slab, n * sizeof *b->out);
}

void fm_sched_chain_begin(fm_sched *s)
{
    s->chain.n_row = s->chain.n_span = s->chain.n_out = s->chain.link = 0;
}

static int is_ready(const fm_sched *s, const fm_request *r)
{
    return r->state == FM_REQ_RUNNING && fm__is_decoding(r) && !fm__is_ending(r) && !r->n_pending &&
           r->kept && fm__left(r) > 1 && s->opt.keeps_states;
}

/* Pages for positions up to n_token - 2 + n_link; a page stays free for each running request. */
static int has_pages(fm_sched *s, fm_request *r, int n_link)
{
    const int32_t n_token = r->n_token - 1 + n_link;
    if (n_token > s->opt.max_context) return 0;
    const int32_t more = fm__pages(s, n_token) - r->lease.n_page;
    if (more <= 0) return 1;
    if (more + s->n_running > fm__free_pages(s)) return 0;
    return fm_kv_grow(s->kv, &r->lease, n_token) == FM_OK;
}

int fm_sched_chain_add(fm_sched *s, fm_request *r, int n_link)
{
    fm_batch *b = &s->chain;
    if (!is_ready(s, r) || !has_pages(s, r, n_link)) return 0;
    const int i = b->n_row++;
    b->token[i] = r->token[r->n_token - 1];
    b->pos[i]   = r->n_token - 1;
    b->out[i]   = i;
    b->span[i]  = (fm_span){.row0   = i,
                            .n_row  = 1,
                            .pos0   = r->n_token - 1,
                            .form   = FM_FORM_GENERATED,
                            .page   = r->lease.page,
                            .before = r->kept,
                            .keep0  = fm__keep_at(s, r),
                            .n_keep = 1};
    b->n_span = b->n_out = b->n_row;
    return 1;
}

const fm_batch *fm_sched_chain(const fm_sched *s) { return s->chain.n_row ? &s->chain : NULL; }
