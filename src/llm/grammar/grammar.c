/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "json/read.h"
#include "llm/grammar/grammar_internal.h"
#include "llm/grammar/schema_internal.h"

enum { MAX_SCHEMA = 1 << 20 };

fm_status fm_grammars_create(fm_grammars **out, const fm_tokenizer *t, int vocab,
                             const int32_t *eos, int n_eos)
{
    fm_grammars *gs = calloc(1, sizeof *gs);
    if (!gs) return fm_fail(FM_E_OOM, "grammars");
    gs->tokenizer = t;
    gs->vocab     = vocab;
    gs->n_eos     = n_eos < FM__MAX_EOS ? n_eos : FM__MAX_EOS;
    memcpy(gs->eos, eos, (size_t)gs->n_eos * sizeof *eos);
    pthread_mutex_init(&gs->lock, NULL);
    *out = gs;
    return FM_OK;
}

static void drop_kept(fm__kept *k)
{
    fm_grammar_release(k->grammar);
    free(k->text);
    *k = (fm__kept){0};
}

void fm_grammars_destroy(fm_grammars *gs)
{
    if (!gs) return;
    for (int i = 0; i < FM__N_KEPT; i++) drop_kept(&gs->kept[i]);
    fm__token_order_fini(&gs->order);
    pthread_mutex_destroy(&gs->lock);
    free(gs);
}

void fm_grammar_retain(fm_grammar *g)
{
    if (g) atomic_fetch_add(&g->n_holder, 1);
}

void fm_grammar_release(fm_grammar *g)
{
    if (!g || atomic_fetch_sub(&g->n_holder, 1) > 1) return;
    fm__states_fini(&g->states);
    fm__nfa_fini(&g->nfa);
    pthread_mutex_destroy(&g->lock);
    free(g->path);
    free(g->mark);
    free(g);
}

static fm_grammar *find_kept(fm_grammars *gs, int kind, int flags, const char *text, size_t len)
{
    for (int i = 0; i < FM__N_KEPT; i++) {
        fm__kept *k = &gs->kept[i];
        if (!k->grammar || k->kind != kind || k->flags != flags || k->len != len ||
            memcmp(k->text, text, len))
            continue;
        k->used = ++gs->n_call;
        fm_grammar_retain(k->grammar);
        return k->grammar;
    }
    return NULL;
}

/* Replaces the least recently used grammar. */
static void keep(fm_grammars *gs, int kind, int flags, const char *text, size_t len, fm_grammar *g)
{
    fm__kept *oldest = &gs->kept[0];
    for (int i = 1; i < FM__N_KEPT; i++)
        if (gs->kept[i].used < oldest->used) oldest = &gs->kept[i];
    char *copy = malloc(len + 1);
    if (!copy) return; /* it works without */
    memcpy(copy, text, len);
    drop_kept(oldest);
    fm_grammar_retain(g);
    *oldest = (fm__kept){kind, flags, copy, len, g, ++gs->n_call};
}

static fm_status begin_lookup(fm_grammars *gs, int kind, int flags, const char *text, size_t len,
                              fm_grammar **found)
{
    fm_status rc = FM_OK;
    pthread_mutex_lock(&gs->lock);
    if (!gs->has_order) rc = fm__token_order_init(&gs->order, gs->tokenizer, gs->vocab);
    gs->has_order = rc == FM_OK;
    *found        = rc == FM_OK ? find_kept(gs, kind, flags, text, len) : NULL;
    pthread_mutex_unlock(&gs->lock);
    return rc;
}

/* Takes the automaton over; it is finished or freed. */
static fm_status make(fm_grammar **out, fm_grammars *gs, fm__nfa *n)
{
    fm_status rc = fm__nfa_finish(n);
    if (rc != FM_OK) {
        fm__nfa_fini(n);
        return rc;
    }
    fm_grammar *g = calloc(1, sizeof *g);
    FM_BUG_UNLESS(g != NULL);
    atomic_init(&g->n_holder, 1);
    g->of   = gs;
    g->nfa  = *n;
    g->path = malloc((size_t)(gs->order.max_len + 1) * sizeof *g->path);
    FM_BUG_UNLESS(g->path != NULL);
    pthread_mutex_init(&g->lock, NULL);
    rc = fm__states_init(&g->states, &g->nfa);
    if (rc == FM_OK) rc = fm__grammar_warm(g);
    if (rc == FM_OK)
        *out = g;
    else
        fm_grammar_release(g);
    return rc;
}

static fm_status read_schema(fm__nfa *n, const char *text, size_t len, int flags)
{
    json_t *root = NULL;
    if (flags & FM_GRAMMAR_COMPACT) n->spacing = FM__SPACING_NONE;
    if (len > MAX_SCHEMA)
        return fm_fail(FM_E_NOSUP, "schema: it has more than %d bytes", MAX_SCHEMA);
    int32_t from = n->rule[0].start, to = 0;
    FM_TRY(fm_json_parse(&root, text, len, "schema"));
    if (flags & FM_GRAMMAR_SPACE_FIRST) from = fm__nfa_space_first(n, from);
    const fm_status rc = fm__nfa_schema(n, root, from, &to);
    json_decref(root);
    if (rc == FM_OK) fm__nfa_empty(n, to, n->rule[0].end);
    return rc;
}

static fm_status read_regex(fm__nfa *n, const char *text, size_t len)
{
    fm_status     rc = FM_OK;
    const int32_t to = fm__nfa_pattern(n, n->rule[0].start, text, len, FM__PLAIN, &rc);
    if (rc == FM_OK) fm__nfa_empty(n, to, n->rule[0].end);
    return rc;
}

static fm_status read_ebnf(fm__nfa *n, const char *text, size_t len)
{
    if (len > MAX_SCHEMA)
        return fm_fail(FM_E_NOSUP, "grammar: it has more than %d bytes", MAX_SCHEMA);
    return fm__nfa_ebnf(n, text, len);
}

static fm_status read_kind(fm__nfa *n, fm_grammar_kind kind, const char *text, size_t len,
                           int flags)
{
    switch (kind) {
    case FM_GRAMMAR_JSON_SCHEMA: return read_schema(n, text, len, flags);
    case FM_GRAMMAR_REGEX: return read_regex(n, text, len);
    case FM_GRAMMAR_EBNF: return read_ebnf(n, text, len);
    }
    return fm_fail(FM_E_ARG, "grammar: there is no kind %d", (int)kind);
}

static fm_status finish_get(fm_grammar **out, fm_grammars *gs, fm__nfa *n, fm_status rc,
                            const fm__kept *key)
{
    fm_grammar *g = NULL;
    if (rc != FM_OK) {
        fm__nfa_fini(n);
        return rc;
    }
    FM_TRY(make(&g, gs, n));
    pthread_mutex_lock(&gs->lock);
    keep(gs, key->kind, key->flags, key->text, key->len, g);
    pthread_mutex_unlock(&gs->lock);
    *out = g;
    return FM_OK;
}

fm_status fm_grammars_get(fm_grammar **out, fm_grammars *gs, fm_grammar_kind kind, const char *text,
                          size_t len, int flags)
{
    const fm__kept key   = {.kind = (int)kind, .flags = flags, .text = (char *)text, .len = len};
    fm_grammar    *found = NULL;
    fm__nfa        n;
    FM_TRY(begin_lookup(gs, key.kind, flags, text, len, &found));
    if (found) {
        *out = found;
        return FM_OK;
    }
    fm__nfa_begin(&n);
    return finish_get(out, gs, &n, read_kind(&n, kind, text, len, flags), &key);
}

/* The rule of white space comes first. */
static fm_status read_spaced(fm__nfa *n, const char *text, size_t len, const char *space, int flags)
{
    fm_status rc      = FM_OK;
    n->space_rule     = fm__nfa_rule(n);
    n->spacing        = FM__SPACING_RULE;
    const fm__rule r  = n->rule[n->space_rule];
    const int32_t  to = fm__nfa_pattern(n, r.start, space, strlen(space), FM__PLAIN, &rc);
    if (rc != FM_OK) return rc;
    fm__nfa_empty(n, to, r.end);
    return read_schema(n, text, len, flags & ~FM_GRAMMAR_COMPACT);
}

fm_status fm_grammars_get_spaced(fm_grammar **out, fm_grammars *gs, const char *schema, size_t len,
                                 const char *space, int flags)
{
    fm_str      key   = {0};
    fm_grammar *found = NULL;
    fm__nfa     n;
    fm_str_printf(&key, "%zu %s", strlen(space), space);
    fm_str_add(&key, schema, len);
    fm_status rc = begin_lookup(gs, FM__SPACED, flags, key.text, key.len, &found);
    if (rc == FM_OK && found) {
        *out = found;
    } else if (rc == FM_OK) {
        const fm__kept k = {.kind = FM__SPACED, .flags = flags, .text = key.text, .len = key.len};
        fm__nfa_begin(&n);
        rc = finish_get(out, gs, &n, read_spaced(&n, schema, len, space, flags), &k);
    }
    fm_str_fini(&key);
    return rc;
}

static void write_key(fm_str *key, const fm_grammar_calls *c)
{
    fm_str_printf(key, "%d %d %d %s", (int)c->style, c->one_call, c->compact,
                  c->chosen ? c->chosen : "");
    for (int i = 0; i < c->n_tool; i++)
        fm_str_printf(key, "\n%s\n%d%s", c->tool[i].name, c->tool[i].strict, c->tool[i].schema);
}

fm_status fm_grammars_get_calls(fm_grammar **out, fm_grammars *gs, const fm_grammar_calls *calls)
{
    fm_str      text  = {0};
    fm_grammar *found = NULL;
    fm__nfa     n;
    write_key(&text, calls);
    fm_status rc = begin_lookup(gs, FM__CALLS, 0, text.text, text.len, &found);
    if (rc == FM_OK && found) {
        *out = found;
    } else if (rc == FM_OK) {
        const fm__kept key = {.kind = FM__CALLS, .text = text.text, .len = text.len};
        fm__nfa_begin(&n);
        if (calls->compact) n.spacing = FM__SPACING_NONE;
        rc = finish_get(out, gs, &n, fm__nfa_calls(&n, calls, gs->tokenizer), &key);
    }
    fm_str_fini(&text);
    return rc;
}
