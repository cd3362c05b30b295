/* SPDX-License-Identifier: Apache-2.0 */
/* quantization_config: FP8 in 128x128 blocks, or INT4 in groups of 32 as compressed-tensors packs
 * it.  Everything else is refused by name. */
#define _POSIX_C_SOURCE 200809L
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "llm/load/config_internal.h"
#include "llm/load/config_read.h"

static fm_status refuse(fm_json_at at, const char *key, const char *found, const char *only)
{
    return fm_fail(FM_E_NOSUP, "%s: %s%s %s is not supported, only %s", at.file, at.scope, key,
                   found, only);
}

/* --- FP8 ------------------------------------------------------------------ */

static int is_block_128(const json_t *v)
{
    return json_array_size(v) == 2 && json_integer_value(json_array_get(v, 0)) == FM_FP8_BLOCK &&
           json_integer_value(json_array_get(v, 1)) == FM_FP8_BLOCK;
}

static fm_status read_fp8(fm_model_config *c, const json_t *q, fm_json_at at)
{
    const char *fmt = "e4m3", *scheme = "";
    FM_TRY(fm_json_opt_string(&fmt, q, "fmt", at));
    FM_TRY(fm_json_opt_string(&scheme, q, "activation_scheme", at));
    if (strcmp(fmt, "e4m3") != 0) return refuse(at, "fmt", fmt, "e4m3");
    if (!is_block_128(json_object_get(q, "weight_block_size")))
        return fm_fail(FM_E_NOSUP,
                       "%s: quantization_config.weight_block_size must be [128, 128]; other FP8 "
                       "layouts are not supported",
                       at.file);
    c->fp8             = 1;
    c->fp8_activations = !strcmp(scheme, "dynamic");
    return FM_OK;
}

/* --- INT4 ----------------------------------------------------------------- */

static fm_status want_word(const json_t *o, const char *key, const char *only, fm_json_at at)
{
    const char *word;
    FM_TRY(fm_json_string(&word, o, key, at));
    return strcmp(word, only) ? refuse(at, key, word, only) : FM_OK;
}

static fm_status want_number(const json_t *o, const char *key, int only, fm_json_at at)
{
    int64_t n;
    char    found[24], wanted[24];
    FM_TRY(fm_json_int(&n, o, key, INT32_MIN, INT32_MAX, at));
    if (n == only) return FM_OK;
    snprintf(found, sizeof found, "%lld", (long long)n);
    snprintf(wanted, sizeof wanted, "%d", only);
    return refuse(at, key, found, wanted);
}

static fm_status want_nothing(const json_t *o, const char *key, fm_json_at at)
{
    const json_t *v = json_object_get(o, key);
    if (!v || json_is_null(v) || json_is_false(v)) return FM_OK;
    return fm_fail(FM_E_NOSUP, "%s: %s%s is not supported", at.file, at.scope, key);
}

static fm_status check_weights(const json_t *w, fm_json_at at)
{
    int symmetric = 0;
    if (!json_is_object(w))
        return fm_fail(FM_E_FORMAT, "%s: %sweights: expected an object, found %s", at.file,
                       at.scope, fm_json_kind(w));
    FM_TRY(want_number(w, "num_bits", 4, at));
    FM_TRY(want_word(w, "type", "int", at));
    FM_TRY(want_word(w, "strategy", "group", at));
    FM_TRY(want_number(w, "group_size", FM_INT4_GROUP, at));
    FM_TRY(fm_json_opt_bool(&symmetric, w, "symmetric", at));
    if (!symmetric) return refuse(at, "symmetric", "false", "true");
    return want_nothing(w, "actorder", at);
}

static fm_status check_group(const json_t *group, fm_json_at at)
{
    const json_t *target = json_object_get(group, "targets");
    const char   *first  = json_string_value(json_array_get(target, 0));
    if (json_array_size(target) != 1 || !first || strcmp(first, "Linear") != 0)
        return refuse(at, "targets", first ? first : "(none)", "[\"Linear\"]");
    FM_TRY(want_nothing(group, "input_activations", at));
    FM_TRY(want_nothing(group, "output_activations", at));
    return check_weights(json_object_get(group, "weights"), at);
}

static fm_status add_ignored(fm_model_config *c, const json_t *v, fm_json_at at)
{
    const char *name = json_string_value(v);
    regex_t     compiled;
    if (!name) return fm_fail(FM_E_FORMAT, "%s: %signore: expected strings", at.file, at.scope);
    if (c->n_int4_ignore == FM_MAX_IGNORE || strlen(name) >= sizeof c->int4_ignore[0])
        return fm_fail(FM_E_NOSUP, "%s: %signore: more than %d entries, or one of %zu characters",
                       at.file, at.scope, FM_MAX_IGNORE, strlen(name));
    if (!strncmp(name, "re:", 3)) {
        if (regcomp(&compiled, name + 3, REG_EXTENDED | REG_NOSUB))
            return fm_fail(FM_E_NOSUP, "%s: %signore: \"%s\" is no expression we understand",
                           at.file, at.scope, name);
        regfree(&compiled);
    }
    snprintf(c->int4_ignore[c->n_int4_ignore++], sizeof c->int4_ignore[0], "%s", name);
    return FM_OK;
}

static fm_status read_int4(fm_model_config *c, const json_t *q, fm_json_at at)
{
    const json_t *groups = json_object_get(q, "config_groups");
    const json_t *ignore = json_object_get(q, "ignore");
    FM_TRY(want_word(q, "format", "pack-quantized", at));
    FM_TRY(want_nothing(q, "kv_cache_scheme", at));
    if (json_object_size(groups) != 1)
        return fm_fail(FM_E_NOSUP, "%s: %sconfig_groups: %zu groups are not supported, only one",
                       at.file, at.scope, json_object_size(groups));
    at.scope = "quantization_config.config_groups.";
    FM_TRY(check_group(json_object_iter_value(json_object_iter((json_t *)groups)), at));
    at.scope = "quantization_config.";
    for (size_t i = 0; i < json_array_size(ignore); i++)
        FM_TRY(add_ignored(c, json_array_get(ignore, i), at));
    c->int4 = 1;
    return FM_OK;
}

/* From the beginning of the name, as Python's match does. */
static int expression_matches(const char *text, const char *name)
{
    regex_t    compiled;
    regmatch_t where;
    if (regcomp(&compiled, text, REG_EXTENDED)) return 0;
    const int yes = regexec(&compiled, name, 1, &where, 0) == 0 && where.rm_so == 0;
    regfree(&compiled);
    return yes;
}

int fm_config_keeps_int4(const fm_model_config *c, const char *tensor)
{
    char module[160];
    if (!c->int4) return 0;
    snprintf(module, sizeof module, "%s", tensor);
    char *end = strstr(module, ".weight");
    if (end) *end = 0;
    for (int i = 0; i < c->n_int4_ignore; i++) {
        const char *rule = c->int4_ignore[i];
        if (strncmp(rule, "re:", 3) ? !strcmp(rule, module) : expression_matches(rule + 3, module))
            return 0;
    }
    return 1;
}

/* --- either --------------------------------------------------------------- */

fm_status fm__config_quantisation(fm_model_config *c, const json_t *root, const char *file)
{
    const fm_json_at at = {file, "quantization_config."};
    const json_t    *q  = json_object_get(root, "quantization_config");
    const char      *method;

    if (!q || json_is_null(q)) return FM_OK;
    if (!json_is_object(q))
        return fm_fail(FM_E_FORMAT, "%s: quantization_config: expected an object, found %s", file,
                       fm_json_kind(q));
    FM_TRY(fm_json_string(&method, q, "quant_method", at));
    if (!strcmp(method, "fp8")) return read_fp8(c, q, at);
    if (!strcmp(method, "compressed-tensors")) return read_int4(c, q, at);
    return refuse(at, "quant_method", method, "fp8 and compressed-tensors");
}
