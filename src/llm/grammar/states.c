/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/states.h"

#include <stdlib.h>
#include <string.h>

/* A set of more places is too much; comparing so many moves takes as long as a
 * place; so many places are looked at for the widest. */
enum { MAX_WORK = 1 << 14, MOVES_PER_PLACE = 16, MAX_LOOK = 1 << 19 };

static void *grow(void *list, int32_t *cap, size_t size)
{
    *cap       = *cap ? 2 * *cap : 64;
    void *more = realloc(list, (size_t)*cap * size);
    FM_BUG_UNLESS(more != NULL);
    return more;
}

static uint32_t mix(uint32_t h, int32_t a, int32_t b)
{
    h ^= (uint32_t)a * 0x9e3779b1u;
    h = (h << 13 | h >> 19) * 0x85ebca6bu;
    h ^= (uint32_t)b * 0xc2b2ae35u;
    return (h << 15 | h >> 17) * 0x27d4eb2fu;
}

/* The number of the list (to, below). */
static int32_t list_of(fm__states *s, int32_t to, int32_t below)
{
    const uint32_t hash = mix(0, to, below);
    uint32_t       at   = hash;
    for (int32_t i; (i = fm__table_find(&s->rets, hash, &at)) >= 0;)
        if (s->ret[i].to == to && s->ret[i].below == below) return i;
    if (s->n_ret == s->cap_ret) s->ret = grow(s->ret, &s->cap_ret, sizeof *s->ret);
    s->ret[s->n_ret] = (fm__return){to, below};
    fm__table_insert(&s->rets, hash, s->n_ret);
    return s->n_ret++;
}

static void begin_work(fm__states *s)
{
    fm__table_empty(&s->works);
    s->n_work  = 0;
    s->may_end = 0;
    s->is_cut  = 0;
}

static int are_same(fm__place a, fm__place b)
{
    return a.state == b.state && a.stack == b.stack && a.layout == b.layout;
}

static void add_work(fm__states *s, fm__place p)
{
    const uint32_t hash = mix((uint32_t)p.layout + 1, p.state, p.stack);
    uint32_t       at   = hash;
    for (int32_t i; (i = fm__table_find(&s->works, hash, &at)) >= 0;)
        if (are_same(s->work[i], p)) return;
    if (s->n_work == MAX_WORK) {
        s->is_cut = 1;
        return;
    }
    if (s->n_work == s->cap_work) s->work = grow(s->work, &s->cap_work, sizeof *s->work);
    s->work[s->n_work] = p;
    fm__table_insert(&s->works, hash, s->n_work++);
}

/* A call whose return would return at once needs no place on the list. */
static int returns_at_once(const fm__nfa *n, int32_t state)
{
    const int32_t e = n->first[state];
    return n->ends[state] || (e >= 0 && n->edge[e].next < 0 && n->edge[e].kind == FM__EDGE_EMPTY &&
                              n->ends[n->edge[e].to]);
}

static void follow_open(fm__states *s, fm__place p, int32_t to)
{
    fm__layout layout[FM__MAX_OPENINGS];
    const int  n = fm__layout_open(p.layout, layout);
    for (int i = 0; i < n; i++) add_work(s, (fm__place){to, p.stack, layout[i]});
}

static void follow_edge(fm__states *s, fm__place p, const fm__edge *e)
{
    const fm__nfa *n = s->nfa;
    switch (e->kind) {
    case FM__EDGE_EMPTY: add_work(s, (fm__place){e->to, p.stack, p.layout}); break;
    case FM__EDGE_CALL: {
        const int32_t stack = returns_at_once(n, e->to) ? p.stack : list_of(s, e->to, p.stack);
        add_work(s, (fm__place){n->rule[e->what].start, stack, p.layout});
        break;
    }
    case FM__EDGE_OPEN: follow_open(s, p, e->to); break;
    case FM__EDGE_SHUT: add_work(s, (fm__place){e->to, p.stack, fm__layout_shut(p.layout)}); break;
    case FM__EDGE_GAP:
        if (fm__layout_is_inline(p.layout)) add_work(s, (fm__place){e->to, p.stack, p.layout});
        break;
    default: break;
    }
}

static void follow(fm__states *s, fm__place p)
{
    const fm__nfa *n = s->nfa;
    if (fm__layout_due(p.layout)) return;
    if (n->ends[p.state]) {
        if (p.stack)
            add_work(s, (fm__place){s->ret[p.stack].to, s->ret[p.stack].below, p.layout});
        else
            s->may_end = 1;
    }
    for (int32_t i = n->first[p.state]; i >= 0; i = n->edge[i].next) follow_edge(s, p, &n->edge[i]);
}

static int writes(const fm__nfa *n, fm__place p)
{
    if (fm__layout_due(p.layout)) return 1;
    for (int32_t i = n->first[p.state]; i >= 0; i = n->edge[i].next) {
        const fm__edge_kind kind = (fm__edge_kind)n->edge[i].kind;
        if (kind == FM__EDGE_BYTE || kind == FM__EDGE_TOKEN || kind == FM__EDGE_GAP) return 1;
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const fm__place *x = a, *y = b;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    if (x->stack != y->stack) return x->stack < y->stack ? -1 : 1;
    return (x->layout > y->layout) - (x->layout < y->layout);
}

/* Adds everything reachable without writing.  Returns how many places there are. */
static int32_t follow_all(fm__states *s)
{
    int32_t n = 0;
    while (n < s->n_work) follow(s, s->work[n++]);
    return n;
}

/* ... and keeps the places that write. */
static int32_t close_work(fm__states *s)
{
    const int32_t n_seen = follow_all(s);
    int32_t       n      = 0;
    for (int32_t i = 0; i < n_seen; i++)
        if (writes(s->nfa, s->work[i])) s->work[n++] = s->work[i];
    s->n_work = n;
    qsort(s->work, (size_t)n, sizeof *s->work, by_number);
    return n_seen;
}

static uint32_t hash_work(const fm__states *s)
{
    uint32_t h = (uint32_t)s->may_end;
    for (int32_t i = 0; i < s->n_work; i++)
        h = mix(h ^ (uint32_t)s->work[i].layout, s->work[i].state, s->work[i].stack);
    return h;
}

/* The marks of the places in `work`: of their states and of all they return to. */
static int mark_work(const fm__states *s)
{
    int mark = 0;
    for (int32_t i = 0; s->nfa->has_marks && i < s->n_work; i++) {
        mark |= s->nfa->mark[s->work[i].state];
        for (int32_t at = s->work[i].stack; at; at = s->ret[at].below)
            mark |= s->nfa->mark[s->ret[at].to];
    }
    return mark;
}

/* The number of the set in `work`, which is closed. */
static int32_t number_work(fm__states *s)
{
    if (!s->n_work && !s->may_end) return FM__DEAD;
    const size_t   bytes = (size_t)s->n_work * sizeof *s->work;
    const uint32_t hash  = hash_work(s);
    uint32_t       at    = hash;
    for (int32_t i; (i = fm__table_find(&s->states, hash, &at)) >= 0;) {
        const fm__state *q = &s->state[i];
        if (q->n == s->n_work && q->may_end == s->may_end &&
            !memcmp(s->place + q->at, s->work, bytes))
            return i;
    }
    while (s->n_place + s->n_work > s->cap_place)
        s->place = grow(s->place, &s->cap_place, sizeof *s->place);
    if (s->n_state == s->cap_state) s->state = grow(s->state, &s->cap_state, sizeof *s->state);
    if (bytes) memcpy(s->place + s->n_place, s->work, bytes);
    s->state[s->n_state] =
        (fm__state){.at = s->n_place, .n = s->n_work, .may_end = s->may_end, .mark = mark_work(s)};
    s->n_place += s->n_work;
    fm__table_insert(&s->states, hash, s->n_state);
    return s->n_state++;
}

fm_status fm__states_init(fm__states *s, const fm__nfa *nfa)
{
    *s = (fm__states){.nfa = nfa, .n_ret = 1};
    fm__table_init(&s->states);
    fm__table_init(&s->rets);
    fm__table_init(&s->works);
    s->ret   = grow(NULL, &s->cap_ret, sizeof *s->ret);
    s->place = grow(NULL, &s->cap_place, sizeof *s->place);
    s->work  = grow(NULL, &s->cap_work, sizeof *s->work);
    begin_work(s);
    add_work(s, (fm__place){nfa->rule[0].start, 0, 0});
    close_work(s);
    if (s->is_cut) return fm_fail(FM_E_NOSUP, "grammar: too many ways to follow it at once");
    if (number_work(s) == FM__DEAD) return fm_fail(FM_E_ARG, "grammar: no text can satisfy it");
    return FM_OK;
}

void fm__states_fini(fm__states *s)
{
    for (int32_t i = 0; i < s->n_state; i++) {
        free(s->state[i].next);
        free(s->state[i].allowed);
    }
    free(s->state);
    free(s->place);
    free(s->ret);
    free(s->work);
    free(s->move);
    fm__table_fini(&s->states);
    fm__table_fini(&s->rets);
    fm__table_fini(&s->works);
    *s = (fm__states){0};
}

/* The number of the set begun in `work`; adds to what it cost. */
static int32_t finish_work(fm__states *s, int64_t *cost)
{
    *cost += close_work(s);
    if (!s->is_cut) return number_work(s);
    *cost += FM__MAX_EFFORT;
    return FM__DEAD;
}

static void add_move(fm__states *s, fm__place to, int lo, int hi, char changes[257])
{
    if (s->n_move == s->cap_move) s->move = grow(s->move, &s->cap_move, sizeof *s->move);
    s->move[s->n_move++] = (fm__move){to, (unsigned char)lo, (unsigned char)hi};
    changes[lo] = changes[hi + 1] = 1;
}

/* White space in a gap: a space behind a comma, or a line end. */
static void add_gap_moves(fm__states *s, fm__place p, const fm__edge *e, char changes[257])
{
    fm__place to = {e->to, p.stack, p.layout};
    if (!fm__layout_is_inline(p.layout)) {
        to.layout = fm__layout_end_line(p.layout, (fm__gap)e->what);
        add_move(s, to, '\n', '\n', changes);
    } else if (e->what == FM__GAP_COMMA) {
        add_move(s, to, ' ', ' ', changes);
    }
}

static void gather_place(fm__states *s, fm__place p, char changes[257])
{
    const fm__nfa *n   = s->nfa;
    const char     due = fm__layout_due(p.layout);
    if (due) {
        p.layout = fm__layout_indent(p.layout);
        add_move(s, p, due, due, changes);
        return;
    }
    for (int32_t k = n->first[p.state]; k >= 0; k = n->edge[k].next) {
        const fm__edge *e = &n->edge[k];
        if (e->kind == FM__EDGE_GAP) add_gap_moves(s, p, e, changes);
        if (e->kind != FM__EDGE_BYTE) continue;
        add_move(s, (fm__place){e->to, p.stack, p.layout}, e->lo, e->hi, changes);
    }
}

/* The moves of a state, and at which bytes the set of them that fit changes. */
static void gather_moves(fm__states *s, int32_t state, char changes[257])
{
    s->n_move = 0;
    for (int32_t i = 0; i < s->state[state].n; i++)
        gather_place(s, s->place[s->state[state].at + i], changes);
}

static int32_t after_byte(fm__states *s, unsigned char byte, int64_t *cost)
{
    begin_work(s);
    for (int32_t i = 0; i < s->n_move; i++)
        if (byte >= s->move[i].lo && byte <= s->move[i].hi) add_work(s, s->move[i].to);
    *cost += s->n_move / MOVES_PER_PLACE;
    return finish_work(s, cost);
}

/* Where all bytes lead; what is left out once it is too much, no walk gets to see. */
static void expand(fm__states *s, int32_t state)
{
    char     changes[257] = {0};
    int32_t  to           = FM__DEAD;
    int64_t  cost         = s->state[state].n;
    int32_t *next         = malloc(256 * sizeof *next);
    FM_BUG_UNLESS(next != NULL);
    gather_moves(s, state, changes);
    for (int b = 0; b < 256; b++) {
        if (cost > FM__MAX_EFFORT)
            to = FM__DEAD;
        else if (changes[b])
            to = after_byte(s, (unsigned char)b, &cost);
        next[b] = to;
    }
    s->state[state].next = next;
    s->state[state].cost = cost;
}

void fm__states_begin_walk(fm__states *s)
{
    s->walk++;
    s->effort = 0;
}

int32_t fm__states_byte(fm__states *s, int32_t state, unsigned char byte)
{
    if (!s->state[state].next) expand(s, state);
    fm__state *q = &s->state[state];
    if (q->walk != s->walk) {
        q->walk = s->walk;
        s->effort += q->cost;
    }
    return s->effort > FM__MAX_EFFORT ? FM__DEAD : q->next[byte];
}

int32_t fm__states_token(fm__states *s, int32_t state, int32_t token)
{
    const fm__nfa *n = s->nfa;
    begin_work(s);
    for (int32_t i = 0; i < s->state[state].n; i++) {
        const fm__place p = s->place[s->state[state].at + i];
        if (fm__layout_due(p.layout)) continue;
        for (int32_t k = n->first[p.state]; k >= 0; k = n->edge[k].next)
            if (n->edge[k].kind == FM__EDGE_TOKEN && n->edge[k].what == token)
                add_work(s, (fm__place){n->edge[k].to, p.stack, p.layout});
    }
    s->effort += s->state[state].n;
    return finish_work(s, &s->effort);
}

/* How many places can be reached from one without writing. */
static int32_t width_at(fm__states *s, int32_t nfa_state)
{
    begin_work(s);
    add_work(s, (fm__place){nfa_state, 0, 0});
    const int32_t n = follow_all(s);
    return s->is_cut ? INT32_MAX : n;
}

int32_t fm__states_widest(fm__states *s, int32_t *width)
{
    const fm__nfa *n      = s->nfa;
    int32_t        widest = n->rule[0].start;
    int64_t        effort = 0;
    *width                = 0;
    for (int32_t at = 0; at < n->n_state && effort < MAX_LOOK; at++)
        for (int32_t i = n->first[at]; i >= 0; i = n->edge[i].next) {
            if (fm__edge_is_silent(&n->edge[i])) continue;
            const int32_t w = width_at(s, n->edge[i].to);
            effort += w;
            if (w <= *width) continue;
            *width = w;
            widest = n->edge[i].to;
        }
    if (*width == INT32_MAX) return FM__DEAD;
    begin_work(s);
    add_work(s, (fm__place){widest, 0, 0});
    close_work(s);
    return number_work(s);
}

/* A list is copied from its bottom up. */
static int32_t copy_list(fm__states *to, const fm__states *from, int32_t stack)
{
    int32_t depth = 0, made = 0;
    for (int32_t i = stack; i; i = from->ret[i].below) depth++;
    int32_t *path = malloc((size_t)(depth + 1) * sizeof *path);
    FM_BUG_UNLESS(path != NULL);
    for (int32_t i = stack, k = depth; i; i = from->ret[i].below) path[--k] = from->ret[i].to;
    for (int32_t k = 0; k < depth; k++) made = list_of(to, path[k], made);
    free(path);
    return made;
}

int32_t fm__states_copy(fm__states *to, const fm__states *from, int32_t state)
{
    const fm__state *q = &from->state[state];
    begin_work(to);
    to->may_end = q->may_end;
    for (int32_t i = 0; i < q->n; i++) {
        fm__place p = from->place[q->at + i];
        p.stack     = copy_list(to, from, p.stack);
        add_work(to, p);
    }
    close_work(to);
    return number_work(to);
}
