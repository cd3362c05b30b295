/* SPDX-License-Identifier: Apache-2.0 */
/* After building: removes edges from which the end of the text cannot be reached, so that
 * a matcher never walks into a dead end, and edges that cannot be reached from the start; and
 * refuses rules that call themselves before they have written anything (left recursion), since
 * following them would not end. */
#include <stdlib.h>
#include <string.h>

#include "llm/grammar/nfa.h"

enum { MAX_DEPTH = 500 }; /* of rules that begin with a call */

typedef struct {
    fm__nfa *n;
    char    *reached; /* [n_state] by some text */
    char    *reaches; /* [n_state] its rule's end */
    char    *empty;   /* [n_state] ... without writing anything */
    char    *mark;    /* [n_rule] 1: being followed, 2: done */
    char    *seen;    /* [n_state] was on the list; a state belongs to one rule */
    int32_t *todo;    /* [n_todo] of at most n_state */
    int32_t  n_todo;
    int32_t *from;               /* [n_edge] the state an edge leaves */
    int32_t *into, *into_next;   /* edges that enter a state, linked */
    int32_t *starts;             /* [n_state] the rule that begins there, or -1 */
    int32_t *calls, *calls_next; /* edges that call a rule, linked */
    int32_t  guilty;             /* a rule that calls itself before anything is written, */
    int      is_deep;            /* ... or too many begin with a call of the next */
} check;

static int leads_on(const check *c, const fm__edge *e, const char *good)
{
    return good[e->to] && (e->kind != FM__EDGE_CALL || good[c->n->rule[e->what].start]);
}

static void mark(check *c, char *good, int32_t s)
{
    if (good[s]) return;
    good[s]              = 1;
    c->todo[c->n_todo++] = s;
}

static void try_edges(check *c, char *good, int32_t i, const int32_t *next, int only_empty)
{
    for (; i >= 0; i = next[i]) {
        const fm__edge *e      = &c->n->edge[i];
        const int       writes = e->kind == FM__EDGE_BYTE || e->kind == FM__EDGE_TOKEN;
        if (!(only_empty && writes) && leads_on(c, e, good)) mark(c, good, c->from[i]);
    }
}

/* Marks states backwards from the ends of the rules; `only_empty`: along edges
 * that write nothing. */
static void spread(check *c, char *good, int only_empty)
{
    const fm__nfa *n = c->n;
    memset(good, 0, (size_t)n->n_state);
    c->n_todo = 0;
    for (int32_t r = 0; r < n->n_rule; r++) mark(c, good, n->rule[r].end);
    while (c->n_todo) {
        const int32_t s = c->todo[--c->n_todo];
        try_edges(c, good, c->into[s], c->into_next, only_empty);
        if (c->starts[s] >= 0)
            try_edges(c, good, c->calls[c->starts[s]], c->calls_next, only_empty);
    }
}

static int32_t *new_list(size_t n)
{
    int32_t *list = malloc((n + 1) * sizeof *list);
    FM_BUG_UNLESS(list != NULL);
    memset(list, 0xff, (n + 1) * sizeof *list);
    return list;
}

/* Lists of the edges into each state, and of the calls of each rule. */
static void reverse_edges(check *c)
{
    const fm__nfa *n = c->n;
    c->from          = new_list((size_t)n->n_edge);
    c->into          = new_list((size_t)n->n_state);
    c->into_next     = new_list((size_t)n->n_edge);
    c->starts        = new_list((size_t)n->n_state);
    c->calls         = new_list((size_t)n->n_rule);
    c->calls_next    = new_list((size_t)n->n_edge);
    for (int32_t r = 0; r < n->n_rule; r++) c->starts[n->rule[r].start] = r;
    for (int32_t s = 0; s < n->n_state; s++)
        for (int32_t i = n->first[s]; i >= 0; i = n->edge[i].next) {
            const fm__edge *e = &n->edge[i];
            c->from[i]        = s;
            c->into_next[i]   = c->into[e->to];
            c->into[e->to]    = i;
            if (e->kind != FM__EDGE_CALL) continue;
            c->calls_next[i]  = c->calls[e->what];
            c->calls[e->what] = i;
        }
}

/* Marks states from the beginning of the text on. */
static void reach(check *c)
{
    const fm__nfa *n = c->n;
    memset(c->reached, 0, (size_t)n->n_state);
    c->n_todo = 0;
    mark(c, c->reached, n->rule[0].start);
    while (c->n_todo)
        for (int32_t i = n->first[c->todo[--c->n_todo]]; i >= 0; i = n->edge[i].next) {
            mark(c, c->reached, n->edge[i].to);
            if (n->edge[i].kind == FM__EDGE_CALL)
                mark(c, c->reached, n->rule[n->edge[i].what].start);
        }
}

static void forget_unreached(check *c)
{
    for (int32_t s = 0; s < c->n->n_state; s++)
        if (!c->reached[s]) c->n->first[s] = -1;
}

static void prune(check *c)
{
    fm__nfa *n = c->n;
    for (int32_t s = 0; s < n->n_state; s++)
        for (int32_t *link = &n->first[s]; *link >= 0;) {
            fm__edge *e = &n->edge[*link];
            if (leads_on(c, e, c->reaches))
                link = &e->next;
            else
                *link = e->next;
        }
}

static int calls_itself(check *c, int32_t rule, int depth);

static void enter(check *c, int32_t s)
{
    if (c->seen[s]) return;
    c->seen[s]           = 1;
    c->todo[c->n_todo++] = s;
}

/* Everything that can be entered from `start` before a byte is written. */
static int follow(check *c, int32_t start, int depth)
{
    const int32_t base = c->n_todo;
    enter(c, start);
    while (c->n_todo > base) {
        const int32_t s = c->todo[--c->n_todo];
        for (int32_t i = c->n->first[s]; i >= 0; i = c->n->edge[i].next) {
            const fm__edge *e = &c->n->edge[i];
            if (e->kind == FM__EDGE_CALL && calls_itself(c, e->what, depth + 1)) return 1;
            if (fm__edge_is_silent(e) ||
                (e->kind == FM__EDGE_CALL && c->empty[c->n->rule[e->what].start]))
                enter(c, e->to);
        }
    }
    return 0;
}

static int calls_itself(check *c, int32_t rule, int depth)
{
    c->guilty = rule;
    if (c->mark[rule]) return c->mark[rule] == 1;
    if (depth > MAX_DEPTH) return c->is_deep = 1;
    c->mark[rule]   = 1;
    const int found = follow(c, c->n->rule[rule].start, depth);
    c->mark[rule]   = 2;
    return found;
}

static fm_status refuse_recursion(const check *c)
{
    const int   line = c->n->rule[c->guilty].line;
    const char *why  = c->is_deep ? "too many rules begin with one another"
                                  : "a rule refers to itself without anything between";
    return line ? fm_fail(FM_E_NOSUP, "grammar, line %d: %s", line, why)
                : fm_fail(FM_E_NOSUP, "grammar: %s", why);
}

static fm_status check_all(check *c)
{
    fm__nfa *n = c->n;
    reverse_edges(c);
    spread(c, c->reaches, 0);
    if (!c->reaches[n->rule[0].start]) return fm_fail(FM_E_ARG, "grammar: no text can satisfy it");
    prune(c);
    reach(c);
    forget_unreached(c);
    spread(c, c->empty, 1);
    c->n_todo = 0;
    for (int32_t r = 0; r < n->n_rule; r++)
        if (calls_itself(c, r, 0)) return refuse_recursion(c);
    return FM_OK;
}

fm_status fm__nfa_finish(fm__nfa *n)
{
    if (n->full) return fm_fail(FM_E_NOSUP, "grammar: it is too large");
    check     c  = {.n = n};
    fm_status rc = FM_OK;
    c.reached    = malloc((size_t)n->n_state);
    c.reaches    = malloc((size_t)n->n_state);
    c.empty      = malloc((size_t)n->n_state);
    c.mark       = calloc((size_t)n->n_rule, 1);
    c.seen       = calloc((size_t)n->n_state, 1);
    c.todo       = malloc((size_t)n->n_state * sizeof *c.todo);
    if (!c.reached || !c.reaches || !c.empty || !c.mark || !c.seen || !c.todo)
        rc = fm_fail(FM_E_OOM, "grammar");
    if (rc == FM_OK) rc = check_all(&c);
    free(c.reached);
    free(c.reaches);
    free(c.empty);
    free(c.mark);
    free(c.seen);
    free(c.todo);
    free(c.from);
    free(c.into);
    free(c.into_next);
    free(c.starts);
    free(c.calls);
    free(c.calls_next);
    return rc;
}
