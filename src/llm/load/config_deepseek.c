/* SPDX-License-Identifier: Apache-2.0 */
/* config.json of DeepSeek V2, V3, R1, Kimi-K2 and Moonlight. */
#include <string.h>

#include "llm/load/config_internal.h"
#include "llm/load/config_read.h"

#define MAX_PARAMS (INT64_C(1) << 44)

fm_status fm__config_dim(int *out, const json_t *obj, const char *key, int lo, int hi, int multiple,
                         int optional, fm_json_at at)
{
    int64_t v = *out;
    FM_TRY(optional ? fm_json_opt_int(&v, obj, key, lo, hi, at)
                    : fm_json_int(&v, obj, key, lo, hi, at));
    if (v % multiple)
        return fm_fail(FM_E_FORMAT, "%s: %s%s is %lld, must be a multiple of %d", at.file, at.scope,
                       key, (long long)v, multiple);
    *out = (int)v;
    return FM_OK;
}

static fm_status read_model_type(fm_model_config *c, const json_t *root, fm_json_at at)
{
    const int   v3   = !strcmp(c->architecture, "DeepseekV3ForCausalLM");
    const char *type = v3 ? "deepseek_v3" : "deepseek_v2";
    FM_TRY(fm_json_opt_string(&type, root, "model_type", at));
    return fm__config_word(c->model_type, sizeof c->model_type, type, "model_type", at);
}

/* Switches that would change the arithmetic and that no model sets. */
static fm_status refuse_variants(const json_t *root, fm_json_at at)
{
    static const char *const must_be_false[] = {"attention_bias", "mlp_bias",
                                                "tie_word_embeddings"};
    for (size_t i = 0; i < sizeof must_be_false / sizeof *must_be_false; i++) {
        int on = 0;
        FM_TRY(fm_json_opt_bool(&on, root, must_be_false[i], at));
        if (on)
            return fm_fail(FM_E_NOSUP, "%s: %s true is not supported", at.file, must_be_false[i]);
    }
    const char *act = "silu";
    FM_TRY(fm_json_opt_string(&act, root, "hidden_act", at));
    if (strcmp(act, "silu") != 0)
        return fm_fail(FM_E_NOSUP, "%s: hidden_act %s is not supported, only silu", at.file, act);
    return FM_OK;
}

static fm_status read_shape(fm_model_config *c, const json_t *root, fm_json_at at)
{
    const struct {
        const char *key;
        int        *out, lo, hi, multiple, optional;
    } dim[] = {
        {"vocab_size", &c->vocab, 2, 1 << 22, 1, 0},
        {"hidden_size", &c->hidden, 32, 65536, 32, 0},
        {"num_hidden_layers", &c->n_layer, 1, 1000, 1, 0},
        {"num_attention_heads", &c->n_head, 1, 1024, 1, 0},
        {"q_lora_rank", &c->q_lora, 32, 65536, 32, 1},
        {"kv_lora_rank", &c->kv_lora, 32, 8192, 32, 0},
        {"qk_nope_head_dim", &c->nope, 32, 1024, 32, 0},
        {"qk_rope_head_dim", &c->rope, 2, 1024, 2, 0},
        {"v_head_dim", &c->v_dim, 16, 1024, 16, 0},
        {"intermediate_size", &c->dense_inter, 32, 1 << 20, 32, 0},
        {"max_position_embeddings", &c->max_position, 1, 1 << 24, 1, 0},
        {"num_mtp_layers", &c->n_mtp, 0, 64, 1, 1},
        {"num_nextn_predict_layers", &c->n_mtp, 0, 64, 1, 1},
    };
    for (size_t i = 0; i < sizeof dim / sizeof *dim; i++)
        FM_TRY(fm__config_dim(dim[i].out, root, dim[i].key, dim[i].lo, dim[i].hi, dim[i].multiple,
                              dim[i].optional, at));
    if (c->n_head * c->v_dim % 32)
        return fm_fail(FM_E_FORMAT,
                       "%s: num_attention_heads x v_head_dim is %d, must be a multiple of 32",
                       at.file, c->n_head * c->v_dim);

    int64_t n_kv = c->n_head;
    FM_TRY(fm_json_opt_int(&n_kv, root, "num_key_value_heads", 1, 1024, at));
    if (n_kv != c->n_head)
        return fm_fail(FM_E_NOSUP,
                       "%s: num_key_value_heads is %lld, must equal num_attention_heads (%d)",
                       at.file, (long long)n_kv, c->n_head);

    double eps = 0;
    FM_TRY(fm_json_real(&eps, root, "rms_norm_eps", 1e-12, 0.1, at));
    c->eps = (float)eps;
    return FM_OK;
}

/* A config is a few lines, but its product decides what is allocated. */
static fm_status check_size(const fm_model_config *c, fm_json_at at)
{
    if ((int64_t)c->n_layer * c->n_expert > 1 << 17)
        return fm_fail(FM_E_FORMAT, "%s: num_hidden_layers x n_routed_experts is %lld, at most %d",
                       at.file, (long long)c->n_layer * c->n_expert, 1 << 17);
    if (fm_param_count(c) > MAX_PARAMS)
        return fm_fail(FM_E_FORMAT, "%s: describes %lld parameters, at most %lld", at.file,
                       (long long)fm_param_count(c), (long long)MAX_PARAMS);
    return FM_OK;
}

static fm_status read(fm_model_config *c, const json_t *root, const char *file)
{
    const fm_json_at at = {file, ""};
    FM_TRY(read_model_type(c, root, at));
    FM_TRY(refuse_variants(root, at));
    FM_TRY(read_shape(c, root, at));
    FM_TRY(fm__config_moe(c, root, file));
    FM_TRY(fm__config_rope(c, root, file));
    FM_TRY(fm__config_quantisation(c, root, file));
    return check_size(c, at);
}

static const char *const architectures[] = {"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", NULL};
static const char *const model_types[]   = {"deepseek_v2", "deepseek_v3", "kimi_k2", NULL};

const fm_config_reader fm_config_deepseek = {architectures, model_types, read};
