/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json/read.h"
#include "probe/rates.h"

/* An object of the file, and where it is. */
typedef struct {
    const json_t *o;
    const char   *file;
    char          scope[96]; /* "rank.3." */
} place;

static fm_json_at at(const place *p) { return (fm_json_at){p->file, p->scope}; }

/* The member `key`; its `o` is NULL where there is none. */
static fm_status enter(place *in, const place *p, const char *key)
{
    const json_t *v = json_object_get(p->o, key);
    *in             = (place){.o = v, .file = p->file};
    snprintf(in->scope, sizeof in->scope, "%.64s%.24s.", p->scope, key);
    if (v && !json_is_object(v))
        return fm_fail(FM_E_FORMAT, "%s: %s%s: expected an object, found %s", p->file, p->scope,
                       key, fm_json_kind(v));
    return FM_OK;
}

static fm_status read_rate(fm_rate *out, const place *p, const char *key)
{
    place   in;
    int64_t n    = 0;
    fm_rate rate = {0};
    FM_TRY(enter(&in, p, key));
    if (!in.o) return FM_OK;
    FM_TRY(fm_json_real(&rate.median, in.o, "median", 0, HUGE_VAL, at(&in)));
    FM_TRY(fm_json_real(&rate.spread, in.o, "spread", 0, HUGE_VAL, at(&in)));
    FM_TRY(fm_json_real(&rate.best, in.o, "best", 0, HUGE_VAL, at(&in)));
    FM_TRY(fm_json_int(&n, in.o, "repeats", 1, INT32_MAX, at(&in)));
    rate.n = (int)n;
    *out   = rate;
    return FM_OK;
}

static fm_status read_products(fm_rate product[FM_N_FACTOR], const place *p)
{
    place in;
    FM_TRY(enter(&in, p, "product"));
    for (int f = 0; in.o && f < FM_N_FACTOR; f++)
        FM_TRY(read_rate(&product[f], &in, fm_factor_name((fm_factor)f)));
    return FM_OK;
}

static fm_status read_levels(fm_rates_rank *r, const place *p)
{
    place in;
    FM_TRY(enter(&in, p, "level"));
    for (int i = 0; in.o && i < FM_RATES_LEVELS; i++)
        FM_TRY(read_rate(&r->level[i], &in, fm_isa_name((fm_isa)i)));
    return FM_OK;
}

static fm_status read_text(char *out, size_t size, const place *p, const char *key)
{
    const char *text = "";
    FM_TRY(fm_json_opt_string(&text, p->o, key, at(p)));
    snprintf(out, size, "%s", text);
    return FM_OK;
}

/* The array `key`, at most `most` long; NULL where there is none. */
static fm_status find_array(const json_t **out, const place *p, const char *key, size_t most)
{
    const json_t *v = json_object_get(p->o, key);
    if (v && !json_is_array(v))
        return fm_fail(FM_E_FORMAT, "%s: %s%s: expected an array, found %s", p->file, p->scope, key,
                       fm_json_kind(v));
    if (json_array_size(v) > most)
        return fm_fail(FM_E_FORMAT, "%s: %s%s has %zu entries, at most %zu are possible", p->file,
                       p->scope, key, json_array_size(v), most);
    *out = v;
    return FM_OK;
}

static fm_status enter_item(place *in, const place *p, const char *key, const json_t *array, int i)
{
    const json_t *v = json_array_get(array, (size_t)i);
    *in             = (place){.o = v, .file = p->file};
    snprintf(in->scope, sizeof in->scope, "%.48s%.24s.%d.", p->scope, key, i);
    if (json_is_object(v)) return FM_OK;
    return fm_fail(FM_E_FORMAT, "%s: %s%s.%d: expected an object, found %s", p->file, p->scope, key,
                   i, fm_json_kind(v));
}

static fm_status read_nodes(fm_rates_rank *r, const place *p)
{
    const json_t *all;
    place         in;
    FM_TRY(find_array(&all, p, "node", FM_RATES_MAX_NODE));
    r->n_node = (int)json_array_size(all);
    for (int i = 0; i < r->n_node; i++) {
        int64_t id = 0, n_core = 0;
        FM_TRY(enter_item(&in, p, "node", all, i));
        FM_TRY(fm_json_int(&id, in.o, "id", 0, INT32_MAX, at(&in)));
        FM_TRY(fm_json_opt_int(&n_core, in.o, "n_core", 0, INT32_MAX, at(&in)));
        FM_TRY(read_rate(&r->node[i].read, &in, "read"));
        FM_TRY(read_rate(&r->node[i].product, &in, "product"));
        r->node[i].id     = (int)id;
        r->node[i].n_core = (int)n_core;
    }
    return FM_OK;
}

static fm_status read_bytes(uint64_t *out, const place *p)
{
    int64_t bytes = 0;
    FM_TRY(fm_json_opt_int(&bytes, p->o, "memory", 0, INT64_MAX, at(p)));
    *out = (uint64_t)bytes;
    return FM_OK;
}

static fm_status read_gpu(fm_rates_gpu *g, const place *p)
{
    place in;
    FM_TRY(enter(&in, p, "gpu"));
    if (!in.o) return FM_OK;
    FM_TRY(read_text(g->name, sizeof g->name, &in, "name"));
    FM_TRY(read_bytes(&g->memory, &in));
    FM_TRY(read_rate(&g->read, &in, "read"));
    FM_TRY(read_products(g->product, &in));
    FM_TRY(read_rate(&g->upload, &in, "upload"));
    return read_rate(&g->download, &in, "download");
}

static fm_status read_rank(fm_rates_rank *r, const place *p)
{
    int64_t n_core = 1, n_thread = 1;
    FM_TRY(read_text(r->host, sizeof r->host, p, "host"));
    FM_TRY(read_text(r->cpu, sizeof r->cpu, p, "cpu"));
    FM_TRY(read_text(r->isa, sizeof r->isa, p, "isa"));
    FM_TRY(fm_json_opt_int(&n_core, p->o, "n_core", 1, INT32_MAX, at(p)));
    FM_TRY(fm_json_opt_int(&n_thread, p->o, "n_thread", 1, INT32_MAX, at(p)));
    r->n_core   = (int)n_core;
    r->n_thread = (int)n_thread;
    FM_TRY(read_bytes(&r->memory, p));
    FM_TRY(read_rate(&r->read, p, "read"));
    FM_TRY(read_nodes(r, p));
    FM_TRY(read_products(r->product, p));
    FM_TRY(read_levels(r, p));
    FM_TRY(read_gpu(&r->gpu, p));
    FM_TRY(read_text(r->directory, sizeof r->directory, p, "directory"));
    return read_rate(&r->file, p, "file");
}

static fm_status wrong_matrix(const place *p, const char *key, int n)
{
    return fm_fail(FM_E_FORMAT, "%s: %s%s: expected %d rows of %d numbers from 0 on", p->file,
                   p->scope, key, n, n);
}

/* `offset`: which member of a link the matrix is. */
static fm_status read_matrix(fm_rates_link *out, int n_rank, const place *p, const char *key,
                             size_t offset)
{
    const json_t *rows = json_object_get(p->o, key);
    const size_t  n    = (size_t)n_rank;
    if (json_array_size(rows) != n) return wrong_matrix(p, key, n_rank);
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        if (json_array_size(row) != n) return wrong_matrix(p, key, n_rank);
        for (size_t j = 0; j < n; j++) {
            const json_t *v = json_array_get(row, j);
            if (!json_is_number(v) || !(json_number_value(v) >= 0))
                return wrong_matrix(p, key, n_rank);
            *(double *)((char *)&out[i * n + j] + offset) = json_number_value(v);
        }
    }
    return FM_OK;
}

static fm_status read_links(fm_rates_links *l, const place *p, const char *key)
{
    place in;
    FM_TRY(enter(&in, p, key));
    if (!in.o) return FM_OK;
    FM_TRY(read_rate(&l->latency, &in, "latency"));
    return read_rate(&l->bandwidth, &in, "bandwidth");
}

static fm_status read_both(fm_rates_link *out, int n_rank, const place *p, const char *key)
{
    place in;
    FM_TRY(enter(&in, p, key));
    if (!in.o) return FM_OK;
    FM_TRY(read_matrix(out, n_rank, &in, "latency", offsetof(fm_rates_link, latency)));
    return read_matrix(out, n_rank, &in, "bandwidth", offsetof(fm_rates_link, bandwidth));
}

static fm_status read_all_links(fm_rates *r, const place *p)
{
    FM_TRY(read_both(r->link, r->n_rank, p, "link"));
    FM_TRY(read_links(&r->near, p, "near"));
    FM_TRY(read_links(&r->far, p, "far"));
    FM_TRY(read_rate(&r->all_to_all, p, "all_to_all"));
    FM_TRY(read_both(r->gpu_link, r->n_rank, p, "gpu_link"));
    FM_TRY(read_links(&r->gpu_near, p, "gpu_near"));
    FM_TRY(read_links(&r->gpu_far, p, "gpu_far"));
    return read_rate(&r->gpu_all_to_all, p, "gpu_all_to_all");
}

static fm_status read_members(fm_rates *r, const place *p, const json_t *ranks)
{
    place in;
    FM_TRY(read_text(r->made, sizeof r->made, p, "made"));
    FM_TRY(read_text(r->version, sizeof r->version, p, "version"));
    for (int i = 0; i < r->n_rank; i++) {
        FM_TRY(enter_item(&in, p, "rank", ranks, i));
        FM_TRY(read_rank(&r->rank[i], &in));
    }
    return read_all_links(r, p);
}

static fm_status read_all(fm_rates *out, const place *p)
{
    const json_t *ranks;
    int64_t       version = 0;
    fm_rates      r       = {0};
    if (!json_is_object(p->o) || !json_object_get(p->o, "rates_version"))
        return fm_fail(FM_E_FORMAT, "%s is no file of rates; fathom doctor --rates FILE writes one",
                       p->file);
    FM_TRY(fm_json_int(&version, p->o, "rates_version", 1, FM_RATES_VERSION, at(p)));
    FM_TRY(find_array(&ranks, p, "rank", FM_RATES_MAX_RANK));
    if (json_array_size(ranks) == 0) return fm_fail(FM_E_FORMAT, "%s: rank is empty", p->file);
    const int has_link = json_object_get(p->o, "link") != NULL;
    const int has_gpu  = json_object_get(p->o, "gpu_link") != NULL;
    FM_TRY(fm_rates_init(&r, (int)json_array_size(ranks), has_link, has_gpu));
    const fm_status rc = read_members(&r, p, ranks);
    if (rc == FM_OK)
        *out = r;
    else
        fm_rates_fini(&r);
    return rc;
}

fm_status fm_rates_parse(fm_rates *out, const char *text, size_t len, const char *name)
{
    json_t *o = NULL;
    FM_TRY(fm_json_parse(&o, text, len, name));
    const fm_status rc = read_all(out, &(place){.o = o, .file = name});
    json_decref(o);
    return rc;
}

fm_status fm_rates_load(fm_rates *out, const char *path)
{
    json_t *o = NULL;
    FM_TRY(fm_json_load(&o, path));
    const fm_status rc = read_all(out, &(place){.o = o, .file = path});
    json_decref(o);
    return rc;
}
