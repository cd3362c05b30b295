/* SPDX-License-Identifier: Apache-2.0 */
/* What Ollama's clients ask about models before they chat: /api/tags, /api/ps, /api/show,
 * /api/version. */
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "llm/serve/loop/serve_internal.h"
#include "llm/serve/reply/write.h"

static void put_details(fm_str *out)
{
    fm_str_puts(
        out,
        "\"details\":{\"parent_model\":\"\",\"format\":\"safetensors\",\"family\":\"deepseek\","
        "\"families\":[\"deepseek\"],\"parameter_size\":\"\",\"quantization_level\":\"\"}");
}

static void put_time(fm_str *out, int64_t seconds)
{
    const time_t at = (time_t)seconds;
    struct tm    utc;
    char         text[32] = "";
    if (gmtime_r(&at, &utc)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    fm__put_word(out, text);
}

/* Clients tell models apart by it; of a name, since weights are not hashed here. */
static void put_digest(fm_str *out, const char *name)
{
    const uint64_t key = fm_rng_key(name, 0);
    fm_str_puts(out, "\"");
    for (uint64_t i = 0; i < 8; i++) fm_str_printf(out, "%08x", fm_rng_u32(key, i));
    fm_str_puts(out, "\"");
}

void fm__reply_ollama_tags(fm_serve *s, fm_exchange *x)
{
    const fm__engine_state e    = fm__engine_get_state(s->engine_thread);
    fm_str                 body = {0};
    fm_str_puts(&body, "{\"models\":[{\"name\":");
    fm__put_word(&body, s->model);
    fm_str_puts(&body, ",\"model\":");
    fm__put_word(&body, s->model);
    fm_str_puts(&body, ",\"modified_at\":");
    put_time(&body, s->started_at);
    fm_str_printf(&body, ",\"size\":%lld,\"digest\":", (long long)e.info.plan.weights);
    put_digest(&body, s->model);
    fm_str_puts(&body, ",");
    put_details(&body);
    fm_str_puts(&body, "}]}");
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}

void fm__reply_ollama_show(fm_serve *s, fm_exchange *x)
{
    fm_str body = {0};
    fm_str_puts(&body,
                "{\"license\":\"\",\"modelfile\":\"\",\"parameters\":\"\",\"template\":\"\",");
    put_details(&body);
    fm_str_printf(
        &body,
        ",\"model_info\":{\"general.architecture\":\"deepseek\",\"deepseek.context_length\":%d,"
        "\"deepseek.vocab_size\":%d},\"capabilities\":[\"completion\"%s%s]}",
        s->facts.context, s->facts.vocab, s->facts.has_tools ? ",\"tools\"" : "",
        s->facts.reasoning != FM_REASONING_OFF ? ",\"thinking\"" : "");
    fm__reply_json(x, &body);
    fm_str_fini(&body);
}

void fm__reply_version(fm_serve *s, fm_exchange *x)
{
    static const char body[] = "{\"version\":\"" FM_VERSION "\"}";
    (void)s;
    fm_exchange_reply(x, 200, "application/json", NULL, body, strlen(body));
}
