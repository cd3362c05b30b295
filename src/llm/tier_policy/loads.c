/* SPDX-License-Identifier: Apache-2.0 */
/* Loads: prefixes of waiting requests on their way from below into the pool. */
#include <limits.h>
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

/* --- slots and checks ------------------------------------------------------- */

/* A read or check requested for this step has not begun: there is still the state of the one
 * before. */
static fm_slot_state state_of(const fm_tier_policy *s, fm__load *l, int32_t page)
{
    const fm__window *w = window_of(s, l, page);
    if (w->is_host && !s->opt.n_check) return FM_SLOT_READY;
    if (w->step == s->step) return FM_SLOT_BUSY;
    return s->opt.view(s->opt.view_ctx, w->is_host ? w->check : w->slot);
}

/* Releases the slot that held the load's next page. */
static void release(fm_tier_policy *s, fm__load *l, int32_t page)
{
    const fm__window *w = window_of(s, l, l->next_in++);
    fm_page_move     *m = NULL;
    if (page >= 0 || !w->is_host) {
        m = fm__tier_policy_move(s, page < 0    ? FM_MOVE_DROP
                                    : l->is_now ? FM_MOVE_IN_NOW
                                                : FM_MOVE_IN);
        FM_BUG_UNLESS(m); /* the list has room for every page on the way */
        m->page = page;
        m->slot = w->is_host ? s->opt.host0 + w->slot : w->slot;
    }
    if (!w->is_host) {
        fm__tier_policy_rest(s, w->slot);
        return;
    }
    fm_host_unpin(&s->host, w->slot); /* copies are made in the order of moves */
    if (s->opt.n_check) s->free_check[s->n_free_check++] = w->check;
}

/* Nothing behind the page that failed can be used: the load ends with what came before. */
static void cut(fm__load *l)
{
    l->to = l->next_read;
    l->r  = NULL;
}

static int has_ended(fm_slot_state is) { return is == FM_SLOT_READY || is == FM_SLOT_FAILED; }

/* What is still under way when a load stops is dropped as it ends. */
static void drop_ended(fm_tier_policy *s, fm__load *l)
{
    while (l->next_in < l->next_read && has_ended(state_of(s, l, l->next_in))) release(s, l, -1);
    l->is_used = l->next_in < l->next_read || l->is_held;
}

/* The last of the loads for requests further behind, of those with pages on the way if these are
 * wanted, is given up: its request is looked up again later.  0: there is none. */
static int give_up_behind(fm_tier_policy *s, int place, int wants_pages)
{
    fm__load *last = NULL;
    for (int i = 0; i < FM__LOADS; i++) {
        fm__load *l = &s->load[i];
        if (!l->is_used || !l->r || l->is_held || l->place <= place) continue;
        if (wants_pages && l->next_in == l->next_read) continue;
        if (!last || l->place > last->place) last = l;
    }
    if (!last) return 0;
    last->r->is_looked_up = 0;
    cut(last);
    drop_ended(s, last);
    return 1;
}

/* --- where pages come from ------------------------------------------------- */

static int read_file(fm_tier_policy *s, const fm__load *l, fm__window *w, const int32_t *token,
                     int32_t page)
{
    if (!s->n_free_slot && !s->n_resting) (void)give_up_behind(s, l->place, 1);
    fm_page_move *m = s->n_free_slot ? fm__tier_policy_move(s, FM_MOVE_READ) : NULL;
    if (!m) return 0;
    m->slot = w->slot = s->free_slot[--s->n_free_slot];
    m->key            = w->key;
    m->depth          = page;
    memcpy(m->token, token, (size_t)s->page_size * sizeof *token);
    return 1;
}

static int check_host(fm_tier_policy *s, const fm__load *l, fm__window *w)
{
    if (!s->opt.n_check) return 1;
    if (!s->n_free_check) (void)give_up_behind(s, l->place, 1);
    fm_page_move *m = s->n_free_check ? fm__tier_policy_move(s, FM_MOVE_CHECK) : NULL;
    if (!m) return 0;
    w->check = s->free_check[--s->n_free_check];
    m->slot  = s->opt.host0 + w->slot;
    m->key   = w->key;
    m->depth = w->check;
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
            if (!check_host(s, l, w)) return;
            fm_host_pin(&s->host, w->slot);
        } else if (!fm__tier_policy_has_file(s, w->key)) {
            l->to = l->next_read;
        } else if (!read_file(s, l, w, token, l->next_read)) {
            return;
        }
        if (l->next_read == l->to) return;
        l->at = w->key;
        l->next_read++;
    }
}

/* --- into the pool --------------------------------------------------------- */

/* Of the prompt and its first output, from the load's next page on. */
static int32_t n_needed(const fm_tier_policy *s, const fm__load *l)
{
    return l->r->n_token / s->page_size + 1 - l->next_in;
}

/* Room is given in the order of the queue, to requests that load and to those that are computed:
 * otherwise the pool would fill with prefixes of requests that cannot be admitted.  With nothing
 * running the first load gets pages: its request can be admitted and will free them. */
static int has_room(fm_tier_policy *s, const fm__load *l)
{
    if (!fm_sched_n_running(s->opt.sched) && !s->has_given) return 1;
    if (l->place > s->last_place) return 0;
    const int32_t left = fm_kv_free_pages(s->opt.kv) + fm_kv_evictable_pages(s->opt.kv);
    const int32_t kept = s->n_promised + s->n_reserved +
                         fm_sched_n_running(s->opt.sched); /* each may need a page meanwhile */
    return left - kept >= n_needed(s, l);
}

static int n_ready(fm_tier_policy *s, fm__load *l)
{
    const int most = s->most_in_now < s->n_window ? s->most_in_now : s->n_window;
    int       n    = 0;
    while (n < most && l->next_in + n < l->next_read &&
           state_of(s, l, l->next_in + n) == FM_SLOT_READY)
        n++;
    return n && has_room(s, l) ? n : 0;
}

/* Copies from host memory run beside passes: they take the link's time, and that a request waits for
 * the pass they are ready for holds up no other. */
static int is_beside(const fm_tier_policy *s, const fm__load *l)
{
    return s->opt.is_async && !l->is_from_files;
}

static double seconds_of(const fm_tier_policy *s, const fm__load *l)
{
    if (is_beside(s, l)) return s->opt.costs->load[0] * (l->next_in - l->from);
    return (l->arrived > 0 ? l->arrived : s->now) - l->began;
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
    r->n_loaded++;
    *(is_host ? &r->n_from_host : &r->n_from_disk) += s->page_size;
    *(is_host ? &s->stats.host_tokens : &s->stats.disk_tokens) += s->page_size;
}

/* Copies requested before the last step was launched are finished for the next step. */
static void publish_held(fm_tier_policy *s, fm__load *l)
{
    if (!l->is_held) return;
    if (l->is_now)
        fm_kv_end(s->opt.kv, &l->lease);
    else
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
    l->is_now   = s->opt.is_async && s->opt.waits && !fm_sched_n_running(s->opt.sched);
    for (int i = 0; i < n; i++) {
        const int32_t page = i < got ? s->page[i] : -1;
        if (page >= 0) count(s, l->r, window_of(s, l, l->next_in)->is_host);
        release(s, l, page);
    }
    s->most_in_now -= n;
    s->has_given = 1;
    l->is_cut = got < n; /* the pool has no room for more of it */
    if (!s->opt.is_async) publish_held(s, l);
    if (l->is_held && l->is_now)
        fm_kv_adopt_publish(s->opt.kv, &l->lease, l->token, l->is_saved);
}

static void forget(fm_tier_policy *s, const fm__window *w)
{
    if (!w->is_host) {
        s->opt.files.ops->forget(s->opt.files.ctx, w->key);
        return;
    }
    fm_host_forget(&s->host, w->slot);
    s->stats.n_host_altered++;
}

/* Pages before those that come have made room while the load waited for room itself: what is in the
 * pool and what is below is looked up anew. */
static int is_outdated(const fm_tier_policy *s, const fm__load *l)
{
    fm_page_hash key;
    return fm_kv_resident(s->opt.kv, l->r->token, l->next_in, &key) < l->next_in;
}

/* Takes what has come; stops at a page that could not be read or was altered. */
static void take(fm_tier_policy *s, fm__load *l)
{
    const int n = l->r && !l->is_held && !l->is_cut ? n_ready(s, l) : 0;
    if (n && is_outdated(s, l)) {
        l->r->is_looked_up = 0;
        s->n_reserved += n_needed(s, l) + l->next_in; /* its turn is not lost */
        stop(s, l);
    } else if (n) {
        bring_in(s, l, n);
    }
    if (l->next_in < l->next_read && state_of(s, l, l->next_in) == FM_SLOT_FAILED) {
        forget(s, window_of(s, l, l->next_in));
        stop(s, l);
    }
}

static void advance(fm_tier_policy *s, fm__load *l)
{
    if (!(l->arrived > 0) && l->next_read == l->to && l->next_in < l->to &&
        state_of(s, l, l->to - 1) == FM_SLOT_READY)
        l->arrived = s->now;
    take(s, l);
    if (l->r && l->next_in < l->to) ask(s, l);
    if (l->r && l->is_cut && !l->is_held) stop(s, l);
    if (!l->r) {
        drop_ended(s, l);
    } else if (l->next_in == l->to && (!l->is_held || l->is_now)) {
        if (!is_beside(s, l))
            fm_load_costs_loaded(s->opt.costs, l->is_from_files, l->to - l->from, seconds_of(s, l));
        l->r->looks_again = 1;
        let_go(s, l);
        l->r       = NULL;
        l->is_used = l->is_held;
    }
}

static fm_request *first(const fm_tier_policy *s) { return fm_sched_first_waiting(s->opt.sched); }

/* Is the request's next page among those of the load? */
static int brings(const fm_tier_policy *s, const fm__load *l, const fm_request *r, int32_t page)
{
    const size_t bytes = (size_t)(page + 1) * (size_t)s->page_size * sizeof *r->token;
    if (!l->is_used || !l->r || page >= l->to) return 0;
    return l->r == r || !memcmp(l->r->token, r->token, bytes);
}

/* Where in the queue the first request is that waits for each load.  One that others of a higher
 * priority have pushed back beyond those that are looked up is not seen. */
static void find_places(fm_tier_policy *s)
{
    int place     = 0;
    s->last_place = INT_MAX;
    for (int i = 0; i < FM__LOADS; i++) s->load[i].place = s->load[i].is_seen = 0;
    for (fm_request *r = first(s); r && place < FM_SCHED_LOOKUPS; r = fm_request_next(r)) {
        place++;
        if (r->is_looked_up && !r->is_loading && place < s->last_place) s->last_place = place;
        for (int i = 0; r->is_loading && i < FM__LOADS; i++) {
            fm__load *l = &s->load[i];
            if (l->r == r && l->arrival == r->arrival) l->is_seen = 1;
            if (!l->place && brings(s, l, r, r->below_from)) l->place = place;
        }
    }
}

/* A cancelled request has left the queue and its memory may be reused: it must not be read. */
static void abandon_unseen(fm_tier_policy *s)
{
    find_places(s);
    for (int i = 0; i < FM__LOADS; i++) {
        fm__load *l = &s->load[i];
        if (!l->is_used || l->is_seen) continue;
        if (l->is_held) fm_kv_end(s->opt.kv, &l->lease); /* its tokens are gone: not published */
        l->is_held = 0;
        cut(l);
    }
}

/* Loads in the order of the queue; how many there are. */
static int in_line(fm_tier_policy *s, fm__load *line[FM__LOADS])
{
    int n = 0;
    for (int i = 0; i < FM__LOADS; i++) {
        fm__load *l = &s->load[i];
        int       at;
        if (!l->is_used) continue;
        for (at = n++; at > 0 && line[at - 1]->place > l->place; at--) line[at] = line[at - 1];
        line[at] = l;
    }
    return n;
}

void fm__loads_advance(fm_tier_policy *s)
{
    fm__load *line[FM__LOADS];
    if (fm_tier_policy_is_loading(s)) {
        abandon_unseen(s);
        for (int i = 0; i < FM__LOADS; i++) publish_held(s, &s->load[i]);
    }
    s->n_promised = fm_sched_promised(s->opt.sched);
    const int n   = in_line(s, line);
    for (int i = 0; i < n; i++) {
        advance(s, line[i]);
        if (line[i]->r && line[i]->next_in < line[i]->to) s->n_reserved += n_needed(s, line[i]);
    }
}

/* --- the beginning --------------------------------------------------------- */

/* Another request's load has this one's next page in it. */
static int is_on_its_way(const fm_tier_policy *s, const fm_request *r, int32_t page)
{
    for (int i = 0; i < FM__LOADS; i++)
        if (s->load[i].r != r && brings(s, &s->load[i], r, page)) return 1;
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

static void start(fm_tier_policy *s, fm__load *l, fm_request *r, int32_t from, int32_t n,
                  fm_page_hash key)
{
    r->is_looked_up = 1;
    r->looks_again  = 0;
    r->n_loaded     = 0;
    l->r            = r;
    l->arrival      = r->arrival;
    l->from = l->next_in = l->next_read = from;
    l->to                               = from + n;
    l->at                               = key;
    l->began                            = s->now;
    l->arrived                          = 0;
    l->is_cut                           = 0;
    l->is_used                          = 1;
    s->stats.n_load++;
    ask(s, l);
    advance(s, l); /* what is in host memory and not checked can come at once */
}

static void look_up(fm_tier_policy *s, fm_request *r, int place)
{
    fm_page_hash  key;
    int           is_from_files;
    const int32_t most = (fm_request_n_lookup(r) - 1) / s->page_size;
    const int32_t here = fm_kv_resident(s->opt.kv, r->token, most, &key);
    r->is_loading      = 1;
    r->below_from      = here;
    if (here < most && is_on_its_way(s, r, here)) return; /* and is looked up again */
    const int32_t n = n_below(s, r, here, most, key, &is_from_files);
    if (!n || !fm_load_pays(s->opt.costs, is_from_files, n, n * s->page_size)) {
        s->stats.n_declined += n > 0;
        r->is_looked_up = 1;
        r->is_loading   = 0;
        r->looks_again  = !n;
        return;
    }
    fm__load *l = spare_load(s);
    if (!l && give_up_behind(s, place, 0)) l = spare_load(s);
    if (!l) return; /* it waits for one */
    l->is_from_files = is_from_files;
    l->place         = place;
    start(s, l, r, here, n, key);
}

/* No load was free for it, or another brings its next page: has that changed? */
static int is_to_wait(const fm_tier_policy *s, const fm_request *r, int place)
{
    fm_page_hash key;
    int          is_free = 0;
    if (!r->is_loading) return 0;
    for (int i = 0; i < FM__LOADS; i++) {
        const fm__load *l = &s->load[i];
        if (l->is_used && l->r == r) return 1;
        is_free |= !l->is_used || (l->r && !l->is_held && l->place > place);
    }
    return !is_free &&
           fm_kv_resident(s->opt.kv, r->token, r->below_from + 1, &key) == r->below_from;
}

void fm__loads_start(fm_tier_policy *s)
{
    const int is_on = s->host.n || fm__tier_policy_has_files(s);
    int       place = 0;
    for (fm_request *r = first(s); r && place < FM_SCHED_LOOKUPS; r = fm_request_next(r)) {
        if (is_to_wait(s, r, ++place)) continue;
        if (r->is_loading) r->is_looked_up = 0; /* its load was abandoned while it was further back */
        r->is_loading = 0;
        if (!is_on) r->is_looked_up = 1;
        if (!r->is_looked_up || (is_on && r->looks_again)) look_up(s, r, place);
    }
}
