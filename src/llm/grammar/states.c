/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/states.h"

#include <stdlib.h>
#include <string.h>

/* More ways than these to go on at once are cut; those that remain are right. */
enum { UNKNOWN = -2, MAX_WORK = 1 << 14 };

static void *grow(void *list, int32_t *cap, size_t size)
{
    *cap       = *cap ? 2 * *cap : 64;
    void *more = realloc(list, (size_t)*cap * size);
    FM_BUG_UNLESS(more != NULL);
    return more;
}

static int32_t *new_slots(int32_t n)
{
    int32_t *slot = malloc((size_t)n * sizeof *slot);
    FM_BUG_UNLESS(slot != NULL);
    memset(slot, 0xff, (size_t)n * sizeof *slot);
    return slot;
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
    if (2 * s->n_ret > s->ret_mask) {
        const int32_t mask = 2 * s->ret_mask + 1;
        int32_t      *slot = new_slots(mask + 1);
        for (int32_t i = 1; i < s->n_ret; i++) {
            uint32_t h = mix(0, s->ret[i].to, s->ret[i].below);
            while (slot[h & (uint32_t)mask] >= 0) h++;
            slot[h & (uint32_t)mask] = i;
        }
        free(s->ret_slot);
        s->ret_slot = slot;
        s->ret_mask = mask;
    }
    uint32_t h = mix(0, to, below);
    for (int32_t i; (i = s->ret_slot[h & (uint32_t)s->ret_mask]) >= 0; h++)
        if (s->ret[i].to == to && s->ret[i].below == below) return i;
    if (s->n_ret == s->cap_ret) s->ret = grow(s->ret, &s->cap_ret, sizeof *s->ret);
    s->ret[s->n_ret]                       = (fm__return){to, below};
    s->ret_slot[h & (uint32_t)s->ret_mask] = s->n_ret;
    return s->n_ret++;
}

static void begin_work(fm__states *s)
{
    memset(s->work_slot, 0xff, (size_t)(s->work_mask + 1) * sizeof *s->work_slot);
    s->n_work  = 0;
    s->may_end = 0;
}

static void grow_work_slots(fm__states *s)
{
    free(s->work_slot);
    s->work_mask = 2 * s->work_mask + 1;
    s->work_slot = new_slots(s->work_mask + 1);
    for (int32_t i = 0; i < s->n_work; i++) {
        uint32_t h = mix(1, s->work[i].state, s->work[i].stack);
        while (s->work_slot[h & (uint32_t)s->work_mask] >= 0) h++;
        s->work_slot[h & (uint32_t)s->work_mask] = i;
    }
}

static void add_work(fm__states *s, int32_t state, int32_t stack)
{
    if (2 * s->n_work > s->work_mask) grow_work_slots(s);
    uint32_t h = mix(1, state, stack);
    for (int32_t i; (i = s->work_slot[h & (uint32_t)s->work_mask]) >= 0; h++)
        if (s->work[i].state == state && s->work[i].stack == stack) return;
    if (s->n_work == MAX_WORK) {
        s->is_cut = 1;
        return;
    }
    if (s->n_work == s->cap_work) s->work = grow(s->work, &s->cap_work, sizeof *s->work);
    s->work_slot[h & (uint32_t)s->work_mask] = s->n_work;
    s->work[s->n_work++]                     = (fm__place){state, stack};
}

/* A call whose return would return at once needs no place on the list. */
static int returns_at_once(const fm__nfa *n, int32_t state)
{
    const int32_t e = n->first[state];
    return n->ends[state] || (e >= 0 && n->edge[e].next < 0 && n->edge[e].kind == FM__EDGE_EMPTY &&
                              n->ends[n->edge[e].to]);
}

static void follow(fm__states *s, fm__place p)
{
    const fm__nfa *n = s->nfa;
    if (n->ends[p.state]) {
        if (p.stack)
            add_work(s, s->ret[p.stack].to, s->ret[p.stack].below);
        else
            s->may_end = 1;
    }
    for (int32_t i = n->first[p.state]; i >= 0; i = n->edge[i].next) {
        const fm__edge *e = &n->edge[i];
        if (e->kind == FM__EDGE_EMPTY) add_work(s, e->to, p.stack);
        if (e->kind == FM__EDGE_CALL)
            add_work(s, n->rule[e->what].start,
                     returns_at_once(n, e->to) ? p.stack : list_of(s, e->to, p.stack));
    }
}

static int writes(const fm__nfa *n, int32_t state)
{
    for (int32_t i = n->first[state]; i >= 0; i = n->edge[i].next)
        if (n->edge[i].kind == FM__EDGE_BYTE || n->edge[i].kind == FM__EDGE_TOKEN) return 1;
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const fm__place *x = a, *y = b;
    if (x->state != y->state) return x->state < y->state ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Everything reachable without writing; what remains are places that write. */
static void close_work(fm__states *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n_work; i++) follow(s, s->work[i]);
    s->effort += s->n_work;
    for (int32_t i = 0; i < s->n_work; i++)
        if (writes(s->nfa, s->work[i].state)) s->work[n++] = s->work[i];
    s->n_work = n;
    qsort(s->work, (size_t)n, sizeof *s->work, by_number);
}

static uint32_t hash_places(const fm__place *p, int32_t n, int may_end)
{
    uint32_t h = (uint32_t)may_end;
    for (int32_t i = 0; i < n; i++) h = mix(h, p[i].state, p[i].stack);
    return h;
}

static void grow_state_slots(fm__states *s)
{
    free(s->state_slot);
    s->state_mask = 2 * s->state_mask + 1;
    s->state_slot = new_slots(s->state_mask + 1);
    for (int32_t i = 0; i < s->n_state; i++) {
        const fm__state *q = &s->state[i];
        uint32_t         h = hash_places(s->place + q->at, q->n, q->may_end);
        while (s->state_slot[h & (uint32_t)s->state_mask] >= 0) h++;
        s->state_slot[h & (uint32_t)s->state_mask] = i;
    }
}

/* The number of the set in `work`. */
static int32_t number_work(fm__states *s)
{
    close_work(s);
    if (!s->n_work && !s->may_end) return FM__DEAD;
    if (2 * s->n_state > s->state_mask) grow_state_slots(s);
    const size_t bytes = (size_t)s->n_work * sizeof *s->work;
    uint32_t     h     = hash_places(s->work, s->n_work, s->may_end);
    for (int32_t i; (i = s->state_slot[h & (uint32_t)s->state_mask]) >= 0; h++) {
        const fm__state *q = &s->state[i];
        if (q->n == s->n_work && q->may_end == s->may_end &&
            !memcmp(s->place + q->at, s->work, bytes))
            return i;
    }
    while (s->n_place + s->n_work > s->cap_place)
        s->place = grow(s->place, &s->cap_place, sizeof *s->place);
    if (s->n_state == s->cap_state) s->state = grow(s->state, &s->cap_state, sizeof *s->state);
    if (bytes) memcpy(s->place + s->n_place, s->work, bytes);
    s->state[s->n_state] = (fm__state){.at = s->n_place, .n = s->n_work, .may_end = s->may_end};
    s->n_place += s->n_work;
    s->state_slot[h & (uint32_t)s->state_mask] = s->n_state;
    return s->n_state++;
}

void fm__states_init(fm__states *s, const fm__nfa *nfa)
{
    *s = (fm__states){.nfa = nfa, .state_mask = 63, .ret_mask = 63, .work_mask = 63, .n_ret = 1};
    s->state_slot = new_slots(64);
    s->ret_slot   = new_slots(64);
    s->work_slot  = new_slots(64);
    s->ret        = grow(NULL, &s->cap_ret, sizeof *s->ret);
    s->place      = grow(NULL, &s->cap_place, sizeof *s->place);
    s->work       = grow(NULL, &s->cap_work, sizeof *s->work);
    begin_work(s);
    add_work(s, nfa->rule[0].start, 0);
    const int32_t start = number_work(s);
    FM_BUG_UNLESS(start == 0);
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
    free(s->state_slot);
    free(s->ret_slot);
    free(s->work_slot);
    *s = (fm__states){0};
}

static int fits(const fm__edge *e, fm__edge_kind kind, int32_t what)
{
    if (e->kind != kind) return 0;
    return kind == FM__EDGE_TOKEN ? e->what == what : what >= e->lo && what <= e->hi;
}

static int32_t step(fm__states *s, int32_t state, fm__edge_kind kind, int32_t what)
{
    const fm__nfa *n = s->nfa;
    if (s->effort > FM__MAX_EFFORT) return FM__DEAD;
    begin_work(s);
    for (int32_t i = 0; i < s->state[state].n; i++) {
        const fm__place p = s->place[s->state[state].at + i];
        for (int32_t e = n->first[p.state]; e >= 0; e = n->edge[e].next)
            if (fits(&n->edge[e], kind, what)) add_work(s, n->edge[e].to, p.stack);
    }
    s->effort += s->state[state].n;
    return number_work(s);
}

int32_t fm__states_byte(fm__states *s, int32_t state, unsigned char byte)
{
    if (!s->state[state].next) {
        int32_t *next = malloc(256 * sizeof *next);
        FM_BUG_UNLESS(next != NULL);
        for (int i = 0; i < 256; i++) next[i] = UNKNOWN;
        s->state[state].next = next;
    }
    const int32_t known = s->state[state].next[byte];
    if (known != UNKNOWN) return known;
    const int32_t to = step(s, state, FM__EDGE_BYTE, byte);
    if (s->effort <= FM__MAX_EFFORT) s->state[state].next[byte] = to;
    return to;
}

int32_t fm__states_token(fm__states *s, int32_t state, int32_t token)
{
    return step(s, state, FM__EDGE_TOKEN, token);
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
    for (int32_t i = 0; i < q->n; i++)
        add_work(to, from->place[q->at + i].state,
                 copy_list(to, from, from->place[q->at + i].stack));
    return number_work(to);
}
