/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/load/config_read.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "llm/load/config_internal.h"

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

/* --- who wrote it --------------------------------------------------------- */

static fm_status copy_word(char *dst, size_t size, const char *word, const char *key, fm_json_at at)
{
    const int n = snprintf(dst, size, "%s", word);
    if (n < 0 || (size_t)n >= size)
        return fm_fail(FM_E_FORMAT, "%s: %s is longer than %zu characters", at.file, key, size - 1);
    return FM_OK;
}

static fm_status read_architecture(fm_model_config *c, const json_t *root, fm_json_at at)
{
    const json_t *list = json_object_get(root, "architectures");
    const json_t *name = json_array_get(list, 0);
    if (!json_is_string(name))
        return fm_fail(FM_E_FORMAT, "%s: architectures: expected an array of strings, found %s",
                       at.file, list ? fm_json_kind(json_is_array(list) ? name : list) : "nothing");
    FM_TRY(copy_word(c->architecture, sizeof c->architecture, json_string_value(name),
                     "architectures", at));
    const int v3 = !strcmp(c->architecture, "DeepseekV3ForCausalLM");
    if (!v3 && strcmp(c->architecture, "DeepseekV2ForCausalLM") != 0)
        return fm_fail(FM_E_NOSUP,
                       "%s: architectures: %s is not supported; fathom runs DeepseekV2ForCausalLM "
                       "and DeepseekV3ForCausalLM",
                       at.file, c->architecture);

    const char *type = v3 ? "deepseek_v3" : "deepseek_v2";
    FM_TRY(fm_json_opt_string(&type, root, "model_type", at));
    return copy_word(c->model_type, sizeof c->model_type, type, "model_type", at);
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

/* --- shapes --------------------------------------------------------------- */

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

/* --- ids ------------------------------------------------------------------ */

static fm_status add_eos(fm_model_config *c, const json_t *v, const char *file)
{
    const json_int_t id = json_integer_value(v);
    if (!json_is_integer(v) || id < 0 || id >= c->vocab)
        return fm_fail(FM_E_FORMAT, "%s: eos_token_id: expected ids between 0 and %d", file,
                       c->vocab - 1);
    for (int i = 0; i < c->n_eos; i++)
        if (c->eos[i] == id) return FM_OK;
    if (c->n_eos == FM_MAX_EOS)
        return fm_fail(FM_E_FORMAT, "%s: eos_token_id: more than %d ids", file, FM_MAX_EOS);
    c->eos[c->n_eos++] = (int)id;
    return FM_OK;
}

/* An id or a list of ids; those already known are not repeated. */
static fm_status read_eos(fm_model_config *c, const json_t *root, const char *file)
{
    const json_t *v = json_object_get(root, "eos_token_id");
    if (!v || json_is_null(v)) return FM_OK;
    if (!json_is_array(v)) return add_eos(c, v, file);
    for (size_t i = 0; i < json_array_size(v); i++) FM_TRY(add_eos(c, json_array_get(v, i), file));
    return FM_OK;
}

static fm_status read_ids(fm_model_config *c, const json_t *root, fm_json_at at)
{
    int64_t bos = -1;
    FM_TRY(fm_json_opt_int(&bos, root, "bos_token_id", 0, c->vocab - 1, at));
    c->bos = (int)bos;
    return read_eos(c, root, at.file);
}

/* --- the whole ------------------------------------------------------------ */

static fm_status read_root(fm_model_config *out, const json_t *root, const char *file)
{
    const fm_json_at at = {file, ""};
    fm_model_config  c  = {0};

    if (!json_is_object(root))
        return fm_fail(FM_E_FORMAT, "%s: expected an object, found %s", file, fm_json_kind(root));
    FM_TRY(read_architecture(&c, root, at));
    FM_TRY(refuse_variants(root, at));
    FM_TRY(read_shape(&c, root, at));
    FM_TRY(fm__config_moe(&c, root, file));
    FM_TRY(fm__config_rope(&c, root, file));
    FM_TRY(fm__config_quantisation(&c, root, file));
    FM_TRY(read_ids(&c, root, at));
    FM_TRY(check_size(&c, at));
    *out = c;
    return FM_OK;
}

fm_status fm_config_parse(fm_model_config *out, const char *text, size_t len, const char *name,
                          const char *overrides)
{
    json_t *root = NULL;
    FM_TRY(fm_json_parse(&root, text, len, name));
    fm_status rc = fm__config_override(root, overrides);
    if (rc == FM_OK) rc = read_root(out, root, name);
    json_decref(root);
    return rc;
}

static fm_status read_generation_file(fm_model_config *c, const char *path)
{
    json_t *root = NULL;
    FM_TRY(fm_json_load(&root, path));
    const fm_status rc =
        json_is_object(root)
            ? read_eos(c, root, path)
            : fm_fail(FM_E_FORMAT, "%s: expected an object, found %s", path, fm_json_kind(root));
    json_decref(root);
    return rc;
}

/* generation_config.json is optional; where it is, its eos ids count, too. */
static fm_status read_generation(fm_model_config *c, const char *config_path)
{
    const char *slash = strrchr(config_path, '/');
    fm_str      path  = {0};

    fm_str_add(&path, config_path, slash ? (size_t)(slash - config_path + 1) : 0);
    fm_str_puts(&path, "generation_config.json");
    const fm_status rc = access(path.text, F_OK) == 0 ? read_generation_file(c, path.text) : FM_OK;
    fm_str_fini(&path);
    return rc;
}

fm_status fm_config_read(fm_model_config *out, const char *path, const char *overrides)
{
    json_t         *root = NULL;
    fm_model_config c    = {0};

    FM_TRY(fm_json_load(&root, path));
    fm_status rc = fm__config_override(root, overrides);
    if (rc == FM_OK) rc = read_root(&c, root, path);
    if (rc == FM_OK) rc = read_generation(&c, path);
    if (rc == FM_OK) *out = c;
    json_decref(root);
    return rc;
}

fm_status fm_config_of(fm_model_config *out, const fm_model_path *where, const char *overrides)
{
    char file[sizeof where->dir + 16];
    if (where->builtin)
        return fm_config_parse(out, where->builtin, strlen(where->builtin), where->name, overrides);
    snprintf(file, sizeof file, "%s/config.json", where->dir);
    return fm_config_read(out, file, overrides);
}
