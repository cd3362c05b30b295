/* SPDX-License-Identifier: Apache-2.0 */
/* Every op on CPU and GPU: models agree, and a changed weight is named. */
#include <stdlib.h>

#include <string>

#include "check.h"
#include "shadow_engine.h"

static std::string data(const char *name)
{
    const char *dir = getenv("FM_TEST_DATA");
    return std::string(dir ? dir : FM_TEST_DATA) + "/" + name;
}

static fm_shadow_heard ask(const std::string &model, const char *json, const char *page_size,
                           fm_change change, const char *drafts = NULL)
{
    const fm_shadow_asked how = {model.c_str(), json, page_size, change, drafts};
    fm_shadow_heard       heard;
    fm_ask_shadow(&how, &heard);
    return heard;
}

/* Every op of `ops` was compared, and none is too far off. */
static void agree(const fm_shadow_heard &heard, const std::vector<const char *> &ops)
{
    if (heard.why[0]) fm_check_failed(__FILE__, __LINE__, "%s", heard.why);
    for (const char *op : ops)
        if (!strstr(heard.report, (std::string("\n  ") + op + " ").c_str()))
            fm_check_failed(__FILE__, __LINE__, "%s is not in the table:\n%s", op, heard.report);
    if (getenv("FM_TEST_SHOW")) printf("%s", heard.report);
}

static const std::vector<const char *> all_ops = {
    "embed",  "rmsnorm", "gather_add", "linear", "linear_act", "rope_q", "store_kv",
    "attend", "route",   "mlp",        "experts", "gather_norm", "head",   "sample"};

FM_TEST(shadow_v3)
{
    agree(ask(data("v3"), NULL, "16", FM_CHANGE_NONE), all_ops);
}

FM_TEST(shadow_v2lite)
{
    agree(ask(data("v2lite"), NULL, "1", FM_CHANGE_NONE), all_ops);
}

FM_TEST(shadow_fp8)
{
    agree(ask(data("v3wide-fp8"), NULL, "64", FM_CHANGE_NONE), all_ops);
}

/* No q_lora, no shared expert. */
static const char few_layers[] =
    "{\"num_hidden_layers\": 2, \"first_k_dense_replace\": 1, \"hidden_size\": 96, "
    "\"intermediate_size\": 160, \"moe_intermediate_size\": 32, \"n_routed_experts\": 6, "
    "\"num_experts_per_tok\": 2, \"n_group\": 1, \"topk_group\": 1, \"n_shared_experts\": 0, "
    "\"num_attention_heads\": 6, \"num_key_value_heads\": 6, \"q_lora_rank\": null, "
    "\"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 16, "
    "\"v_head_dim\": 16, \"vocab_size\": 200}";

/* Weights made on each side. */
FM_TEST(shadow_dummy)
{
    agree(ask("r1-mini", few_layers, "8", FM_CHANGE_NONE), all_ops);
}

/* The same with a chain of drafts. */
FM_TEST(shadow_drafts)
{
    std::vector<const char *> ops = all_ops;
    ops.push_back("hidden");
    agree(ask("r1-mini", few_layers, "8", FM_CHANGE_NONE, "NEXTN"), ops);
}

/* --- faults ----------------------------------------------------------------- */

static void names(fm_change change, const std::vector<const char *> &words)
{
    const fm_shadow_heard heard = ask(data("v3"), NULL, "16", change);
    if (!heard.why[0]) fm_check_failed(__FILE__, __LINE__, "a changed weight was not noticed");
    for (const char *word : words)
        if (!strstr(heard.why, word))
            fm_check_failed(__FILE__, __LINE__, "\"%s\" is not in: %s", word, heard.why);
    if (heard.report[0]) fm_check_failed(__FILE__, __LINE__, "a table in spite of a difference");
}

FM_TEST(shadow_names_a_changed_query)
{
    names(FM_CHANGE_Q_UP, {"linear_act by q_b_proj", "tensor q,", "column 0:", "tolerance"});
}

FM_TEST(shadow_names_a_changed_expert)
{
    names(FM_CHANGE_EXPERT, {"experts by", "mlp.experts", "tensor y,", "column 0:"});
}

FM_TEST(shadow_names_a_changed_router)
{
    names(FM_CHANGE_ROUTER, {"linear by mlp.gate", "tensor score,", "column 0:"});
}

FM_TEST(shadow_names_a_changed_head)
{
    names(FM_CHANGE_HEAD, {"head by lm_head", "tensor logits,", "column 0:"});
}

FM_TEST(shadow_names_another_choice_of_experts)
{
    names(FM_CHANGE_BIAS, {"route, tensor expert,", "score", "tolerance"});
}

FM_TEST(shadow_lets_near_ties_be_chosen_otherwise)
{
    const fm_shadow_heard heard =
        ask("r1-mini",
            "{\"num_hidden_layers\": 2, \"first_k_dense_replace\": 1, \"hidden_size\": 96, "
            "\"intermediate_size\": 160, \"moe_intermediate_size\": 32, \"n_routed_experts\": 64, "
            "\"num_experts_per_tok\": 8, \"n_group\": 8, \"topk_group\": 4, "
            "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"q_lora_rank\": 64, "
            "\"kv_lora_rank\": 64, \"qk_nope_head_dim\": 32, \"qk_rope_head_dim\": 16, "
            "\"v_head_dim\": 16, \"vocab_size\": 200}",
            "8", FM_NUDGE_BIAS);
    agree(heard, all_ops);
    FM_CHECK(strstr(heard.report, "chosen otherwise: ") != NULL);
    FM_CHECK(strstr(heard.report, "chosen otherwise: 0 experts") == NULL);
}
