/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer must look like: response_format, json_schema, regex, ebnf, and
 * the names vLLM and llama.cpp have for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/serve/read/ask.h"

static int is_given(const json_t *v)
{
    return v && !json_is_null(v) && !(json_is_string(v) && !json_string_length(v));
}

static fm_status set_format(fm__params *p, const char *field, fm_grammar_kind kind,
                            const char *text, size_t len)
{
    if (p->format.field)
        return fm_fail(FM_E_ARG, "request: %s and %s exclude each other", p->format.field, field);
    p->format.field = field;
    p->format.kind  = kind;
    fm_str_add(&p->format.text, text, len);
    return FM_OK;
}

static fm_status set_schema(fm__params *p, const char *field, const json_t *schema)
{
    if (json_is_string(schema))
        return set_format(p, field, FM_GRAMMAR_JSON_SCHEMA, json_string_value(schema),
                          json_string_length(schema));
    if (!json_is_object(schema))
        return fm_fail(FM_E_FORMAT, "request: %s: expected a schema, found %s", field,
                       fm_json_kind(schema));
    char *text = json_dumps(schema, JSON_PRESERVE_ORDER | JSON_COMPACT);
    if (!text) return fm_fail(FM_E_OOM, "request");
    const fm_status rc = set_format(p, field, FM_GRAMMAR_JSON_SCHEMA, text, strlen(text));
    free(text);
    return rc;
}

static fm_status set_text(fm__params *p, const char *field, fm_grammar_kind kind, const json_t *v)
{
    if (!json_is_string(v))
        return fm_fail(FM_E_FORMAT, "request: %s: expected a string, found %s", field,
                       fm_json_kind(v));
    return set_format(p, field, kind, json_string_value(v), json_string_length(v));
}

static fm_status set_regex(fm__params *p, const char *field, const json_t *regex)
{
    return set_text(p, field, FM_GRAMMAR_REGEX, regex);
}

static fm_status set_ebnf(fm__params *p, const char *field, const json_t *grammar)
{
    return set_text(p, field, FM_GRAMMAR_EBNF, grammar);
}

static fm_status set_any_object(fm__params *p, const char *field, const json_t *v)
{
    static const char any_object[] = "{\"type\":\"object\"}";
    if (json_is_false(v)) return FM_OK;
    return set_format(p, field, FM_GRAMMAR_JSON_SCHEMA, any_object, strlen(any_object));
}

static fm_status set_space(fm__params *p, const char *field, const json_t *v)
{
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
        return fm_fail(FM_E_FORMAT, "request: %s: expected a regular expression", field);
    p->format.space_field = field;
    p->format.space.len   = 0;
    fm_str_puts(&p->format.space, json_string_value(v));
    return FM_OK;
}

static fm_status set_compact(fm__params *p, const char *field, const json_t *v)
{
    if (!json_is_boolean(v))
        return fm_fail(FM_E_FORMAT, "request: %s: expected true or false, found %s", field,
                       fm_json_kind(v));
    p->format.is_compact = json_is_true(v);
    return FM_OK;
}

static void add_literally(fm_str *to, const json_t *text)
{
    const char *s = json_string_value(text);
    for (size_t i = 0; i < json_string_length(text); i++) {
        if (s[i] && strchr("\\^$.|?*+()[]{}/", s[i])) fm_str_puts(to, "\\");
        fm_str_add(to, s + i, 1);
    }
}

/* One of the texts, as an expression. */
static fm_status set_choice(fm__params *p, const char *field, const json_t *list)
{
    fm_str regex = {0};
    int    is_ok = json_array_size(list) > 0;
    for (size_t i = 0; is_ok && i < json_array_size(list); i++) {
        const json_t *text = json_array_get(list, i);
        is_ok              = json_string_length(text) > 0;
        if (i) fm_str_puts(&regex, "|");
        if (is_ok) add_literally(&regex, text);
    }
    const fm_status rc = is_ok
                             ? set_format(p, field, FM_GRAMMAR_REGEX, regex.text, regex.len)
                             : fm_fail(FM_E_FORMAT, "request: %s: expected a list of texts", field);
    fm_str_fini(&regex);
    return rc;
}

typedef struct {
    const char *name;
    fm_status (*set)(fm__params *p, const char *field, const json_t *value);
} form;

static fm_status read_structured_outputs(fm__params *p, const char *field, const json_t *v)
{
    static const form forms[] = {{"json", set_schema},
                                 {"regex", set_regex},
                                 {"choice", set_choice},
                                 {"grammar", set_ebnf},
                                 {"json_object", set_any_object},
                                 {"whitespace_pattern", set_space},
                                 {"disable_any_whitespace", set_compact}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (is_given(json_object_get(v, forms[i].name)))
            FM_TRY(forms[i].set(p, field, json_object_get(v, forms[i].name)));
    if (p->format.field) return FM_OK;
    return fm_fail(FM_E_NOSUP, "request: %s: expected json, regex, choice or grammar", field);
}

/* `field`: what the dialect calls it. */
static fm_status read_response_format(fm__params *p, const char *field, const json_t *v)
{
    const char   *type   = json_string_value(json_object_get(v, "type"));
    const json_t *schema = json_object_get(v, "schema");
    if (!is_given(v)) return FM_OK;
    if (!type) return fm_fail(FM_E_FORMAT, "request: %s: expected an object with a type", field);
    if (!strcmp(type, "text")) return FM_OK;
    p->format.of_text = 1;
    if (!strcmp(type, "json_object")) /* with llama.cpp's schema beside it, or without */
        return is_given(schema) ? set_schema(p, field, schema) : set_any_object(p, field, v);
    if (strcmp(type, "json_schema"))
        return fm_fail(FM_E_NOSUP, "request: %s: type \"%.40s\" is not supported", field, type);
    schema = json_object_get(json_object_get(v, "json_schema"), "schema");
    if (!schema)
        return fm_fail(FM_E_FORMAT, "request: %s: %sschema is missing", field,
                       strcmp(field, "response_format") ? "" : "json_schema.");
    return set_schema(p, field, schema);
}

fm_status fm__read_format(fm__params *p, const json_t *o, const char *format_field)
{
    static const char *const unknown[] = {"structural_tag", "stop_regex"};
    static const form        forms[]   = {{"json_schema", set_schema},
                                          {"guided_json", set_schema},
                                          {"regex", set_regex},
                                          {"guided_regex", set_regex},
                                          {"guided_choice", set_choice},
                                          {"ebnf", set_ebnf},
                                          {"guided_grammar", set_ebnf},
                                          {"grammar", set_ebnf},
                                          {"whitespace_pattern", set_space},
                                          {"guided_whitespace_pattern", set_space},
                                          {"structured_outputs", read_structured_outputs}};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (is_given(json_object_get(o, unknown[i])))
            return fm_fail(FM_E_NOSUP, "request: %s: it is not supported", unknown[i]);
    FM_TRY(read_response_format(p, format_field ? format_field : "response_format",
                                json_object_get(o, "response_format")));
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const json_t *v = json_object_get(o, forms[i].name);
        if (is_given(v)) FM_TRY(forms[i].set(p, forms[i].name, v));
    }
    return FM_OK;
}

/* The same failure, said of a field of the request. */
static fm_status blame(const char *field, fm_status rc)
{
    char why[256];
    snprintf(why, sizeof why, "%s", fm_why());
    return fm_fail(rc, "request: %s: %s", field, why);
}

/* The grammar of JSON has white space as the request or else the server wants it. */
static fm_status make_grammar(fm__params *p, const fm__facts *facts, int flags)
{
    const fm__format *f = &p->format;
    const char *space   = f->space_field ? f->space.text : f->is_compact ? NULL : facts->json_space;
    if (f->kind == FM_GRAMMAR_JSON_SCHEMA && space)
        return fm_grammars_get_spaced(&p->grammar, facts->grammars, f->text.text, f->text.len,
                                      space, flags);
    if (f->is_compact || facts->compact_json) flags |= FM_GRAMMAR_COMPACT;
    return fm_grammars_get(&p->grammar, facts->grammars, f->kind, f->text.text, f->text.len,
                           f->kind == FM_GRAMMAR_JSON_SCHEMA ? flags : 0);
}

fm_status fm__make_grammars(fm__ask *a, const fm__facts *facts)
{
    if (facts->prompts_only) return FM_OK;
    for (int i = 0; i < a->n_params; i++) {
        fm__params *p = &a->params[i];
        if (!p->format.field) continue;
        if (a->forced.len && p->format.of_text) continue; /* a call has the form of its tool */
        if (a->forced.len)
            return fm_fail(FM_E_ARG,
                           "request: %s: not together with a tool_choice that forces a call",
                           p->format.field);
        if (!facts->grammars)
            return fm_fail(FM_E_ARG, "request: %s: this model has no tokenizer", p->format.field);
        const fm_status rc = make_grammar(p, facts, a->thinks ? FM_GRAMMAR_SPACE_FIRST : 0);
        if (rc != FM_OK) return blame(p->format.field, rc);
    }
    return FM_OK;
}

fm_status fm__make_call_grammar(fm__ask *a, const fm__facts *facts, const fm_grammar_calls *calls)
{
    if (facts->prompts_only) return FM_OK;
    const fm_status rc = fm_grammars_get_calls(&a->params->grammar, facts->grammars, calls);
    return rc == FM_OK ? FM_OK : blame("tools", rc);
}
