/* SPDX-License-Identifier: Apache-2.0 */
#include "golden.h"

#include <stdio.h>
#include <stdlib.h>

#include "json/read.h"

enum { MAX_LIST = 1 << 24 };

static fm_status open_list(const json_t **out, const json_t *obj, const char *key, fm_json_at at)
{
    const json_t *list = json_object_get(obj, key);
    const size_t  n    = json_array_size(list);
    if (!json_is_array(list) || n == 0 || n > MAX_LIST)
        return fm_fail(FM_E_FORMAT, "%s: %s%s: expected a list that is not empty, found %s",
                       at.file, at.scope, key, fm_json_kind(list));
    *out = list;
    return FM_OK;
}

static fm_status read_ids(int32_t **out, int *n, const json_t *obj, const char *key, fm_json_at at)
{
    const json_t *list = NULL;
    FM_TRY(open_list(&list, obj, key, at));
    *n = (int)json_array_size(list);
    if (!(*out = calloc((size_t)*n, sizeof **out))) return fm_fail(FM_E_OOM, "%s", at.file);
    for (int i = 0; i < *n; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > INT32_MAX)
            return fm_fail(FM_E_FORMAT, "%s: %s%s[%d] is no token id", at.file, at.scope, key, i);
        (*out)[i] = (int32_t)json_integer_value(v);
    }
    return FM_OK;
}

static fm_status read_reals(double **out, int *n, const json_t *obj, const char *key, fm_json_at at)
{
    const json_t *list = NULL;
    FM_TRY(open_list(&list, obj, key, at));
    *n = (int)json_array_size(list);
    if (!(*out = calloc((size_t)*n, sizeof **out))) return fm_fail(FM_E_OOM, "%s", at.file);
    for (int i = 0; i < *n; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        if (!json_is_number(v))
            return fm_fail(FM_E_FORMAT, "%s: %s%s[%d] is no number", at.file, at.scope, key, i);
        (*out)[i] = json_number_value(v);
    }
    return FM_OK;
}

/* Lists of lists of lists, all of one length each. */
static fm_status read_routes(fm_golden_case *c, const json_t *obj, fm_json_at at)
{
    const json_t *layers = json_object_get(obj, "routes");
    const json_t *rows   = json_array_get(layers, 0);
    const size_t  n_token = (size_t)(c->n_prompt + c->n_greedy - 1);
    const size_t  k = json_array_size(json_array_get(rows, 0)), n_layer = json_array_size(layers);
    int32_t      *to;
    if (!layers) return FM_OK;
    if (n_layer == 0 || n_layer > 4096 || k == 0 || k > 4096)
        return fm_fail(FM_E_FORMAT, "%s: %sroutes is no list of layers, tokens and experts", at.file,
                       at.scope);
    c->route = to = calloc(n_layer * n_token * k, sizeof *to);
    if (!to) return fm_fail(FM_E_OOM, "%s", at.file);
    c->n_route_layer = (int)n_layer;
    c->n_route       = (int)k;
    for (size_t i = 0; i < n_layer * n_token * k; i++) {
        const json_t *tokens = json_array_get(layers, i / k / n_token);
        const json_t *list   = json_array_get(tokens, i / k % n_token);
        const json_t *v      = json_array_get(list, i % k);
        if (json_array_size(tokens) != n_token || json_array_size(list) != k || !json_is_integer(v))
            return fm_fail(FM_E_FORMAT, "%s: %sroutes[%zu] is not %zu times %zu experts", at.file,
                           at.scope, i / k / n_token, n_token, k);
        to[i] = (int32_t)json_integer_value(v);
    }
    return FM_OK;
}

static fm_status read_case(fm_golden_case *c, const json_t *obj, fm_json_at at)
{
    int     n_margin, n_last;
    int64_t match = 0;
    double  last  = -1;
    c->bf16_rel_err = -1;
    FM_TRY(read_ids(&c->prompt, &c->n_prompt, obj, "prompt", at));
    FM_TRY(read_ids(&c->greedy, &c->n_greedy, obj, "greedy", at));
    FM_TRY(read_reals(&c->margin, &n_margin, obj, "margins", at));
    FM_TRY(read_reals(&c->first, &c->n_logit, obj, "logits_first", at));
    FM_TRY(read_reals(&c->last, &n_last, obj, "logits_last", at));
    FM_TRY(fm_json_opt_real(&c->bf16_rel_err, obj, "bf16_rel_err_first", 0, 100, at));
    FM_TRY(fm_json_opt_real(&last, obj, "bf16_rel_err_last", 0, 100, at));
    if (last > c->bf16_rel_err) c->bf16_rel_err = last;
    FM_TRY(fm_json_opt_int(&match, obj, "bf16_argmax_match", 0, c->n_greedy, at));
    c->bf16_match = (int)match;
    FM_TRY(read_routes(c, obj, at));
    if (n_margin != c->n_greedy)
        return fm_fail(FM_E_FORMAT, "%s: %smargins has %d numbers, greedy has %d", at.file,
                       at.scope, n_margin, c->n_greedy);
    if (n_last != c->n_logit)
        return fm_fail(FM_E_FORMAT, "%s: %slogits_last has %d numbers, logits_first has %d",
                       at.file, at.scope, n_last, c->n_logit);
    return FM_OK;
}

static fm_status read_cases(fm_golden *g, const json_t *root, const char *path)
{
    const json_t *cases = NULL;
    FM_TRY(open_list(&cases, root, "cases", (fm_json_at){path, ""}));
    const int n = (int)json_array_size(cases);
    if (!(g->item = calloc((size_t)n, sizeof *g->item))) return fm_fail(FM_E_OOM, "%s", path);
    g->n = n;
    for (int i = 0; i < n; i++) {
        char scope[32];
        snprintf(scope, sizeof scope, "cases[%d].", i);
        FM_TRY(read_case(&g->item[i], json_array_get(cases, (size_t)i), (fm_json_at){path, scope}));
    }
    return FM_OK;
}

fm_status fm_golden_load(fm_golden *out, const char *path)
{
    json_t   *root = NULL;
    fm_golden g    = {0};
    FM_TRY(fm_json_load(&root, path));
    g.fp8_activations  = json_is_true(json_object_get(root, "fp8_activations"));
    const fm_status rc = read_cases(&g, root, path);
    json_decref(root);
    if (rc == FM_OK)
        *out = g;
    else
        fm_golden_fini(&g);
    return rc;
}

void fm_golden_fini(fm_golden *g)
{
    for (int i = 0; i < g->n; i++) {
        free(g->item[i].prompt);
        free(g->item[i].greedy);
        free(g->item[i].margin);
        free(g->item[i].first);
        free(g->item[i].last);
        free(g->item[i].route);
    }
    free(g->item);
    *g = (fm_golden){0};
}

static fm_status check_ids(const int32_t *id, int n, int vocab, int i, const char *key,
                           const char *path)
{
    for (int j = 0; j < n; j++)
        if (id[j] >= vocab)
            return fm_fail(FM_E_FORMAT, "%s: cases[%d].%s[%d] is %d, the model has %d tokens", path,
                           i, key, j, id[j], vocab);
    return FM_OK;
}

static fm_status check_routes(const fm_golden_case *c, const fm_model_config *m, int i,
                              const char *path)
{
    const int n     = c->n_route_layer * (c->n_prompt + c->n_greedy - 1) * c->n_route;
    int       n_moe = 0;
    if (!c->route) return FM_OK;
    for (int l = 0; l < m->n_layer; l++) n_moe += fm_layer_is_moe(m, l);
    if (c->n_route_layer != n_moe || c->n_route != m->top_k)
        return fm_fail(FM_E_FORMAT, "%s: cases[%d].routes has %d layers and %d experts each, the "
                                    "model %d and %d", path, i, c->n_route_layer, c->n_route, n_moe,
                       m->top_k);
    for (int j = 0; j < n; j++)
        if (c->route[j] < 0 || c->route[j] >= m->n_expert)
            return fm_fail(FM_E_FORMAT, "%s: cases[%d].routes: there is no expert %d", path, i,
                           (int)c->route[j]);
    return FM_OK;
}

fm_status fm_golden_check(const fm_golden *g, const char *path, const fm_model_config *m)
{
    const int vocab = m->vocab;
    for (int i = 0; i < g->n; i++) {
        const fm_golden_case *c = &g->item[i];
        FM_TRY(check_ids(c->prompt, c->n_prompt, vocab, i, "prompt", path));
        FM_TRY(check_ids(c->greedy, c->n_greedy, vocab, i, "greedy", path));
        FM_TRY(check_routes(c, m, i, path));
        if (c->n_logit != vocab)
            return fm_fail(FM_E_FORMAT,
                           "%s: cases[%d].logits_first has %d numbers, the model has "
                           "%d tokens",
                           path, i, c->n_logit, vocab);
    }
    return FM_OK;
}
