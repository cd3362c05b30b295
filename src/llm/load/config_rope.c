/* SPDX-License-Identifier: Apache-2.0 */
/* Two spellings: rope_theta and rope_scaling beside it (published files), or
 * everything inside rope_parameters (transformers 5). */
#include <string.h>

#include "llm/load/config_internal.h"

static fm_status object_or_null(const json_t **out, const json_t *root, const char *key,
                                const char *file)
{
    const json_t *v = json_object_get(root, key);
    if (!v || json_is_null(v)) return FM_OK;
    if (!json_is_object(v))
        return fm_fail(FM_E_FORMAT, "%s: %s: expected an object, found %s", file, key,
                       fm_json_kind(v));
    *out = v;
    return FM_OK;
}

static fm_status read_kind(fm_model_config *c, const json_t *o, fm_json_at at)
{
    const char *kind = "default";
    FM_TRY(fm_json_opt_string(&kind, o, "type", at));
    FM_TRY(fm_json_opt_string(&kind, o, "rope_type", at));
    c->yarn = !strcmp(kind, "yarn") || !strcmp(kind, "deepseek_yarn");
    if (!c->yarn && strcmp(kind, "default") != 0 && strcmp(kind, "none") != 0)
        return fm_fail(FM_E_NOSUP, "%s: %stype %s is not supported, only yarn", at.file, at.scope,
                       kind);
    return FM_OK;
}

static fm_status read_yarn(fm_model_config *c, const json_t *o, fm_json_at at)
{
    FM_TRY(fm__config_dim(&c->yarn_original, o, "original_max_position_embeddings", 1, 1 << 24, 1,
                          0, at));
    c->yarn_factor    = (double)c->max_position / c->yarn_original;
    c->yarn_beta_fast = 32;
    c->yarn_beta_slow = 1;
    c->yarn_truncate  = 1;
    FM_TRY(fm_json_opt_real(&c->yarn_factor, o, "factor", 1, 1e6, at));
    FM_TRY(fm_json_opt_real(&c->yarn_beta_fast, o, "beta_fast", 1e-3, 1e6, at));
    FM_TRY(fm_json_opt_real(&c->yarn_beta_slow, o, "beta_slow", 1e-3, 1e6, at));
    FM_TRY(fm_json_opt_real(&c->yarn_mscale, o, "mscale", 0, 100, at));
    FM_TRY(fm_json_opt_real(&c->yarn_mscale_all_dim, o, "mscale_all_dim", 0, 100, at));
    FM_TRY(fm_json_opt_real(&c->yarn_attention_factor, o, "attention_factor", 1e-3, 1e3, at));
    FM_TRY(fm_json_opt_bool(&c->yarn_truncate, o, "truncate", at));
    if (c->yarn_beta_slow > c->yarn_beta_fast)
        return fm_fail(FM_E_FORMAT, "%s: %sbeta_slow is %g, must not exceed beta_fast (%g)",
                       at.file, at.scope, c->yarn_beta_slow, c->yarn_beta_fast);
    if (c->yarn_factor < 1)
        return fm_fail(FM_E_FORMAT,
                       "%s: %soriginal_max_position_embeddings is %d, more than "
                       "max_position_embeddings (%d)",
                       at.file, at.scope, c->yarn_original, c->max_position);
    return FM_OK;
}

fm_status fm__config_rope(fm_model_config *c, const json_t *root, const char *file)
{
    const json_t *old = NULL, *now = NULL;
    FM_TRY(object_or_null(&old, root, "rope_scaling", file));
    FM_TRY(object_or_null(&now, root, "rope_parameters", file));
    const json_t    *o  = old ? old : now; /* an override of the published name wins */
    const fm_json_at at = {file, o == old ? "rope_scaling." : "rope_parameters."};

    c->rope_theta = 10000;
    FM_TRY(fm_json_opt_real(&c->rope_theta, root, "rope_theta", 2, 1e12, (fm_json_at){file, ""}));
    if (now)
        FM_TRY(fm_json_opt_real(&c->rope_theta, now, "rope_theta", 2, 1e12,
                                (fm_json_at){file, "rope_parameters."}));
    c->rope_interleave = 1;
    FM_TRY(fm_json_opt_bool(&c->rope_interleave, root, "rope_interleave", (fm_json_at){file, ""}));
    if (!o) return FM_OK;
    FM_TRY(read_kind(c, o, at));
    return c->yarn ? read_yarn(c, o, at) : FM_OK;
}
