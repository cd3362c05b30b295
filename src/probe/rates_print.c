/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "json/print.h"
#include "probe/rates.h"

static void put_rate(json_t *to, const char *key, fm_rate r)
{
    if (r.n == 0) return;
    json_object_set_new(to, key,
                        json_pack("{s:f,s:f,s:f,s:i}", "median", r.median, "spread", r.spread,
                                  "best", r.best, "repeats", r.n));
}

static void put_text(json_t *to, const char *key, const char *text)
{
    json_object_set_new(to, key, json_stringn(text, strlen(text)));
}

static void put_products(json_t *to, const fm_rate product[FM_N_FACTOR])
{
    json_t *all = json_object();
    for (int f = 0; f < FM_N_FACTOR; f++) put_rate(all, fm_factor_name((fm_factor)f), product[f]);
    json_object_set_new(to, "product", all);
}

static void put_levels(json_t *to, const fm_rates_rank *r)
{
    json_t *all = json_object();
    for (int i = 0; i < FM_RATES_LEVELS; i++) put_rate(all, fm_isa_name((fm_isa)i), r->level[i]);
    json_object_set_new(to, "level", all);
}

static json_t *nodes_of(const fm_rates_rank *r)
{
    json_t *all = json_array();
    for (int i = 0; i < r->n_node; i++) {
        json_t *node = json_pack("{s:i,s:i}", "id", r->node[i].id, "n_core", r->node[i].n_core);
        put_rate(node, "read", r->node[i].read);
        put_rate(node, "product", r->node[i].product);
        json_array_append_new(all, node);
    }
    return all;
}

static json_t *gpu_of(const fm_rates_gpu *g)
{
    json_t *o = json_object();
    put_text(o, "name", g->name);
    json_object_set_new(o, "memory", json_integer((json_int_t)g->memory));
    put_rate(o, "read", g->read);
    put_products(o, g->product);
    put_rate(o, "upload", g->upload);
    put_rate(o, "download", g->download);
    return o;
}

static json_t *rank_of(const fm_rates_rank *r)
{
    json_t *o = json_object();
    put_text(o, "host", r->host);
    put_text(o, "cpu", r->cpu);
    put_text(o, "isa", r->isa);
    json_object_set_new(o, "n_core", json_integer(r->n_core));
    json_object_set_new(o, "n_thread", json_integer(r->n_thread));
    json_object_set_new(o, "memory", json_integer((json_int_t)r->memory));
    put_rate(o, "read", r->read);
    json_object_set_new(o, "node", nodes_of(r));
    put_products(o, r->product);
    put_levels(o, r);
    if (r->gpu.name[0]) json_object_set_new(o, "gpu", gpu_of(&r->gpu));
    if (r->directory[0]) put_text(o, "directory", r->directory);
    put_rate(o, "file", r->file);
    return o;
}

/* Rows of an n x n matrix; the diagonal is 0. */
static json_t *matrix_of(const fm_rates *r, const fm_rates_link *matrix, size_t offset)
{
    json_t *rows = json_array();
    for (int i = 0; i < r->n_rank; i++) {
        json_t *row = json_array();
        for (int j = 0; j < r->n_rank; j++) {
            const char *link = (const char *)&matrix[(size_t)i * (size_t)r->n_rank + (size_t)j];
            json_array_append_new(row, json_real(*(const double *)(link + offset)));
        }
        json_array_append_new(rows, row);
    }
    return rows;
}

static void put_links(json_t *to, const char *key, fm_rates_links l)
{
    if (l.latency.n == 0 && l.bandwidth.n == 0) return;
    json_t *o = json_object();
    put_rate(o, "latency", l.latency);
    put_rate(o, "bandwidth", l.bandwidth);
    json_object_set_new(to, key, o);
}

static void put_matrix(json_t *to, const char *key, const fm_rates *r, const fm_rates_link *m)
{
    if (!m) return;
    json_object_set_new(to, key,
                        json_pack("{s:o,s:o}", "latency",
                                  matrix_of(r, m, offsetof(fm_rates_link, latency)), "bandwidth",
                                  matrix_of(r, m, offsetof(fm_rates_link, bandwidth))));
}

static json_t *json_of(const fm_rates *r)
{
    json_t *o = json_pack("{s:i}", "rates_version", FM_RATES_VERSION), *rank = json_array();
    put_text(o, "made", r->made);
    put_text(o, "version", r->version);
    for (int i = 0; i < r->n_rank; i++) json_array_append_new(rank, rank_of(&r->rank[i]));
    json_object_set_new(o, "rank", rank);
    put_matrix(o, "link", r, r->link);
    put_links(o, "near", r->near);
    put_links(o, "far", r->far);
    put_rate(o, "all_to_all", r->all_to_all);
    put_matrix(o, "gpu_link", r, r->gpu_link);
    put_links(o, "gpu_near", r->gpu_near);
    put_links(o, "gpu_far", r->gpu_far);
    put_rate(o, "gpu_all_to_all", r->gpu_all_to_all);
    return o;
}

void fm_rates_print(const fm_rates *r, fm_str *out) { fm_json_print(out, json_of(r)); }
