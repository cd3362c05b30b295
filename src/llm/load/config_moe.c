/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "llm/load/config_internal.h"

static fm_status read_method(fm_model_config *c, const json_t *root, fm_json_at at)
{
    const int   v2     = !strcmp(c->model_type, "deepseek_v2");
    const char *method = v2 ? "greedy" : "noaux_tc";
    const char *score  = v2 ? "softmax" : "sigmoid";

    FM_TRY(fm_json_opt_string(&method, root, "topk_method", at));
    FM_TRY(fm_json_opt_string(&score, root, "scoring_func", at));
    if (!strcmp(method, "greedy"))
        c->route = FM_ROUTE_GREEDY;
    else if (!strcmp(method, "group_limited_greedy"))
        c->route = FM_ROUTE_GROUP_LIMITED;
    else if (!strcmp(method, "noaux_tc"))
        c->route = FM_ROUTE_NOAUX_TC;
    else
        return fm_fail(FM_E_NOSUP, "%s: topk_method %s is not supported", at.file, method);

    const char *goes_with = c->route == FM_ROUTE_NOAUX_TC ? "sigmoid" : "softmax";
    if (strcmp(score, goes_with) != 0)
        return fm_fail(FM_E_NOSUP,
                       "%s: scoring_func %s with topk_method %s is not supported, only %s", at.file,
                       score, method, goes_with);
    c->score      = c->route == FM_ROUTE_NOAUX_TC ? FM_SCORE_SIGMOID : FM_SCORE_SOFTMAX;
    c->norm_top_k = !v2;
    return FM_OK;
}

static fm_status check_groups(const fm_model_config *c, const char *file)
{
    if (c->n_expert % c->n_group)
        return fm_fail(FM_E_FORMAT, "%s: n_routed_experts (%d) is not a multiple of n_group (%d)",
                       file, c->n_expert, c->n_group);
    if (c->top_group > c->n_group)
        return fm_fail(FM_E_FORMAT, "%s: topk_group (%d) exceeds n_group (%d)", file, c->top_group,
                       c->n_group);
    const int per_group = c->n_expert / c->n_group;
    const int in_reach  = c->route == FM_ROUTE_GREEDY ? c->n_expert : per_group * c->top_group;
    if (c->top_k > in_reach)
        return fm_fail(FM_E_FORMAT,
                       "%s: num_experts_per_tok is %d, but only %d experts can be chosen", file,
                       c->top_k, in_reach);
    if (c->route == FM_ROUTE_NOAUX_TC && c->n_group > 1 && per_group < 2)
        return fm_fail(FM_E_FORMAT, "%s: n_group is %d: noaux_tc needs two experts in each group",
                       file, c->n_group);
    return FM_OK;
}

fm_status fm__config_moe(fm_model_config *c, const json_t *root, const char *file)
{
    const fm_json_at at = {file, ""};

    c->moe_freq = c->n_group = c->top_group = 1;
    FM_TRY(fm__config_dim(&c->n_expert, root, "n_routed_experts", 0, 8192, 1, 1, at));
    if (!c->n_expert) return FM_OK;

    const struct {
        const char *key;
        int        *out, lo, hi, multiple, optional;
    } dim[] = {
        {"moe_intermediate_size", &c->moe_inter, 32, 1 << 18, 32, 0},
        {"num_experts_per_tok", &c->top_k, 1, FM_MAX_TOP_K, 1, 0},
        {"first_k_dense_replace", &c->n_dense, 0, 1000, 1, 0},
        {"n_shared_experts", &c->n_shared, 0, 64, 1, 1},
        {"moe_layer_freq", &c->moe_freq, 1, 1000, 1, 1},
        {"n_group", &c->n_group, 1, 1024, 1, 1},
        {"topk_group", &c->top_group, 1, 1024, 1, 1},
    };
    for (size_t i = 0; i < sizeof dim / sizeof *dim; i++)
        FM_TRY(fm__config_dim(dim[i].out, root, dim[i].key, dim[i].lo, dim[i].hi, dim[i].multiple,
                              dim[i].optional, at));
    FM_TRY(read_method(c, root, at));

    double scale = 1;
    FM_TRY(fm_json_opt_real(&scale, root, "routed_scaling_factor", 1e-6, 1e6, at));
    c->routed_scale = (float)scale;
    FM_TRY(fm_json_opt_bool(&c->norm_top_k, root, "norm_topk_prob", at));
    return check_groups(c, file);
}
