/* SPDX-License-Identifier: Apache-2.0 */
/* tuned/NAME.json: reading, which trusts nothing, and writing. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "llm/planner/tuned.h"

enum { VERSION = 1 };

/* --- reading ------------------------------------------------------------------ */

/* Ascending positive numbers. */
static fm_status read_axis(double *out, int *n, int most, const json_t *o, const char *key,
                           fm_json_at at)
{
    const json_t *list = json_object_get(o, key);
    if (!json_is_array(list) || json_array_size(list) < 1 || (int)json_array_size(list) > most)
        return fm_fail(FM_E_FORMAT, "%s: %s%s: expected a list of 1 to %d numbers", at.file,
                       at.scope, key, most);
    *n = (int)json_array_size(list);
    for (int i = 0; i < *n; i++) {
        out[i] = json_number_value(json_array_get(list, (size_t)i));
        if (!(out[i] > (i ? out[i - 1] : 0)))
            return fm_fail(FM_E_FORMAT, "%s: %s%s: numbers must be positive and ascend", at.file,
                           at.scope, key);
    }
    return FM_OK;
}

static fm_status read_row(double *out, int n, const json_t *row, fm_json_at at)
{
    for (int c = 0; c < n; c++) {
        out[c] = json_number_value(json_array_get(row, (size_t)c));
        if (!(out[c] > 0))
            return fm_fail(FM_E_FORMAT,
                           "%s: %svalue: expected a positive number for each row and "
                           "context",
                           at.file, at.scope);
    }
    return FM_OK;
}

static fm_status read_table(fm_table *out, const json_t *o, fm_json_at at)
{
    fm_table      t     = {0};
    const json_t *value = json_object_get(o, "value");
    if (!json_is_object(o))
        return fm_fail(FM_E_FORMAT, "%s: %s expected an object with rows, context, value", at.file,
                       at.scope);
    FM_TRY(read_axis(t.row, &t.n_row, FM_TABLE_ROWS, o, "rows", at));
    FM_TRY(read_axis(t.context, &t.n_context, FM_TABLE_CONTEXTS, o, "context", at));
    for (int r = 0; r < t.n_row; r++)
        FM_TRY(read_row(t.value[r], t.n_context, json_array_get(value, (size_t)r), at));
    *out = t;
    return FM_OK;
}

static fm_status read_shares(fm_tuned *t, const json_t *all, const char *file)
{
    char scope[64];
    for (int k = 0; k < FM_N_WORK; k++) {
        snprintf(scope, sizeof scope, "share.%s.", fm_work_name((fm_work_kind)k));
        const json_t *o = json_object_get(all, fm_work_name((fm_work_kind)k));
        if (!o)
            return fm_fail(FM_E_FORMAT, "%s: share.%s is missing", file,
                           fm_work_name((fm_work_kind)k));
        FM_TRY(read_table(&t->share[k], o, (fm_json_at){file, scope}));
    }
    return FM_OK;
}

static fm_status read_steps(fm_tuned *t, json_t *all, const char *file)
{
    const char *model;
    json_t     *o;
    char        scope[128];
    if (all && !json_is_object(all))
        return fm_fail(FM_E_FORMAT, "%s: step: expected an object, one member a model", file);
    json_object_foreach(all, model, o)
    {
        fm_tuned_steps *s = fm_tuned_add_steps(t, model);
        if (!s) return fm_fail(FM_E_FORMAT, "%s: step: more than %d models", file, FM_TUNED_MODELS);
        snprintf(scope, sizeof scope, "step.%.60s.generated.", model);
        FM_TRY(
            read_table(&s->generated, json_object_get(o, "generated"), (fm_json_at){file, scope}));
        snprintf(scope, sizeof scope, "step.%.60s.prompt.", model);
        FM_TRY(read_table(&s->prompt, json_object_get(o, "prompt"), (fm_json_at){file, scope}));
    }
    return FM_OK;
}

static fm_status read_link(fm_link *out, const json_t *o, const char *file, const char *name)
{
    char             scope[32];
    const fm_json_at at = {file, scope};
    snprintf(scope, sizeof scope, "%s.", name);
    if (!o) return FM_OK;
    FM_TRY(fm_json_real(&out->latency_s, o, "latency_s", 0, 10, at));
    return fm_json_real(&out->bytes_per_s, o, "bytes_per_s", 1, 1e18, at);
}

static json_t *number(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.4g", x); /* what was measured has no more digits */
    double short_x = x;
    sscanf(text, "%lf", &short_x);
    return json_real(short_x);
}

/* Names in the file, and where their numbers are. */
static const struct {
    const char *key;
    size_t      at;
} tier_keys[] = {{"host_in_bytes_per_s", offsetof(fm_tier_rates, host_in)},
                 {"host_out_bytes_per_s", offsetof(fm_tier_rates, host_out)},
                 {"file_read_bytes_per_s", offsetof(fm_tier_rates, file_read)},
                 {"file_write_bytes_per_s", offsetof(fm_tier_rates, file_write)}};
enum { N_TIER_KEY = sizeof tier_keys / sizeof tier_keys[0] };

fm_status fm_tier_rates_read(fm_tier_rates *out, const json_t *o, const char *file)
{
    const fm_json_at at = {file, "tiers."};
    if (o && !json_is_object(o))
        return fm_fail(FM_E_FORMAT, "%s: tiers: expected an object of rates", file);
    for (int i = 0; o && i < N_TIER_KEY; i++)
        FM_TRY(fm_json_opt_real((double *)((char *)out + tier_keys[i].at), o, tier_keys[i].key, 1,
                                1e18, at));
    return FM_OK;
}

static json_t *tiers_json(const fm_tier_rates *t)
{
    json_t *o = json_object();
    for (int i = 0; i < N_TIER_KEY; i++) {
        const double x = *(const double *)((const char *)t + tier_keys[i].at);
        if (x > 0) json_object_set_new(o, tier_keys[i].key, number(x));
    }
    return o;
}

static fm_status read_numbers(fm_tuned *t, const json_t *o, fm_json_at at)
{
    const char *name = "", *about = "", *kind = "";
    int64_t     version = 0;
    FM_TRY(fm_json_int(&version, o, "fathom_tuned", VERSION, VERSION, at));
    FM_TRY(fm_json_string(&name, o, "name", at));
    FM_TRY(fm_json_string(&kind, o, "kind", at));
    FM_TRY(fm_json_opt_string(&about, o, "about", at));
    if (strcmp(kind, "cpu") && strcmp(kind, "gpu"))
        return fm_fail(FM_E_FORMAT, "%s: kind is \"%s\", neither cpu nor gpu", at.file, kind);
    t->is_gpu = !strcmp(kind, "gpu");
    snprintf(t->name, sizeof t->name, "%s", name);
    snprintf(t->about, sizeof t->about, "%s", about);
    int64_t threads = 1;
    FM_TRY(fm_json_opt_int(&threads, o, "threads", 1, 4096, at));
    t->n_thread = (int)threads;
    FM_TRY(fm_json_real(&t->memory, o, "memory_bytes", 1, 1e18, at));
    FM_TRY(fm_json_opt_real(&t->reserve, o, "reserve_bytes", 0, 1e18, at));
    FM_TRY(fm_json_real(&t->read, o, "read_bytes_per_s", 1, 1e18, at));
    FM_TRY(fm_json_opt_real(&t->read_one, o, "read_one_bytes_per_s", 0, 1e18, at));
    FM_TRY(fm_json_real(&t->peak_f32, o, "f32_flops", 1, 1e21, at));
    FM_TRY(fm_json_real(&t->peak_bf16, o, "bf16_flops", 1, 1e21, at));
    FM_TRY(fm_json_real(&t->peak_fp8, o, "fp8_flops", 1, 1e21, at));
    FM_TRY(fm_json_real(&t->op_s, o, "op_s", 0, 1, at));
    FM_TRY(fm_json_real(&t->step_s, o, "step_s", 0, 10, at));
    FM_TRY(fm_json_real(&t->out_s, o, "out_s", 0, 1, at));
    return fm_json_opt_real(&t->spread, o, "spread", 0, 10, at);
}

static fm_status read_all(fm_tuned *t, const json_t *o, const char *file)
{
    FM_TRY(read_numbers(t, o, (fm_json_at){file, ""}));
    FM_TRY(read_link(&t->near, json_object_get(o, "near"), file, "near"));
    FM_TRY(read_link(&t->far, json_object_get(o, "far"), file, "far"));
    FM_TRY(fm_tier_rates_read(&t->tiers, json_object_get(o, "tiers"), file));
    FM_TRY(read_shares(t, json_object_get(o, "share"), file));
    return read_steps(t, json_object_get(o, "step"), file);
}

static fm_status take(fm_tuned *out, json_t *o, const char *file)
{
    fm_tuned        t  = {0};
    const fm_status rc = read_all(&t, o, file);
    json_decref(o);
    if (rc == FM_OK) *out = t;
    return rc;
}

fm_status fm_tuned_load(fm_tuned *out, const char *path)
{
    json_t *o = NULL;
    FM_TRY(fm_json_load(&o, path));
    return take(out, o, path);
}

fm_status fm_tuned_parse(fm_tuned *out, const char *text, size_t len, const char *name)
{
    json_t *o = NULL;
    FM_TRY(fm_json_parse(&o, text, len, name));
    return take(out, o, name);
}

/* --- writing ------------------------------------------------------------------ */

static json_t *axis(const double *x, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, number(x[i]));
    return list;
}

static json_t *table(const fm_table *t)
{
    json_t *value = json_array();
    for (int r = 0; r < t->n_row; r++)
        json_array_append_new(value, axis(t->value[r], t->n_context));
    return json_pack("{s:o, s:o, s:o}", "rows", axis(t->row, t->n_row), "context",
                     axis(t->context, t->n_context), "value", value);
}

static json_t *link_json(const fm_link *l)
{
    return json_pack("{s:o, s:o}", "latency_s", number(l->latency_s), "bytes_per_s",
                     number(l->bytes_per_s));
}

static void add_tables(json_t *o, const fm_tuned *t)
{
    json_t *share = json_object(), *step = json_object();
    for (int k = 0; k < FM_N_WORK; k++)
        json_object_set_new(share, fm_work_name((fm_work_kind)k), table(&t->share[k]));
    for (int i = 0; i < t->n_step; i++)
        json_object_set_new(step, t->step[i].model,
                            json_pack("{s:o, s:o}", "generated", table(&t->step[i].generated),
                                      "prompt", table(&t->step[i].prompt)));
    json_object_set_new(o, "share", share);
    json_object_set_new(o, "step", step);
}

/* One member a line, tables included: a file that people read and compare. */
static void print_members(fm_str *out, const json_t *o, int depth)
{
    const char *key;
    json_t     *v, *any = (json_t *)o;
    int         n = 0;
    fm_str_puts(out, "{");
    json_object_foreach(any, key, v)
    {
        fm_str_printf(out, "%s\n%*s\"%s\": ", n++ ? "," : "", 2 * (depth + 1), "", key);
        if (depth < 2 && json_is_object(v) && !json_object_get(v, "value") &&
            !json_object_get(v, "latency_s")) {
            print_members(out, v, depth + 1);
            continue;
        }
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
        FM_BUG_UNLESS(text != NULL);
        fm_str_puts(out, text);
        free(text);
    }
    fm_str_printf(out, "\n%*s}", 2 * depth, "");
}

void fm_tuned_print(const fm_tuned *t, fm_str *out)
{
    json_t *o = json_pack("{s:i, s:s, s:s, s:s}", "fathom_tuned", VERSION, "name", t->name, "kind",
                          t->is_gpu ? "gpu" : "cpu", "about", t->about);
    FM_BUG_UNLESS(o != NULL);
    if (!t->is_gpu) json_object_set_new(o, "threads", json_integer(t->n_thread));
    const struct {
        const char *key;
        double      x;
    } all[] = {
        {"memory_bytes", t->memory}, {"reserve_bytes", t->reserve}, {"read_bytes_per_s", t->read},
        {"f32_flops", t->peak_f32},  {"bf16_flops", t->peak_bf16},  {"fp8_flops", t->peak_fp8},
        {"op_s", t->op_s},           {"step_s", t->step_s},         {"out_s", t->out_s},
        {"spread", t->spread}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        json_object_set_new(o, all[i].key, number(all[i].x));
    if (t->read_one > 0) json_object_set_new(o, "read_one_bytes_per_s", number(t->read_one));
    if (t->near.bytes_per_s > 0) json_object_set_new(o, "near", link_json(&t->near));
    if (t->far.bytes_per_s > 0) json_object_set_new(o, "far", link_json(&t->far));
    json_t *tiers = tiers_json(&t->tiers);
    if (json_object_size(tiers)) json_object_set(o, "tiers", tiers);
    json_decref(tiers);
    add_tables(o, t);
    print_members(out, o, 0);
    fm_str_puts(out, "\n");
    json_decref(o);
}
