/* SPDX-License-Identifier: Apache-2.0 */
/* --json-model-override-args: members of it replace those of config.json.  A
 * name that neither the file nor fathom knows would change nothing, so it is
 * refused, with the name it may have been meant to be. */
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "llm/load/config_internal.h"
#include "llm/load/config_read.h"

enum { MAX_NAME = 64 };

static const char option[] = "--json-model-override-args";

/* clang-format off */
static const char *const known[] = {
    "architectures", "model_type", "attention_bias", "mlp_bias", "tie_word_embeddings", "hidden_act",
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
    "intermediate_size", "max_position_embeddings", "num_mtp_layers", "num_nextn_predict_layers",
    "rms_norm_eps", "n_routed_experts", "moe_intermediate_size", "num_experts_per_tok",
    "first_k_dense_replace", "n_shared_experts", "moe_layer_freq", "n_group", "topk_group",
    "topk_method", "scoring_func", "routed_scaling_factor", "norm_topk_prob",
    "rope_theta", "rope_interleave", "rope_scaling", "rope_parameters", "quantization_config",
    "bos_token_id", "eos_token_id",
    /* inside rope_scaling, rope_parameters and quantization_config */
    "type", "rope_type", "original_max_position_embeddings", "factor", "beta_fast", "beta_slow",
    "mscale", "mscale_all_dim", "attention_factor", "truncate",
    "quant_method", "fmt", "weight_block_size", "activation_scheme",
};
/* clang-format on */
enum { N_KNOWN = sizeof known / sizeof known[0] };

static int is_known(const char *name)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        if (!strcmp(known[i], name)) return 1;
    return 0;
}

static fm_status refuse(const char *name)
{
    fm_nearest like = {.word = name};
    for (size_t i = 0; i < N_KNOWN; i++) fm_nearest_offer(&like, known[i]);
    return fm_fail(FM_E_ARG, "%s: config.json has no \"%.*s\" and fathom reads none%s%s%s", option,
                   MAX_NAME, name, like.name ? "; is \"" : "", like.name ? like.name : "",
                   like.name ? "\" meant?" : "");
}

/* Objects are merged member by member. */
static fm_status merge(json_t *into, json_t *from)
{
    const char *key;
    json_t     *v;
    json_object_foreach(from, key, v)
    {
        json_t *old = json_object_get(into, key);
        if (!old && !is_known(key)) return refuse(key);
        if (json_is_object(old) && json_is_object(v))
            FM_TRY(merge(old, v));
        else if (json_object_set(into, key, v))
            return fm_fail(FM_E_OOM, "%s: no memory to merge it", option);
    }
    return FM_OK;
}

fm_status fm__config_override(json_t *root, const char *overrides)
{
    json_t *with = NULL;
    if (!overrides || !*overrides || !json_is_object(root)) return FM_OK;
    FM_TRY(fm_json_parse(&with, overrides, strlen(overrides), option));
    const fm_status rc =
        json_is_object(with)
            ? merge(root, with)
            : fm_fail(FM_E_FORMAT, "%s: expected an object, found %s", option, fm_json_kind(with));
    json_decref(with);
    return rc;
}

fm_status fm_config_put_overrides(fm_str *out, const char *overrides)
{
    json_t *with = NULL;
    if (!overrides || !*overrides) overrides = "{}";
    FM_TRY(fm_json_parse(&with, overrides, strlen(overrides), option));
    char *text = json_dumps(with, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    json_decref(with);
    if (!text) return fm_fail(FM_E_OOM, "%s: no memory to write it", option);
    fm_str_puts(out, text);
    free(text);
    return FM_OK;
}
