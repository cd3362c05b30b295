/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of requests must know of the model and the options. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "llm/load/model_path.h"
#include "llm/serve/loop/serve_internal.h"

/* Without - and _, since SGLang writes deepseekv3 and deepseek-r1, vLLM deepseek_v3 and
 * deepseek_r1. */
static int is(const char *word, const char *name)
{
    for (;; word++, name++) {
        word += strspn(word, "-_");
        name += strspn(name, "-_");
        if (*word != *name) return 0;
        if (!*word) return 1;
    }
}

static void pick_reasoning(fm__facts *f, const char *word)
{
    const fm_chat_style style = f->chat_style;
    const int           open  = style == FM_CHAT_R1 || style == FM_CHAT_V31;
    f->reasons_on_request     = style == FM_CHAT_V31;
    f->reasoning              = open                  ? FM_REASONING_OPEN
                                : style == FM_CHAT_V2 ? FM_REASONING_OFF
                                                      : FM_REASONING_IF_TAGGED;
    if (is(word, "auto")) return;
    if (is(word, "none")) f->reasoning = FM_REASONING_OFF;
    else if (is(word, "kimi_k2")) f->reasoning = FM_REASONING_IF_TAGGED;
    else if (is(word, "deepseek-v3")) f->reasons_on_request = 1;
    else f->reasoning = FM_REASONING_OPEN;
}

static void pick_tools(fm__facts *f, const char *word)
{
    const fm_chat_style style = f->chat_style;
    f->has_tools              = f->tokenizer && style != FM_CHAT_V2;
    f->tool_style             = style == FM_CHAT_KIMI  ? FM_TOOLS_KIMI
                                : style == FM_CHAT_V31 ? FM_TOOLS_V31
                                                       : FM_TOOLS_V3;
    if (is(word, "none")) f->has_tools = 0;
    else if (is(word, "deepseekv3")) f->tool_style = FM_TOOLS_V3;
    else if (is(word, "deepseekv31")) f->tool_style = FM_TOOLS_V31;
    else if (is(word, "kimi_k2")) f->tool_style = FM_TOOLS_KIMI;
}

void fm__facts_pick(fm__facts *f, const char *reasoning_parser, const char *tool_call_parser)
{
    if (f->tokenizer) f->chat_style = fm_chat_style_of(f->tokenizer);
    pick_reasoning(f, reasoning_parser);
    pick_tools(f, tool_call_parser);
}

static fm_status check_word(const char *option, const char *word, const char *const *allowed, int n)
{
    for (int i = 0; i < n; i++)
        if (is(word, allowed[i])) return FM_OK;
    fm_str list = {0};
    for (int i = 0; i < n; i++) fm_str_printf(&list, "%s%s", i ? ", " : "", allowed[i]);
    const fm_status rc = fm_fail(FM_E_ARG, "--%s %.40s is none of %s", option, word, list.text);
    fm_str_fini(&list);
    return rc;
}

fm_status fm__facts_check_parsers(const char *reasoning_parser, const char *tool_call_parser)
{
    static const char *const reasoning[] = {"auto", "none", "deepseek-r1", "deepseek-v3",
                                            "kimi_k2"};
    static const char *const tools[]     = {"auto", "none", "deepseekv3", "deepseekv31", "kimi_k2"};
    FM_TRY(check_word("reasoning-parser", reasoning_parser, reasoning, 5));
    return check_word("tool-call-parser", tool_call_parser, tools, 5);
}

fm_status fm__facts_check_words(const fm_serve_options *opt)
{
    static const char *const defaults[] = {"model", "openai"};
    FM_TRY(fm__facts_check_parsers(opt->reasoning_parser, opt->tool_call_parser));
    FM_TRY(check_word("sampling-defaults", opt->sampling_defaults, defaults, 2));
    for (const char *c = opt->metrics_prefix; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_'))
            return fm_fail(FM_E_ARG, "--metrics-prefix: letters and underscores only");
    return FM_OK;
}

static fm_status read_default(float *out, const json_t *config, const char *key, double lo,
                              double hi, const char *file)
{
    double x = *out;
    FM_TRY(fm_json_opt_real(&x, config, key, lo, hi, (fm_json_at){file, ""}));
    *out = (float)x;
    return FM_OK;
}

/* generation_config.json beside the model, if there is one. */
static fm_status read_defaults(fm_serve *s)
{
    fm_model_path where;
    char          file[4200];
    fm_sampling  *d = &s->facts.defaults;
    json_t       *v = NULL;
    *d              = fm_sampling_default();
    if (is(s->opt->sampling_defaults, "openai")) return FM_OK;
    if (fm_model_path_find(&where, s->engine_opt->model_path) != FM_OK || !where.dir[0])
        return FM_OK;
    snprintf(file, sizeof file, "%s/generation_config.json", where.dir);
    if (access(file, R_OK) != 0) return FM_OK;
    FM_TRY(fm_json_load(&v, file));
    int64_t   top_k = d->top_k;
    fm_status rc    = read_default(&d->temperature, v, "temperature", 0, 100, file);
    if (rc == FM_OK) rc = read_default(&d->top_p, v, "top_p", 0, 1, file);
    if (rc == FM_OK) rc = read_default(&d->min_p, v, "min_p", 0, 1, file);
    if (rc == FM_OK) rc = read_default(&d->repetition_penalty, v, "repetition_penalty", 0, 2, file);
    if (rc == FM_OK)
        rc = fm_json_opt_int(&top_k, v, "top_k", -1, INT32_MAX, (fm_json_at){file, ""});
    d->top_k = top_k > 0 ? (int)top_k : -1;
    json_decref(v);
    return rc;
}

/* An expression that cannot be followed shows at start, not in every request. */
static fm_status check_json_space(const fm__facts *f)
{
    fm_grammar *g = NULL;
    char        why[256];
    if (!f->json_space || !f->grammars) return FM_OK;
    const fm_status rc = fm_grammars_get_spaced(&g, f->grammars, "{}", 2, f->json_space, 0);
    fm_grammar_release(g);
    if (rc == FM_OK) return FM_OK;
    snprintf(why, sizeof why, "%s", fm_why());
    return fm_fail(rc, "--constrained-json-whitespace-pattern: %s", why);
}

fm_status fm__facts_fill(fm_serve *s)
{
    fm__facts  *f = &s->facts;
    const char *name =
        s->opt->served_model_name ? s->opt->served_model_name : s->engine_opt->model_path;
    snprintf(s->model, sizeof s->model, "%s", name);
    f->model     = s->model;
    f->tokenizer = fm_engine_tokenizer(s->engine);
    f->grammars  = fm_engine_grammars(s->engine);
    f->responses = s->responses;
    f->vocab     = fm_engine_config(s->engine)->vocab;
    f->context   = fm_engine_context(s->engine);
    fm__facts_pick(f, s->opt->reasoning_parser, s->opt->tool_call_parser);
    f->compact_json = s->opt->compact_json;
    f->json_space   = s->opt->json_space;
    FM_TRY(check_json_space(f));
    return read_defaults(s);
}
