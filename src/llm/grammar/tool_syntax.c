/* SPDX-License-Identifier: Apache-2.0 */
/* Tool calls in the form a model was trained on, from where the prompt leaves
 * off: NAME, arguments, end of the call; more calls; end of the calls. */
#include <string.h>

#include "json/read.h"
#include "llm/grammar/grammar_internal.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_SCHEMA = 1 << 20 };

typedef struct {
    fm__nfa                *n;
    const fm_grammar_calls *c;
    const fm_tokenizer     *t;
    const char *const      *mark;
} syntax;

/* A mark is one token where the tokenizer knows it, else its text. */
static int32_t add_mark(const syntax *x, int32_t from, fm_tool_mark which)
{
    const int32_t id = fm_token_id(x->t, x->mark[which]);
    return id >= 0 ? fm__nfa_token(x->n, from, id) : fm__nfa_word(x->n, from, x->mark[which]);
}

/* The arguments of a tool; a schema beyond us means any object. */
static fm_status make_arguments(const syntax *x, const fm_grammar_tool *tool, int32_t *rule)
{
    json_t   *schema = NULL;
    int32_t   to     = 0;
    fm_status rc     = FM_OK;
    *rule            = fm__nfa_rule(x->n);
    if (x->n->full) return FM_OK;
    const fm__rule r = x->n->rule[*rule];
    if (strlen(tool->schema) > MAX_SCHEMA)
        return fm_fail(FM_E_NOSUP, "parameters of %.60s: more than %d bytes", tool->name,
                       MAX_SCHEMA);
    rc = fm_json_parse(&schema, tool->schema, strlen(tool->schema), "parameters");
    if (rc == FM_OK) rc = fm__nfa_schema(x->n, schema, r.start, &to);
    json_decref(schema);
    if (rc == FM_E_OOM || (rc != FM_OK && tool->strict)) return rc;
    if (rc != FM_OK) { /* what was begun leads nowhere and will be removed */
        to = fm__nfa_object(x->n, r.start);
    }
    fm__nfa_empty(x->n, to, r.end);
    return FM_OK;
}

/* Between the name and the arguments, and behind them. */
static int32_t add_before_arguments(const syntax *x, int32_t at)
{
    if (x->c->style == FM_TOOLS_V3) return fm__nfa_word(x->n, at, "\n```json\n");
    if (x->c->style == FM_TOOLS_KIMI) at = fm__nfa_digits(x->n, fm__nfa_word(x->n, at, ":"), 1, 3);
    return add_mark(x, at, FM_MARK_SEPARATOR);
}

static int32_t add_after_arguments(const syntax *x, int32_t at)
{
    if (x->c->style == FM_TOOLS_V3) at = fm__nfa_word(x->n, at, "\n```");
    return add_mark(x, at, FM_MARK_CALL_END);
}

static int32_t add_next_opening(const syntax *x, int32_t at)
{
    if (x->c->style == FM_TOOLS_V3) at = fm__nfa_word(x->n, at, "\n");
    at = add_mark(x, at, FM_MARK_CALL_BEGIN);
    if (x->c->style == FM_TOOLS_V3)
        at = add_mark(x, fm__nfa_word(x->n, at, "function"), FM_MARK_SEPARATOR);
    if (x->c->style == FM_TOOLS_KIMI) at = fm__nfa_word(x->n, at, "functions.");
    return at;
}

static int is_chosen(const fm_grammar_calls *c, int i)
{
    return !c->chosen || !strcmp(c->chosen, c->tool[i].name);
}

fm_status fm__nfa_calls(fm__nfa *n, const fm_grammar_calls *c, const fm_tokenizer *t)
{
    const syntax  x    = {.n = n, .c = c, .t = t, .mark = fm_tool_calls_marks(c->style)};
    const int32_t name = fm__nfa_state(n), after = fm__nfa_state(n);
    for (int i = 0; i < c->n_tool; i++) {
        int32_t rule = 0;
        if (!is_chosen(c, i)) continue;
        FM_TRY(make_arguments(&x, &c->tool[i], &rule));
        const int32_t at = add_before_arguments(&x, fm__nfa_word(n, name, c->tool[i].name));
        fm__nfa_empty(n, add_after_arguments(&x, fm__nfa_call(n, at, rule)), after);
        if (c->chosen) fm__nfa_empty(n, n->rule[0].start, at); /* the prompt has the name */
    }
    if (!c->chosen) fm__nfa_empty(n, n->rule[0].start, name);
    if (!c->one_call) fm__nfa_empty(n, add_next_opening(&x, after), name);
    fm__nfa_empty(n, add_mark(&x, after, FM_MARK_CALLS_END), n->rule[0].end);
    return FM_OK;
}
