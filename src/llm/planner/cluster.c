/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/cluster.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "json/read.h"
#include "probe/rates.h"

enum { MOST_NODES = 4096, MOST_DEVICES = 64 };

/* What messages between GPUs reach, not what the cables can: a collective of a few bytes takes some
 * latencies, a long one the bytes by this rate.  NVLink 4 has 450 GB/s a direction (H800: 200),
 * PCIe 5 64, an InfiniBand NDR card 50, one card a GPU. */
static const struct {
    const char *device;
    fm_link     near, far;
} kinds[] = {
    {"H200", {4e-6, 350e9}, {12e-6, 42e9}},     {"H100", {4e-6, 350e9}, {12e-6, 42e9}},
    {"H100-PCIe", {8e-6, 45e9}, {15e-6, 42e9}}, {"H20", {4e-6, 350e9}, {12e-6, 42e9}},
    {"H800", {4e-6, 155e9}, {12e-6, 42e9}},
};

/* PCIe 5 with 16 lanes from pinned memory; files as docs/kv-tiers.md measured them on a virtual
 * disk, not cached. */
static const fm_tier_rates usual         = {50e9, 50e9, 1.07e9, 0.9e9};
static const fm_link       shared_memory = {3e-6, 5e9}, ethernet = {15e-6, 10e9};

/* --- "2x8xH200" --------------------------------------------------------------- */

static int take_number(const char **at, int most)
{
    char      *end;
    const long n = strtol(*at, &end, 10);
    if (end == *at || (*end != 'x' && *end != 'X') || n < 1 || n > most) return 0;
    *at = end + 1;
    return (int)n;
}

/* "H200", "AMD EPYC x2": what a table of costs may be called. */
static int is_kind(const char *word)
{
    const size_t n = strlen(word);
    if (!n || n >= sizeof((fm_cluster *)0)->device || !isalnum((unsigned char)word[0])) return 0;
    for (; *word; word++)
        if (!isalnum((unsigned char)*word) && !strchr(" -_.()@", *word)) return 0;
    return 1;
}

static fm_status read_words(fm_cluster *c, const char *words)
{
    const char *at = words;
    c->n_node      = 1;
    c->per_node    = take_number(&at, MOST_NODES);
    if (c->per_node && *at >= '0' && *at <= '9') {
        c->n_node   = c->per_node;
        c->per_node = take_number(&at, MOST_DEVICES);
    }
    if (!c->per_node || c->per_node > MOST_DEVICES || !is_kind(at))
        return fm_fail(FM_E_ARG,
                       "--cluster %s is neither NODESxDEVICESxKIND, such as 2x8xH200, nor a .json "
                       "file (at most %d nodes of %d devices)",
                       words, MOST_NODES, MOST_DEVICES);
    snprintf(c->device, sizeof c->device, "%s", at);
    return FM_OK;
}

/* --- files -------------------------------------------------------------------- */

static fm_status read_link(fm_link *out, const json_t *o, const char *name, const char *file)
{
    char             scope[32];
    const json_t    *l  = json_object_get(o, name);
    const fm_json_at at = {file, scope};
    snprintf(scope, sizeof scope, "%s.", name);
    if (!l) return FM_OK;
    FM_TRY(fm_json_real(&out->latency_s, l, "latency_s", 0, 10, at));
    return fm_json_real(&out->bytes_per_s, l, "bytes_per_s", 1, 1e18, at);
}

static fm_status read_description(fm_cluster *c, const json_t *o, const char *file)
{
    const fm_json_at at    = {file, ""};
    int64_t          nodes = 1, devices = 1;
    const char      *device = NULL;
    FM_TRY(fm_json_int(&nodes, o, "nodes", 1, MOST_NODES, at));
    FM_TRY(fm_json_int(&devices, o, "devices", 1, MOST_DEVICES, at));
    FM_TRY(fm_json_string(&device, o, "device", at));
    c->n_node   = (int)nodes;
    c->per_node = (int)devices;
    snprintf(c->device, sizeof c->device, "%s", device);
    FM_TRY(read_link(&c->near, o, "near", file));
    FM_TRY(read_link(&c->far, o, "far", file));
    return fm_tier_rates_read(&c->tiers, json_object_get(o, "tiers"), file);
}

static int n_hosts(const fm_rates *r)
{
    int n = 0;
    for (int i = 0; i < r->n_rank; i++) {
        int k = 0;
        while (strcmp(r->rank[k].host, r->rank[i].host)) k++;
        n += k == i;
    }
    return n;
}

static int take_links(fm_link *out, const fm_rates_links *l)
{
    if (!l->latency.n || !l->bandwidth.n) return 0;
    *out = (fm_link){l->latency.median, l->bandwidth.median};
    return 1;
}

/* Threads of ranks of one host add up; a rank was measured while the others of its host waited. */
static void take_cpu(fm_cluster *c, const fm_rates *r)
{
    const fm_rates_rank *first = &r->rank[0];
    fm_cpu_limits       *l     = &c->cpu;
    for (int i = 0; i < r->n_rank; i++) {
        const fm_rates_rank *k = &r->rank[i];
        if (strcmp(k->host, first->host)) continue;
        l->n_thread += k->n_thread;
        l->peak_f32 += k->product[FM_FACTOR_F32].median;
        l->peak_bf16 += k->product[FM_FACTOR_BF16].median;
        if (k->read.median > l->read) l->read = k->read.median;
    }
    l->memory = (double)first->memory;
    if (!(l->peak_f32 > 0)) l->peak_f32 = l->peak_bf16 / 8;
    if (!(l->peak_bf16 > 0)) l->peak_bf16 = l->peak_f32;
    if (!(l->read > 0) || !(l->peak_bf16 > 0)) *l = (fm_cpu_limits){0};
}

/* Files were measured by one rank, while the others waited. */
static void take_tiers(fm_cluster *c, const fm_rates_rank *r)
{
    c->tiers = (fm_tier_rates){.host_in   = r->gpu.upload.median,
                               .host_out  = r->gpu.download.median,
                               .file_read = r->file.median};
}

/* A GPU by its kind, a CPU as its table of costs is called: its model and the number of CPUs. */
static void name_device(fm_cluster *c, const fm_rates_rank *r)
{
    const char *kind = fm_gpu_kind(r->gpu.name);
    if (*r->gpu.name)
        snprintf(c->device, sizeof c->device, "%.60s", kind ? kind : r->gpu.name);
    else
        snprintf(c->device, sizeof c->device, "%.50s x%d", *r->cpu ? r->cpu : "cpu",
                 c->cpu.n_thread);
}

static fm_status read_rates(fm_cluster *c, const char *file)
{
    fm_rates r = {0};
    FM_TRY(fm_rates_load(&r, file));
    const int hosts = r.n_rank ? n_hosts(&r) : 0;
    fm_status rc    = FM_OK;
    if (!hosts || r.n_rank % hosts)
        rc = fm_fail(FM_E_FORMAT, "%s: %d ranks on %d hosts: hosts must be alike", file, r.n_rank,
                     hosts);
    if (rc == FM_OK) {
        c->n_node     = hosts;
        c->per_node   = r.n_rank / hosts;
        const int gpu = *r.rank[0].gpu.name != 0;
        if (!gpu) take_cpu(c, &r);
        name_device(c, &r.rank[0]);
        take_tiers(c, &r.rank[0]);
        c->is_near_measured = take_links(&c->near, gpu ? &r.gpu_near : &r.near);
        c->is_far_measured  = take_links(&c->far, gpu ? &r.gpu_far : &r.far);
    }
    fm_rates_fini(&r);
    return rc;
}

fm_status fm_cluster_read(fm_cluster *out, const char *words)
{
    const size_t n = strlen(words);
    fm_cluster   c = {0};
    json_t      *o = NULL;
    if (n < 6 || strcmp(words + n - 5, ".json")) {
        FM_TRY(read_words(&c, words));
        *out = c;
        return FM_OK;
    }
    FM_TRY(fm_json_load(&o, words));
    const fm_status rc =
        json_object_get(o, "nodes") ? read_description(&c, o, words) : read_rates(&c, words);
    json_decref(o);
    if (rc == FM_OK) *out = c;
    return rc;
}

/* --- links -------------------------------------------------------------------- */

static double first_known(double a, double b, double c) { return a > 0 ? a : b > 0 ? b : c; }

/* One thread of a CPU copies: it reads and writes. */
static void fill_tiers(fm_tier_rates *c, const fm_tuned *t)
{
    const double copy = t->read / (2.0 * (t->n_thread > 0 ? t->n_thread : 1));
    c->host_in        = first_known(c->host_in, t->tiers.host_in, t->is_gpu ? usual.host_in : copy);
    c->host_out   = first_known(c->host_out, t->tiers.host_out, t->is_gpu ? usual.host_out : copy);
    c->file_read  = first_known(c->file_read, t->tiers.file_read, usual.file_read);
    c->file_write = first_known(c->file_write, t->tiers.file_write, usual.file_write);
}

void fm_cluster_fill_links(fm_cluster *c, const fm_tuned *t)
{
    fm_link near = t->near.bytes_per_s > 0 ? t->near : shared_memory,
            far  = t->far.bytes_per_s > 0 ? t->far : ethernet;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcasecmp(kinds[i].device, c->device)) {
            if (!(t->near.bytes_per_s > 0)) near = kinds[i].near;
            if (!(t->far.bytes_per_s > 0)) far = kinds[i].far;
        }
    if (!(c->near.bytes_per_s > 0)) c->near = near;
    if (!(c->far.bytes_per_s > 0)) c->far = far;
    fill_tiers(&c->tiers, t);
}
