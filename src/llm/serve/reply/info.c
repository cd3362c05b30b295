/* SPDX-License-Identifier: Apache-2.0 */
/* What the server says about itself. */
#include <string.h>

#include "base/clock.h"
#include "llm/serve/reply/chosen.h"
#include "llm/serve/loop/serve_internal.h"
#include "llm/serve/reply/write.h"

static void put_model(fm_str *out, const fm_serve *s)
{
    fm_str_puts(out, "{\"id\":");
    fm__put_word(out, s->model);
    fm_str_printf(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"fathom\",\"root\":",
                  (long long)s->started_at);
    fm__put_word(out, s->engine_opt->model_path);
    fm_str_printf(out, ",\"parent\":null,\"max_model_len\":%d}", s->facts.context);
}

void fm__reply_models(fm_serve *s, fm_exchange *x)
{
    fm_str body = {0};
    fm_str_puts(&body, "{\"object\":\"list\",\"data\":[");
    put_model(&body, s);
    fm_str_puts(&body, "]}");
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}

void fm__reply_one_model(fm_serve *s, fm_exchange *x, const char *id)
{
    fm_str body = {0};
    if (strcmp(id, s->model)) {
        fm_str_printf(&body, "the model \"%.200s\" is not served here", id);
        fm__reply_error(x, 404, body.text);
    } else {
        put_model(&body, s);
        fm__reply_json(x, &body);
    }
    fm_str_fini(&body);
}

void fm__reply_model_info(fm_serve *s, fm_exchange *x)
{
    const fm_model_config *m    = fm_engine_config(s->engine);
    const fm__engine_state e    = fm__engine_get_state(s->engine_thread);
    fm_str                 body = {0};
    fm_str_puts(&body, "{\"model_path\":");
    fm__put_word(&body, s->engine_opt->model_path);
    fm_str_puts(&body, ",\"served_model_name\":");
    fm__put_word(&body, s->model);
    fm_str_puts(&body, ",\"tokenizer_path\":");
    fm__put_word(&body, s->engine_opt->tokenizer_path ? s->engine_opt->tokenizer_path
                                                      : s->engine_opt->model_path);
    fm_str_printf(&body,
                  ",\"is_generation\":true,\"has_tokenizer\":%s,\"weight_version\":\"default\","
                  "\"vocab_size\":%d,"
                  "\"num_hidden_layers\":%d,\"max_model_len\":%d,\"reasoning_parser\":",
                  s->facts.tokenizer ? "true" : "false", m->vocab, m->n_layer, s->facts.context);
    (void)fm__put_chosen(&body, "reasoning-parser", s, &e.info);
    fm_str_puts(&body, ",\"tool_call_parser\":");
    (void)fm__put_chosen(&body, "tool-call-parser", s, &e.info);
    fm_str_puts(&body, ",\"chat_template\":");
    fm__put_word(&body, s->facts.tokenizer ? fm_chat_style_name(s->facts.chat_style) : NULL);
    fm_str_puts(&body, "}");
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}

/* A table of settings with the values in force, but for the key, which is a
 * secret, and the name, which is said apart. */
static void put_knobs(fm_str *out, const fm_knob *table, int n, const void *base, const fm_serve *s,
                      const fm_engine_info *e)
{
    for (int i = 0; i < n; i++) {
        const char *at = (const char *)base + table[i].offset;
        if (!strcmp(table[i].name, "api-key") || !strcmp(table[i].name, "served-model-name"))
            continue;
        fm_str_puts(out, "\"");
        for (const char *c = table[i].name; *c; c++) fm_str_add(out, *c == '-' ? "_" : c, 1);
        fm_str_puts(out, "\":");
        if (fm__put_chosen(out, table[i].name, s, e)) {
            fm_str_puts(out, ",");
            continue;
        }
        switch (table[i].kind) {
        case FM_KNOB_INT: fm_str_printf(out, "%lld", (long long)*(const int64_t *)at); break;
        case FM_KNOB_REAL: fm__put_number(out, *(const double *)at); break;
        case FM_KNOB_FLAG: fm_str_puts(out, *(const int *)at ? "true" : "false"); break;
        case FM_KNOB_WORD: fm__put_word(out, *(char *const *)at); break;
        }
        fm_str_puts(out, ",");
    }
}

static void put_state(fm_str *out, const fm_serve *s, const fm__engine_state *e)
{
    const fm_plan *p = &e->info.plan;
    fm_str_printf(out, "{\"last_gen_throughput\":");
    fm__put_number(out, e->info.last_gen_throughput);
    fm_str_puts(out, ",\"memory_usage\":{\"weight\":");
    fm__put_number(out, (double)p->weights / 1e9);
    fm_str_puts(out, ",\"kvcache\":");
    fm__put_number(out, (double)p->kv / 1e9);
    fm_str_printf(out,
                  ",\"token_capacity\":%lld},\"effective_max_running_requests_per_dp\":%d,\"num_"
                  "running_reqs\":%d,"
                  "\"num_waiting_reqs\":%d,\"num_used_tokens\":%lld,\"num_preemptions\":%lld,"
                  "\"cache_hit_rate\":",
                  (long long)p->max_tokens, s->max_running, e->info.sched.n_running,
                  e->info.sched.n_waiting,
                  (long long)(p->n_page - e->info.n_free_page - e->info.n_idle_page) * p->page_size,
                  (long long)e->info.sched.n_preemption);
    fm__put_number(out, e->info.kv.asked_tokens
                            ? (double)e->info.kv.hit_tokens / (double)e->info.kv.asked_tokens
                            : 0);
    fm_str_puts(out, ",\"avg_spec_accept_length\":");
    fm__put_number(out, fm_sched_accept_length(e->info.sched.n_decode_row, e->info.sched.n_accepted));
    fm_str_puts(out, ",\"spec_accept_rate\":");
    fm__put_number(out, e->info.sched.n_draft
                            ? (double)e->info.sched.n_accepted / (double)e->info.sched.n_draft
                            : 0);
    fm_str_puts(out, "}");
}

/* What a request that names no sampling parameters gets. */
static void put_defaults(fm_str *out, const fm_sampling *d)
{
    fm_str_puts(out, "{\"temperature\":");
    fm__put_float(out, d->temperature);
    fm_str_puts(out, ",\"top_p\":");
    fm__put_float(out, d->top_p);
    fm_str_puts(out, "}");
}

void fm__reply_server_info(fm_serve *s, fm_exchange *x)
{
    const fm__engine_state e    = fm__engine_get_state(s->engine_thread);
    fm_str                 body = {0};
    fm_str_puts(&body, "{");
    put_knobs(&body, fm_engine_knobs, fm_n_engine_knob, s->engine_opt, s, &e.info);
    put_knobs(&body, fm_serve_knobs, fm_n_serve_knob, s->opt, s, &e.info);
    fm_str_puts(&body, "\"served_model_name\":");
    fm__put_word(&body, s->model);
    fm_str_printf(&body,
                  ",\"status\":\"%s\",\"max_total_num_tokens\":%lld,\"max_req_input_len\":%d,"
                  "\"context_len\":%d,"
                  "\"num_threads\":%d,\"uptime_seconds\":%.3f,\"version\":\"" FM_VERSION
                  "\",\"internal_states\":[",
                  s->draining ? "draining" : "ready", (long long)e.info.plan.max_tokens,
                  s->facts.context - 1, s->facts.context, e.info.n_thread, fm_now() - s->started);
    put_state(&body, s, &e);
    fm_str_puts(&body, "],\"default_sampling_params\":");
    put_defaults(&body, &s->facts.defaults);
    fm_str_puts(&body, "}");
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}

void fm__reply_loads(fm_serve *s, fm_exchange *x)
{
    const fm__engine_state e    = fm__engine_get_state(s->engine_thread);
    const fm_plan         *p    = &e.info.plan;
    fm_str                 body = {0};
    fm_str_printf(&body,
                  "{\"dp_rank_count\":1,\"loads\":[{\"dp_rank\":0,\"num_running_reqs\":%d,\"num_"
                  "waiting_reqs\":%d,"
                  "\"num_used_tokens\":%lld,\"max_total_num_tokens\":%lld}]}",
                  e.info.sched.n_running, e.info.sched.n_waiting + s->metrics.n_waiting,
                  (long long)(p->n_page - e.info.n_free_page - e.info.n_idle_page) * p->page_size,
                  (long long)p->max_tokens);
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}

void fm__reply_metrics(fm_serve *s, fm_exchange *x)
{
    const fm__engine_state e    = fm__engine_get_state(s->engine_thread);
    fm_str                 body = {0};
    s->metrics.n_connection     = fm_http_n_connection(s->http);
    fm__put_metrics(&body, &s->metrics, &e, s->opt->metrics_prefix, s->model, s->facts.context);
    fm_exchange_reply(x, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, body.text,
                      body.len);
    fm_str_fini(&body);
}
