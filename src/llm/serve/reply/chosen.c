/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/reply/chosen.h"

#include <string.h>

#include "llm/load/model_path.h"
#include "llm/serve/reply/write.h"

typedef void put_fn(fm_str *out, const fm_serve *s, const fm_engine_info *e);

static void put_int(fm_str *out, int64_t n) { fm_str_printf(out, "%lld", (long long)n); }

static void put_dtype(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    const char *asked = s->engine_opt->dtype;
    (void)e;
    fm__put_word(out,
                 !strcmp(asked, "float32") || !strcmp(asked, "float") ? "float32" : "bfloat16");
}

static void put_device(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)s;
    fm__put_word(out, strstr(e->plan.where, "main memory") ? "cpu" : "cuda");
}

static void put_load_format(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    fm_model_path where;
    const char   *asked = s->engine_opt->load_format;
    const int     has_dir =
        fm_model_path_find(&where, s->engine_opt->model_path) == FM_OK && where.dir[0];
    (void)e;
    fm__put_word(out, strcmp(asked, "auto") ? asked : has_dir ? "safetensors" : "dummy");
}

static void put_kv_type(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)s;
    fm__put_word(out, e->plan.kv_type);
}

static void put_fp8_activations(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)e;
    fm__put_word(out, fm_engine_config(s->engine)->fp8_activations ? "on" : "off");
}

static void put_context(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)e;
    put_int(out, s->facts.context);
}

static void put_threads(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)s;
    put_int(out, e->n_thread);
}

static void put_max_tokens(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)s;
    put_int(out, e->plan.max_tokens);
}

static void put_max_running(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)e;
    put_int(out, s->max_running);
}

/* null without speculation, as SGLang has it. */
static void put_draft_steps(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)s;
    if (e->max_draft)
        put_int(out, e->max_draft);
    else
        fm_str_puts(out, "null");
}

static void put_draft_rows(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)s;
    if (e->max_draft)
        put_int(out, e->max_draft + 1);
    else
        fm_str_puts(out, "null");
}

static void put_adaptive(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    fm_str_puts(out, e->max_draft && !s->engine_opt->disable_speculative_adaptive ? "true" : "false");
}

static void put_port(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    (void)e;
    put_int(out, fm_http_port(s->http));
}

/* By the name of the option that would choose the same. */
static void put_reasoning(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    const fm__facts *f = &s->facts;
    (void)e;
    fm__put_word(out, f->reasoning == FM_REASONING_OFF         ? "none"
                      : f->reasoning == FM_REASONING_IF_TAGGED ? "kimi_k2"
                      : f->reasons_on_request                  ? "deepseek-v3"
                                                               : "deepseek-r1");
}

static void put_tools(fm_str *out, const fm_serve *s, const fm_engine_info *e)
{
    static const char *const name[] = {
        [FM_TOOLS_V3] = "deepseekv3", [FM_TOOLS_V31] = "deepseekv31", [FM_TOOLS_KIMI] = "kimi_k2"};
    (void)e;
    fm__put_word(out, s->facts.has_tools ? name[s->facts.tool_style] : "none");
}

int fm__put_chosen(fm_str *out, const char *option, const fm_serve *s, const fm_engine_info *e)
{
    static const struct {
        const char *option;
        put_fn     *put;
    } chosen[] = {
        {"dtype", put_dtype},
        {"device", put_device},
        {"load-format", put_load_format},
        {"kv-cache-dtype", put_kv_type},
        {"fp8-activations", put_fp8_activations},
        {"context-length", put_context},
        {"threads", put_threads},
        {"max-total-tokens", put_max_tokens},
        {"max-running-requests", put_max_running},
        {"speculative-num-steps", put_draft_steps},
        {"speculative-num-draft-tokens", put_draft_rows},
        {"speculative-adaptive", put_adaptive},
        {"port", put_port},
        {"reasoning-parser", put_reasoning},
        {"tool-call-parser", put_tools},
    };
    for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++)
        if (!strcmp(chosen[i].option, option)) {
            chosen[i].put(out, s, e);
            return 1;
        }
    return 0;
}
