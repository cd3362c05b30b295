/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "json/print.h"
#include "probe/report.h"

static json_t *text(const char *s)
{
    json_t *t = json_string(s);
    return t ? t : json_string("?"); /* not UTF-8 */
}

static json_t *names(void (*list)(const fm_findings *, const fm_checkup *, fm_str *),
                     const fm_findings *f, const fm_checkup *c)
{
    json_t *all = json_array();
    fm_str  s   = {0};
    list(f, c, &s);
    for (char *rest = s.text, *name; rest && (name = strtok_r(rest, ",", &rest));)
        json_array_append_new(all, text(name));
    fm_str_fini(&s);
    return all;
}

static void healthy(const fm_findings *f, const fm_checkup *c, fm_str *out)
{
    fm_findings_healthy(f, c, 0, out);
}

static json_t *finding(const fm_finding *f, const fm_checkup *c)
{
    char who[192];
    fm_finding_who(f, c, who, sizeof who);
    json_t *o =
        json_pack("{s:s,s:o,s:o,s:o}", "level", f->level == FM_FINDING_FAULT ? "fault" : "note",
                  "who", text(who), "what", text(f->what), "todo", text(f->todo));
    if (f->host >= 0) json_object_set_new(o, "host", text(c->host[f->host].name));
    if (f->peer_host >= 0) json_object_set_new(o, "peer_host", text(c->host[f->peer_host].name));
    if (f->rank >= 0) json_object_set_new(o, "rank", json_integer(f->rank));
    return o;
}

static json_t *throttle_reasons(int64_t bits)
{
    char words[160];
    if (bits < 0) return json_null();
    fm_gpu_throttle_words(bits, words, sizeof words);
    return text(words);
}

/* Numbers are -1 where the driver does not say. */
static json_t *gpu_facts(const fm_gpu_facts *g)
{
    const struct {
        const char *name;
        long long   value;
    } number[] = {
        {"mhz", g->mhz},
        {"mhz_most", g->mhz_most},
        {"mhz_memory", g->mhz_memory},
        {"mhz_memory_most", g->mhz_memory_most},
        {"throttled", g->throttled},
        {"celsius", g->celsius},
        {"watt", g->watt},
        {"watt_limit", g->watt_limit},
        {"pcie_generation", g->pcie_generation},
        {"pcie_generation_most", g->pcie_generation_most},
        {"pcie_width", g->pcie_width},
        {"pcie_width_most", g->pcie_width_most},
        {"ecc", g->has_ecc},
        {"memory_errors_corrected", g->corrected},
        {"memory_errors_uncorrected", g->uncorrected},
        {"nvlinks", g->n_link},
        {"nvlinks_active", g->n_link_active},
    };
    json_t *o = json_pack("{s:o,s:o,s:o,s:o,s:o}", "name", text(g->name), "pci", text(g->pci),
                          "driver", text(g->driver), "cuda_runtime", text(g->runtime),
                          "throttle_reasons", throttle_reasons(g->throttled));
    for (size_t i = 0; i < sizeof number / sizeof number[0]; i++)
        json_object_set_new(o, number[i].name, json_integer(number[i].value));
    return o;
}

static json_t *facts(const fm_checkup_rank *r)
{
    const fm_facts     *f = &r->facts;
    const fm_gpu_facts *g = &r->gpu;
    json_t             *o =
        json_pack("{s:f,s:o,s:o,s:o,s:o,s:f,s:I,s:f,s:I,s:I,s:f,s:f,s:I,s:I,s:o,s:o}", "on_cpu",
                  r->on_cpu, "kernel", text(f->kernel), "cpus", text(f->cpus), "governor",
                  text(f->governor), "huge_pages", text(f->huge_pages), "cpu_quota", f->quota,
                  "memory_limit", (json_int_t)f->memory_limit, "load", f->load, "throttled",
                  (json_int_t)f->throttled, "quota_stops", (json_int_t)f->quota_stops, "steal_s",
                  f->steal_s, "cpu_s", f->cpu_s, "memory_errors_corrected",
                  (json_int_t)f->corrected, "memory_errors_uncorrected", (json_int_t)f->uncorrected,
                  "libraries", text(f->libraries), "variables", text(f->variables));
    if (g->index >= 0 || *r->rates.gpu.name) json_object_set_new(o, "gpu", gpu_facts(g));
    return o;
}

static void add_rates(json_t *to, const fm_checkup *c)
{
    fm_rates r = {0};
    fm_str   s = {0};
    if (fm_checkup_rates(&r, c) != FM_OK) return;
    fm_rates_print(&r, &s);
    json_object_set_new(to, "rates", json_loadb(s.text, s.len, 0, NULL));
    fm_str_fini(&s);
    fm_rates_fini(&r);
}

static json_t *object(const fm_checkup *c, const fm_findings *f)
{
    json_t *all = json_array(), *ranks = json_array();
    for (int i = 0; i < f->n; i++) json_array_append_new(all, finding(&f->item[i], c));
    for (int i = 0; i < c->n_rank; i++) json_array_append_new(ranks, facts(&c->rank[i]));
    json_t *o = json_pack(
        "{s:s,s:o,s:o,s:o,s:f,s:o,s:o}", "verdict", fm_findings_faults(f) ? "outlier" : "fine",
        "exclude", names(fm_findings_excluded, f, c), "hosts", names(healthy, f, c), "findings",
        all, "seconds", c->seconds, "mpi", text(c->mpi), "facts", ranks);
    add_rates(o, c);
    return o;
}

void fm_report_json(fm_str *out, const fm_checkup *c, const fm_findings *f, const char *extra)
{
    json_t *o = object(c, f), *more = extra ? json_loads(extra, 0, NULL) : NULL;
    if (more) json_object_update(o, more);
    json_decref(more);
    fm_json_print(out, o);
}
