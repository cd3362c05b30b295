/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "llm/grammar/grammar_internal.h"
#include "llm/grammar/seen_values.h"

/* Limits of the cache of states, which is emptied beyond them; a state takes a kilobyte or two, its
 * mask of tokens a bit each. */
enum { MAX_STATES = 4096, MAX_PLACES = 1 << 20, MAX_ALLOWED = 256 };

enum { MIN_WIDE = 256 }; /* places reachable from one: beyond, the grammar's effort is checked */

static size_t n_word(const fm_grammar *g)
{
    return ((size_t)g->of->vocab + 31) / 32;
}

static void set_bit(uint32_t *bits, int32_t i)
{
    bits[i / 32] |= 1u << i % 32;
}

static uint32_t *new_bits(const fm_grammar *g)
{
    uint32_t *bits = calloc(n_word(g) + 1, sizeof *bits);
    FM_BUG_UNLESS(bits != NULL);
    return bits;
}

/* Marks around calls and ends of a text; a tokenizer need not call them special. */
static void find_marks(fm_grammar *g)
{
    g->mark = new_bits(g);
    for (int32_t i = 0; i < g->nfa.n_edge; i++)
        if (g->nfa.edge[i].kind == FM__EDGE_TOKEN && g->nfa.edge[i].what < g->of->vocab)
            set_bit(g->mark, g->nfa.edge[i].what);
    for (int i = 0; i < g->of->n_eos; i++)
        if (g->of->eos[i] < g->of->vocab) set_bit(g->mark, g->of->eos[i]);
}

static int is_mark(const fm_grammar *g, int32_t token)
{
    return token < g->of->vocab && (g->mark[token / 32] >> token % 32 & 1);
}

static int is_too_much(const fm_grammar *g)
{
    return g->states.effort > FM__MAX_EFFORT;
}

/* Does a token begin an item of an array with uniqueItems and complete it, too?  Then it is not
 * known in time whether the item is new; for a scarce one, whether one with its beginning is. */
static int hides_item(const fm_grammar *g, const char *bytes, int len)
{
    const fm__state *q     = g->states.state;
    int              began = 0;
    if (!g->nfa.has_marks) return 0;
    if (fm__seen_hides_value(&g->states, g->path, bytes, len)) return 1;
    for (int i = 1; i <= len; i++) {
        const int was = q[g->path[i - 1]].mark & FM__IN_ITEM, is = q[g->path[i]].mark & FM__IN_ITEM;
        if (!was && is) began = 1;
        if (was && began && (!is || q[g->path[i]].mark & FM__IN_SCARCE)) return 1;
    }
    return 0;
}

/* Walks the tokens in the order of their bytes.  path[i] is the state after i
 * bytes of the current one, `good` how many of them may come. */
static void walk_tokens(fm_grammar *g, int32_t state, uint32_t *bits)
{
    const fm__token_order *o    = &g->of->order;
    int32_t               *path = g->path;
    int                    good = 0;
    path[0]                     = state;
    for (int i = 0; i < o->n && !is_too_much(g); i++) {
        if (o->shared[i] > good) continue; /* it has the byte that may not come, too */
        if (o->shared[i] < good) good = o->shared[i];
        while (good < o->len[i]) {
            const int32_t to =
                fm__states_byte(&g->states, path[good], (unsigned char)o->bytes[i][good]);
            if (to == FM__DEAD) break;
            path[++good] = to;
        }
        if (good == o->len[i] && !hides_item(g, o->bytes[i], good)) set_bit(bits, o->id[i]);
    }
    for (size_t i = 0; i < n_word(g); i++) bits[i] &= ~g->mark[i];
}

static void add_marks(fm_grammar *g, int32_t state, uint32_t *bits)
{
    fm__states *s = &g->states;
    for (int32_t i = 0; i < s->state[state].n && !is_too_much(g); i++)
        for (int32_t e = g->nfa.first[s->place[s->state[state].at + i].state]; e >= 0;
             e         = g->nfa.edge[e].next)
            if (g->nfa.edge[e].kind == FM__EDGE_TOKEN && g->nfa.edge[e].what < g->of->vocab &&
                fm__states_token(s, state, g->nfa.edge[e].what) != FM__DEAD)
                set_bit(bits, g->nfa.edge[e].what);
}

static void add_ends(const fm_grammar *g, uint32_t *bits)
{
    for (int i = 0; i < g->of->n_eos; i++)
        if (g->of->eos[i] < g->of->vocab) set_bit(bits, g->of->eos[i]);
}

static void forget_allowed(fm_grammar *g)
{
    for (int32_t i = 0; i < g->states.n_state; i++) {
        free(g->states.state[i].allowed);
        g->states.state[i].allowed = NULL;
    }
    g->n_allowed = 0;
}

static const uint32_t *allowed_at(fm_grammar *g, int32_t state)
{
    fm__states *s = &g->states;
    if (s->state[state].allowed) return s->state[state].allowed;
    if (g->n_allowed == MAX_ALLOWED) forget_allowed(g);
    uint32_t *bits = new_bits(g);
    fm__states_begin_walk(s);
    walk_tokens(g, state, bits);
    add_marks(g, state, bits);
    if (is_too_much(g)) memset(bits, 0, n_word(g) * sizeof *bits); /* they are not all */
    if (s->state[state].may_end) add_ends(g, bits);
    s->state[state].is_too_much = is_too_much(g);
    s->state[state].allowed     = bits;
    g->n_allowed++;
    return bits;
}

/* Empties the cache of states; only the states in which matchers are now are kept. */
static void begin_anew(fm_grammar *g)
{
    fm__states      fresh;
    const fm_status rc = fm__states_init(&fresh, &g->nfa);
    FM_BUG_UNLESS(rc == FM_OK); /* it was before */
    for (fm_matcher *m = g->matchers; m; m = m->next)
        m->state = fm__states_copy(&fresh, &g->states, m->state);
    fm__states_fini(&g->states);
    g->states    = fresh;
    g->n_allowed = 0;
}

/* A place far from the start, too, can have too many continuations. */
static int is_too_wide(fm_grammar *g)
{
    int32_t       width = 0;
    const int32_t state = fm__states_widest(&g->states, &width);
    if (state == FM__DEAD) return 1;
    if (width < MIN_WIDE) return 0;
    allowed_at(g, state);
    return g->states.state[state].is_too_much;
}

fm_status fm__grammar_warm(fm_grammar *g)
{
    pthread_mutex_lock(&g->lock);
    find_marks(g);
    allowed_at(g, 0);
    const int too_much = g->states.state[0].is_too_much || is_too_wide(g);
    pthread_mutex_unlock(&g->lock);
    return too_much ? fm_fail(FM_E_NOSUP, "grammar: too many ways to follow it at once") : FM_OK;
}

static int is_at_end(const fm_matcher *m)
{
    const fm__state *q = &m->grammar->states.state[m->state];
    return q->may_end && !q->n;
}

static void look(fm_matcher *m)
{
    m->over = is_at_end(m);
    memcpy(m->allowed, allowed_at(m->grammar, m->state), n_word(m->grammar) * 4);
    fm__seen_exclude(&m->seen, &m->grammar->states, m->state, &m->grammar->of->order, m->allowed);
}

fm_status fm_matcher_create(fm_matcher **out, fm_grammar *g, const char *after)
{
    const size_t n_after = after ? strlen(after) : 0;
    fm_matcher  *m       = calloc(1, sizeof *m + n_word(g) * sizeof *m->allowed);
    if (m && n_after) m->after = strdup(after);
    if (m && n_after) m->tail = malloc(n_after);
    if (!m || (n_after && (!m->after || !m->tail))) {
        if (m) free(m->after);
        free(m);
        return fm_fail(FM_E_OOM, "matcher");
    }
    m->after_len = n_after;
    m->grammar   = g;
    fm_grammar_retain(g);
    pthread_mutex_lock(&g->lock);
    m->next = g->matchers;
    if (g->matchers) g->matchers->prev = m;
    g->matchers = m;
    if (!m->after) look(m);
    pthread_mutex_unlock(&g->lock);
    *out = m;
    return FM_OK;
}

void fm_matcher_destroy(fm_matcher *m)
{
    if (!m) return;
    fm_grammar *g = m->grammar;
    pthread_mutex_lock(&g->lock);
    if (m->prev)
        m->prev->next = m->next;
    else
        g->matchers = m->next;
    if (m->next) m->next->prev = m->prev;
    pthread_mutex_unlock(&g->lock);
    fm_grammar_release(g);
    fm__seen_fini(&m->seen);
    free(m->after);
    free(m->tail);
    free(m);
}

const uint32_t *fm_matcher_allowed(const fm_matcher *m)
{
    return m->after ? NULL : m->allowed;
}

int fm_matcher_is_over(const fm_matcher *m)
{
    return !m->after && m->over;
}

/* Looks for the text that comes before the grammar; it may be cut by tokens. */
static void wait_for(fm_matcher *m, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (m->n_tail == m->after_len) memmove(m->tail, m->tail + 1, --m->n_tail);
        m->tail[m->n_tail++] = bytes[i];
    }
    if (m->n_tail < m->after_len || memcmp(m->tail, m->after, m->after_len)) return;
    free(m->after);
    m->after = NULL;
    look(m);
}

static int is_eos(const fm_grammars *gs, int32_t token)
{
    for (int i = 0; i < gs->n_eos; i++)
        if (gs->eos[i] == token) return 1;
    return 0;
}

static fm_status refuse_to_follow(void)
{
    return fm_fail(FM_E_NOSUP, "grammar: there are too many ways to follow it further");
}

static int32_t take_byte(fm_matcher *m, int32_t state, char byte)
{
    fm__states   *s  = &m->grammar->states;
    const int32_t to = fm__states_byte(s, state, (unsigned char)byte);
    if (m->grammar->nfa.has_marks && to != FM__DEAD)
        fm__seen_byte(&m->seen, s->state[state].mark, s->state[to].mark, byte);
    return to;
}

/* uniqueItems excludes tokens by what was generated before, which automaton states do not hold. */
static int is_excluded(const fm_matcher *m, int32_t token)
{
    return m->grammar->nfa.has_marks && token < m->grammar->of->vocab &&
           !(m->allowed[token / 32] >> token % 32 & 1);
}

static fm_status take(fm_matcher *m, int32_t token)
{
    fm_grammar *g     = m->grammar;
    fm__states *s     = &g->states;
    size_t      n     = 0;
    const char *bytes = fm_token_bytes(g->of->tokenizer, token, &n);
    int32_t     to    = m->state;
    if (s->state[to].may_end && is_eos(g->of, token)) {
        m->over = 1;
        return FM_OK;
    }
    if (s->state[to].is_too_much) return refuse_to_follow();
    if (is_excluded(m, token))
        return fm_fail(FM_E_ARG, "grammar: token %d may not come here", (int)token);
    fm__states_begin_walk(s);
    if (!n || is_mark(g, token) || fm_token_is_special(g->of->tokenizer, token))
        to = fm__states_token(s, to, token);
    else
        for (size_t i = 0; i < n && to != FM__DEAD; i++) to = take_byte(m, to, bytes[i]);
    if (m->over || to == FM__DEAD)
        return fm_fail(FM_E_ARG, "grammar: token %d may not come here", (int)token);
    m->state = to;
    if (s->n_state > MAX_STATES || s->n_place > MAX_PLACES) begin_anew(g);
    look(m);
    const fm__state *q = &g->states.state[m->state];
    return q->is_too_much && !q->may_end ? refuse_to_follow() : FM_OK;
}

fm_status fm_matcher_take(fm_matcher *m, int32_t token)
{
    fm_status rc = FM_OK;
    pthread_mutex_lock(&m->grammar->lock);
    if (m->after) {
        size_t      n     = 0;
        const char *bytes = fm_token_bytes(m->grammar->of->tokenizer, token, &n);
        wait_for(m, bytes, n);
    } else {
        rc = take(m, token);
    }
    pthread_mutex_unlock(&m->grammar->lock);
    return rc;
}

/* --- tokens that may come --------------------------------------------------- */

size_t fm_matcher_mask_words(const fm_matcher *m)
{
    return n_word(m->grammar);
}

/* The state behind a token that is allowed, or FM__DEAD where the text is over or it is unknown. */
static int32_t state_behind(fm_grammar *g, int32_t state, int32_t token)
{
    fm__states *s     = &g->states;
    size_t      n     = 0;
    const char *bytes = fm_token_bytes(g->of->tokenizer, token, &n);
    if (is_eos(g->of, token) || s->state[state].is_too_much || s->n_state > MAX_STATES) return FM__DEAD;
    fm__states_begin_walk(s);
    if (!n || is_mark(g, token) || fm_token_is_special(g->of->tokenizer, token))
        return fm__states_token(s, state, token);
    for (size_t i = 0; i < n && state != FM__DEAD; i++)
        state = fm__states_byte(s, state, (unsigned char)bytes[i]);
    return state;
}

static int peek(fm_matcher *m, const int32_t *token, int n, uint32_t *mask)
{
    fm_grammar     *g       = m->grammar;
    const uint32_t *allowed = m->allowed;
    int32_t         state   = m->state;
    if (g->nfa.has_marks || m->over) return 0; /* what was seen is no part of a state */
    for (int i = 0; i < n; i++, allowed = mask, mask += n_word(g)) {
        if (token[i] >= g->of->vocab || !(allowed[token[i] / 32] >> token[i] % 32 & 1)) return i;
        state = state_behind(g, state, token[i]);
        if (state == FM__DEAD || !g->states.state[state].n) return i;
        memcpy(mask, allowed_at(g, state), n_word(g) * sizeof *mask);
        if (g->states.state[state].is_too_much) return i;
    }
    return n;
}

/* Those that cannot complete the text that is waited for, since they do not have its last byte. */
static int peek_before(const fm_matcher *m, const int32_t *token, int n)
{
    const char last = m->after[m->after_len - 1];
    for (int i = 0; i < n; i++) {
        size_t      len   = 0;
        const char *bytes = fm_token_bytes(m->grammar->of->tokenizer, token[i], &len);
        if (len && memchr(bytes, last, len)) return i;
    }
    return n;
}

int fm_matcher_peek(fm_matcher *m, const int32_t *token, int n, uint32_t *mask)
{
    pthread_mutex_lock(&m->grammar->lock);
    const int may = m->after ? peek_before(m, token, n) : peek(m, token, n, mask);
    pthread_mutex_unlock(&m->grammar->lock);
    return may;
}
