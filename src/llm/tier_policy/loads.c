/* SPDX-License-Identifier: Apache-2.0 */
/* Loads: prefixes of waiting requests on their way from below into the pool. */
#include <string.h>

#include "llm/tier_policy/tier_policy_internal.h"

static const int32_t *tokens_of(const fm_tier_policy *s, const fm_request *r, int32_t page)
{
    return r->token + (size_t)page * (size_t)s->page_size;
}

static fm__window *window_of(const fm_tier_policy *s, fm__load *l, int32_t page)
{
    return &l->window[page % s->n_window];
}

/* --- where pages come from ------------------------------------------------- */

static int read_file(fm_tier_policy *s, fm__window *w, const int32_t *token, int32_t page)
{
    fm_page_move *m = s->n_free_slot ? fm__tier_policy_move(s, FM_MOVE_READ) : NULL;
    if (!m) return 0;
    m->slot = w->slot = s->free_slot[--s->n_free_slot];
    m->key            = w->key;
    m->depth          = page;
    memcpy(m->token, token, (size_t)s->page_size * sizeof *token);
    return 1;
}

/* Asks for as many pages as there is room for on the way; pages of an abandoned load are not
 * asked for.  One that is below no longer ends the load before it. */
static void ask(fm_tier_policy *s, fm__load *l)
{
    while (l->r && !l->is_cut && l->next_read < l->to && l->next_read - l->next_in < s->n_window) {
        const int32_t *token = tokens_of(s, l->r, l->next_read);
        fm__window    *w     = window_of(s, l, l->next_read);
        w->key               = fm_page_hash_next(l->at, token, s->page_size);
        w->step              = s->step;
        w->slot              = fm_host_find(&s->host, w->key);
        w->is_host           = w->slot != FM__HOST_NONE;
        if (w->is_host) {
            fm_host_pin(&s->host, w->slot);
        } else if (!fm__tier_policy_has_file(s, w->key)) {
            l->to = l->next_read;
        } else if (!read_file(s, w, token, l->next_read)) {
            return;
        }
        if (l->next_read == l->to) return;
        l->at = w->key;
        l->next_read++;
    }
}

/* A read requested for this step has not begun: its slot still has the state of the read before. */
static fm_slot_state state_of(const fm_tier_policy *s, fm__load *l, int32_t page)
{
    const fm__window *w = window_of(s, l, page);
    if (w->is_host) return FM_SLOT_READY;
    return w->step == s->step ? FM_SLOT_BUSY : s->opt.view(s->opt.view_ctx, w->slot);
}

/* Releases the slot that held the load's next page. */
static void release(fm_tier_policy *s, fm__load *l, int32_t page)
{
    const fm__window *w = window_of(s, l, l->next_in++);
    fm_page_move     *m = NULL;
    if (page >= 0 || !w->is_host) {
        m = fm__tier_policy_move(s, page < 0 ? FM_MOVE_DROP : FM_MOVE_IN);
        FM_BUG_UNLESS(m); /* the list has room for every page on the way */
        m->page = page;
        m->slot = w->is_host ? s->opt.host0 + w->slot : w->slot;
    }
    if (w->is_host)
        fm_host_unpin(&s->host, w->slot); /* copies are made in the order of moves */
    else
        fm__tier_policy_rest(s, w->slot);
}

/* --- into the pool --------------------------------------------------------- */

/* Pages brought in for requests that still wait: evicting them would be in vain. */
static int32_t n_promised(const fm_tier_policy *s)
{
    int32_t n = 0, i = 0;
    for (const fm_request *r = fm_sched_first_waiting(s->opt.sched); r && i < FM__LOOK_AHEAD;
         r                   = r->next, i++)
        n += r->n_brought;
    return n;
}

/* With nothing running, every load gets pages: its request can be admitted and will free them. */
static int has_room(const fm_tier_policy *s, int n)
{
    const int32_t left = fm_kv_free_pages(s->opt.kv) + fm_kv_evictable_pages(s->opt.kv);
    return !fm_sched_n_running(s->opt.sched) || left - n_promised(s) >= n;
}

static int n_ready(fm_tier_policy *s, fm__load *l)
{
    const int most = s->most_in_now < s->n_window ? s->most_in_now : s->n_window;
    int       n    = 0;
    while (n < most && l->next_in + n < l->next_read &&
           state_of(s, l, l->next_in + n) == FM_SLOT_READY)
        n++;
    return has_room(s, n) ? n : 0;
}

/* Nothing behind the page that failed can be used: the load ends with what came before. */
static void cut(fm__load *l)
{
    l->to = l->next_read;
    l->r  = NULL;
}

/* Copies from host memory run beside passes: they take the link's time, and that a request waits for
 * the pass they are ready for holds up no other. */
static int is_beside(const fm_tier_policy *s, const fm__load *l)
{
    return s->opt.is_async && !l->is_from_files;
}

static double seconds_of(const fm_tier_policy *s, const fm__load *l)
{
    return is_beside(s, l) ? s->opt.costs->load[0] * (l->next_in - l->from) : s->now - l->began;
}

static void let_go(fm_tier_policy *s, fm__load *l)
{
    if (!l->r) return;
    l->r->is_loading = 0;
    s->stats.load_seconds += seconds_of(s, l);
}

static void stop(fm_tier_policy *s, fm__load *l)
{
    let_go(s, l);
    cut(l);
}

static void count(fm_tier_policy *s, fm_request *r, int is_host)
{
    r->n_brought++;
    *(is_host ? &r->n_from_host : &r->n_from_disk) += s->page_size;
    *(is_host ? &s->stats.host_tokens : &s->stats.disk_tokens) += s->page_size;
}

/* Copies requested before the last step was launched are finished for the next step. */
static void publish_held(fm_tier_policy *s, fm__load *l)
{
    if (!l->is_held) return;
    fm_kv_adopt_end(s->opt.kv, &l->lease, l->token, l->is_saved);
    l->is_held = 0;
}

/* Pages for n that have come; fewer, and the load ends with them, if the pool has no more. */
static void bring_in(fm_tier_policy *s, fm__load *l, int n)
{
    const int32_t first = l->next_in;
    const int32_t got =
        l->r ? fm_kv_adopt_begin(s->opt.kv, &l->lease, l->r->token, first, first + n, s->page) : 0;
    l->is_held  = got > 0;
    l->token    = l->r ? l->r->token : NULL;
    l->is_saved = !s->host.n || window_of(s, l, first)->is_host;
    for (int i = 0; i < n; i++) {
        const int32_t page = i < got ? s->page[i] : -1;
        if (page >= 0) count(s, l->r, window_of(s, l, l->next_in)->is_host);
        release(s, l, page);
    }
    s->most_in_now -= n;
    l->is_cut = got < n; /* the pool has no room for more of it */
    if (!s->opt.is_async) publish_held(s, l);
}

static int has_ended(fm_slot_state is) { return is == FM_SLOT_READY || is == FM_SLOT_FAILED; }

/* Takes what has come; stops at a page that could not be read. */
static void take(fm_tier_policy *s, fm__load *l)
{
    const int n = l->r && !l->is_held && !l->is_cut ? n_ready(s, l) : 0;
    if (n) bring_in(s, l, n);
    if (l->next_in < l->next_read && state_of(s, l, l->next_in) == FM_SLOT_FAILED) {
        s->opt.files.ops->forget(s->opt.files.ctx, window_of(s, l, l->next_in)->key);
        stop(s, l);
    }
}

/* What is still under way when a load stops is dropped as it ends. */
static void drop_ended(fm_tier_policy *s, fm__load *l)
{
    while (l->next_in < l->next_read && has_ended(state_of(s, l, l->next_in))) release(s, l, -1);
    l->is_used = l->next_in < l->next_read || l->is_held;
}

static void advance(fm_tier_policy *s, fm__load *l)
{
    take(s, l);
    if (l->r && l->next_in < l->to) ask(s, l);
    if (l->r && l->is_cut && !l->is_held) stop(s, l);
    if (!l->r) {
        drop_ended(s, l);
    } else if (l->next_in == l->to && !l->is_held) {
        if (!is_beside(s, l))
            fm_load_costs_loaded(s->opt.costs, l->is_from_files, l->to - l->from, s->now - l->began);
        let_go(s, l);
        l->is_used = 0;
    }
}

/* A cancelled request has left the queue and its memory may be reused: it must not be read. */
static void abandon_unseen(fm_tier_policy *s)
{
    for (int i = 0; i < FM__LOADS; i++) s->load[i].is_seen = 0;
    for (fm_request *r = fm_sched_first_waiting(s->opt.sched); r; r = r->next)
        for (int i = 0; r->is_loading && i < FM__LOADS; i++)
            if (s->load[i].r == r && s->load[i].arrival == r->arrival) s->load[i].is_seen = 1;
    for (int i = 0; i < FM__LOADS; i++) {
        fm__load *l = &s->load[i];
        if (!l->is_used || l->is_seen) continue;
        if (l->is_held) fm_kv_end(s->opt.kv, &l->lease); /* its tokens are gone: not published */
        l->is_held = 0;
        cut(l);
    }
}

void fm__loads_advance(fm_tier_policy *s)
{
    if (!fm_tier_policy_is_loading(s)) return;
    abandon_unseen(s);
    for (int i = 0; i < FM__LOADS; i++) publish_held(s, &s->load[i]);
    for (int i = 0; i < FM__LOADS; i++)
        if (s->load[i].is_used) advance(s, &s->load[i]);
}

/* --- the beginning --------------------------------------------------------- */

/* Another request's load has this one's next page in it. */
static int is_on_its_way(const fm_tier_policy *s, const fm_request *r, int32_t page)
{
    const size_t bytes = (size_t)(page + 1) * (size_t)s->page_size * sizeof *r->token;
    for (int i = 0; i < FM__LOADS; i++) {
        const fm__load *l = &s->load[i];
        if (l->is_used && l->r && l->r != r && page < l->to &&
            !memcmp(l->r->token, r->token, bytes))
            return 1;
    }
    return 0;
}

static fm__load *spare_load(fm_tier_policy *s)
{
    for (int i = 0; i < FM__LOADS; i++)
        if (!s->load[i].is_used) return &s->load[i];
    return NULL;
}

/* Pages of the prompt from `page` on that are below, one after the other. */
static int32_t n_below(fm_tier_policy *s, const fm_request *r, int32_t page, int32_t most,
                       fm_page_hash key, int *is_from_files)
{
    int32_t n      = 0;
    *is_from_files = 0;
    for (; page + n < most; n++) {
        key = fm_page_hash_next(key, tokens_of(s, r, page + n), s->page_size);
        if (fm_host_find(&s->host, key) != FM__HOST_NONE) continue;
        if (!fm__tier_policy_has_file(s, key)) break;
        *is_from_files = 1;
    }
    return n;
}

static void start(fm_tier_policy *s, fm_request *r, int32_t from, int32_t n, fm_page_hash key,
                  int is_from_files)
{
    fm__load *l = spare_load(s);
    if (!l) return; /* it waits for one */
    r->is_looked_up = 1;
    l->r            = r;
    l->arrival      = r->arrival;
    l->from = l->next_in = l->next_read = from;
    l->to                               = from + n;
    l->at                               = key;
    l->began                            = s->now;
    l->is_used                          = 1;
    l->is_from_files                    = is_from_files;
    s->stats.n_load++;
    ask(s, l);
    advance(s, l); /* what is in host memory can come at once */
}

static void look_up(fm_tier_policy *s, fm_request *r)
{
    fm_page_hash  key;
    int           is_from_files;
    const int32_t most = (fm_request_n_lookup(r) - 1) / s->page_size;
    const int32_t here = fm_kv_resident(s->opt.kv, r->token, most, &key);
    if (here < most && is_on_its_way(s, r, here)) {
        r->is_loading = 1; /* and is looked up again before the next step */
        return;
    }
    const int32_t n = n_below(s, r, here, most, key, &is_from_files);
    if (!n || !fm_load_pays(s->opt.costs, is_from_files, n, n * s->page_size)) {
        s->stats.n_declined += n > 0;
        r->is_looked_up = 1;
        return;
    }
    r->is_loading = 1;
    start(s, r, here, n, key, is_from_files);
}

static int has_load(const fm_tier_policy *s, const fm_request *r)
{
    for (int i = 0; i < FM__LOADS; i++)
        if (s->load[i].is_used && s->load[i].r == r) return 1;
    return 0;
}

void fm__loads_start(fm_tier_policy *s)
{
    int n = 0;
    for (fm_request *r = fm_sched_first_waiting(s->opt.sched); r && n < FM__LOOK_AHEAD;
         r             = r->next, n++) {
        if (r->is_loading && has_load(s, r)) continue;
        r->is_loading = 0;
        if (!r->is_looked_up && (s->host.n || fm__tier_policy_has_files(s))) look_up(s, r);
    }
}
