/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/serve/read/unsupported.h"

/* clang-format off */
static const struct {
    const char *field, *instead;
} unsupported[] = {
    {"functions",              "give the functions as tools"},
    {"function_call",          "say which function by tool_choice"},
    {"lora_path",              "adapters are not loaded here"},
    {"lora_request",           "adapters are not loaded here"},
    {"web_search_options",     "this server does not search the web"},
    {"mcp_servers",            "this server calls no other servers"},
    {"audio",                  "only text is generated"},
    {"image_data",             "only text is understood"},
    {"video_data",             "only text is understood"},
    {"audio_data",             "only text is understood"},
    {"input_embeds",           "give text or input_ids"},
    {"prompt_embeds",          "give text or token ids"},
    {"custom_logit_processor", "no program of the client runs here"},
    {"logits_processors",      "no program of the client runs here"},
    {"return_hidden_states",   "hidden states are not reported"},
    {"return_routed_experts",  "experts are not reported"},
    {"token_ids_logprob",      "use top_logprobs_num"},
    {"use_beam_search",        "answers are sampled"},
    {"allowed_token_ids",      "use regex or logit_bias"},
    {"bad_words",              "use regex or logit_bias"},
    {"truncate_prompt_tokens", "prompts are not cut"},
    {"prompt_logprobs",        "use echo with logprobs, or logprob_start_len in /generate"},
};
/* clang-format on */

static int is_set(const json_t *v)
{
    if (!v || json_is_null(v) || json_is_false(v)) return 0;
    if (json_is_array(v)) return json_array_size(v) > 0;
    if (json_is_object(v)) return json_object_size(v) > 0;
    if (json_is_string(v)) return json_string_length(v) > 0;
    return json_is_true(v) || json_number_value(v) != 0;
}

fm_status fm__refuse_unsupported(const json_t *body)
{
    for (size_t i = 0; i < sizeof unsupported / sizeof unsupported[0]; i++)
        if (is_set(json_object_get(body, unsupported[i].field)))
            return fm_fail(FM_E_NOSUP, "request: %s: not supported; %s", unsupported[i].field,
                           unsupported[i].instead);
    return FM_OK;
}
