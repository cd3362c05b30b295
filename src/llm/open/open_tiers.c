/* SPDX-License-Identifier: Apache-2.0 */
/* Opening an engine: tiers of the KV cache below the pool. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "device/host.h"
#include "llm/load/checkpoint_print.h"
#include "llm/load/config_read.h"
#include "llm/open/agree.h"
#include "llm/open/open_internal.h"

enum {
    MIB          = 1 << 20,
    SLOT_BYTES   = 128 * MIB,
    BUFFER_BYTES = 64 * MIB,
    HOST_IN      = 16 * MIB,  /* before a step while others decode: the CPU copies them itself, */
    DEVICE_IN    = 256 * MIB, /* a GPU beside the pass */
    DEVICE_OUT   = 512 * MIB,
    STAGE_BYTES  = 64 * MIB, /* on the device, for pages that cross the link together */
    CHECKS       = 1024,     /* of pages in host memory, at once */
    MOST_STAGED  = 128,
    LEAST        = 16,
    MOST         = 2048,
    MOST_HOST    = 1 << 22,
};

/* --- options --------------------------------------------------------------- */

static fm_status read_policy(fm_kv_saving *out, const char *word)
{
    static const char *const name[] = {[FM_KV_SAVE_AT_ONCE]     = "write_through",
                                       [FM_KV_SAVE_SECOND_USE]  = "write_through_selective",
                                       [FM_KV_SAVE_AT_EVICTION] = "write_back"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (!strcmp(word, name[i])) {
            *out = (fm_kv_saving)i;
            return FM_OK;
        }
    return fm_fail(FM_E_ARG,
                   "--hicache-write-policy %s is none of write_through, "
                   "write_through_selective, write_back",
                   word);
}

static int is_given(const char *word) { return word && *word; }

/* A directory is for files: it implies the one back end that has one. */
static int wants_files(const fm_options *o)
{
    return is_given(o->hicache_storage_backend) || is_given(o->hicache_storage_dir);
}

fm_status fm__open_check_tiers(opening *p)
{
    const fm_options *o = p->o;
    if (!o->enable_hierarchical_cache && !wants_files(o)) return FM_OK;
    FM_TRY(read_policy(&p->e->tiers.saving, o->hicache_write_policy));
    if (o->disable_radix_cache)
        return fm_fail(FM_E_ARG, "--disable-radix-cache: then there are no prefixes that "
                                 "--enable-hierarchical-cache could keep");
    if (!wants_files(o)) return FM_OK;
    if (is_given(o->hicache_storage_backend) && strcmp(o->hicache_storage_backend, "file"))
        return fm_fail(FM_E_ARG, "--hicache-storage-backend %s is not file",
                       o->hicache_storage_backend);
    if (!is_given(o->hicache_storage_dir))
        return fm_fail(FM_E_ARG, "--hicache-storage-backend file needs --hicache-storage-dir DIR");
    return FM_OK;
}

/* On the CPU the pool is host memory already: there files alone are below it. */
static int wants_tiers(const opening *p)
{
    return wants_files(p->o) || (p->o->enable_hierarchical_cache && !p->e->backend->is_host);
}

int fm__open_n_load(const opening *p) { return wants_tiers(p) ? FM_TIER_POLICY_LOADS : 0; }

/* --- what pages are of ----------------------------------------------------- */

static fm_page_format format_of(const opening *p)
{
    return (fm_page_format){.planes = p->e->limits.planes, .page_size = p->e->limits.page_size};
}

static void put_planes(fm_str *out, const fm_planes *planes)
{
    static const char *const name[FM_N_PLANE_KIND] = {[FM_PLANE_LATENT]      = "latent",
                                                      [FM_PLANE_DRAFT]       = "draft",
                                                      [FM_PLANE_SCALE]       = "scale",
                                                      [FM_PLANE_DRAFT_SCALE] = "draft_scale"};
    fm_str_puts(out, "planes=");
    for (int i = 0; i < planes->n; i++) {
        const fm_plane *q = &planes->plane[i];
        fm_str_printf(out, "%s%s %dx%dx%zu", i ? " + " : "", name[q->kind], q->n_layer, q->width,
                      fm_dtype_bytes(q->dtype));
    }
    fm_str_puts(out, "\n");
}

static void put_hash(fm_str *out, const char *name, fm_hash128 h)
{
    fm_str_printf(out, "%s=%016llx%016llx\n", name, (unsigned long long)h.hi,
                  (unsigned long long)h.lo);
}

static fm_status put_config(fm_str *out, const fm_model_path *path)
{
    char           name[4200];
    fm_mapped_file f = {0};
    if (path->builtin) {
        put_hash(out, "config", fm_hash_bytes(path->builtin, strlen(path->builtin), 0));
        return FM_OK;
    }
    snprintf(name, sizeof name, "%s/config.json", path->dir);
    FM_TRY(fm_mapped_file_open(&f, name));
    put_hash(out, "config", fm_hash_bytes(f.data, f.size, 0));
    fm_mapped_file_close(&f);
    return FM_OK;
}

/* What the weights follow from. */
static fm_status put_weights(fm_str *out, const opening *p)
{
    fm_hash128 print = {0, 0};
    if (p->dummy) {
        fm_str_printf(out, "seed=%lld\n", (long long)p->o->seed);
        return FM_OK;
    }
    FM_TRY(fm_checkpoint_print(&print, p->path.dir, FM_PRINT_WHOLE_BYTES));
    put_hash(out, "checkpoint", print);
    return FM_OK;
}

/* Everything but its tokens that decides the bits of a page, one fact a line: a page is read only
 * by an engine that would compute the same bits. */
static fm_status describe(const opening *p, fm_str *out)
{
    const fm_engine *e = p->e;
    fm_str_printf(out, "fathom=%s\n", FM_VERSION);
    FM_TRY(put_config(out, &p->path));
    FM_TRY(put_weights(out, p));
    fm_str_puts(out, "override=");
    FM_TRY(fm_config_put_overrides(out, p->o->json_model_override_args));
    fm_str_printf(out, "\ndevice=%s %s\n", e->backend->name,
                  e->backend->is_host ? fm_isa_name(fm_cpu_isa()) : "");
    fm_str_printf(out, "dtype=%d\nfp8_activations=%d\ncache=%s\npage_size=%d\n", (int)p->act,
                  e->config.fp8_activations, fm_planes_type(&e->limits.planes),
                  e->limits.page_size);
    if (!e->backend->is_host) fm_str_printf(out, "split_tile=%d\n", e->config.split_tile);
    fm_str_printf(out, "layers=%d-%d\n", e->layout.shard.layer.begin, e->layout.shard.layer.end);
    put_planes(out, &e->limits.planes);
    fm_str_printf(out, "forms=%s\n", p->o->deterministic ? "prompt" : "any");
    return FM_OK;
}

/* --- memory ---------------------------------------------------------------- */

static int count_in(size_t bytes, size_t each)
{
    const size_t n = bytes / each;
    return n < LEAST ? LEAST : n > MOST ? MOST : (int)n;
}

static int in_parts(int n, int parts) /* that all have as many, at least one */
{
    return (n / parts > 0 ? n / parts : 1) * parts;
}

static int n_partition(const opening *p) { return p->e->limits.n_lane * p->e->layout.n_group; }

/* Few enough that they are numbered in the arguments of a kernel. */
int fm__open_n_staged(const opening *p)
{
    const fm_tiers *t = &p->e->tiers;
    if (!t->image_bytes || p->e->backend->is_host) return 0;
    const size_t n = STAGE_BYTES / t->image_bytes;
    return n < 1 ? 1 : n > MOST_STAGED ? MOST_STAGED : (int)n;
}

void fm__open_size_tiers(opening *p)
{
    fm_tiers            *t = &p->e->tiers;
    const fm_page_format f = format_of(p);
    if (!wants_tiers(p)) return;
    t->file_bytes  = fm_page_file_bytes(&f);
    t->image_bytes = fm_planes_page_bytes(&f.planes, f.page_size);
    t->most_in     = count_in(p->e->backend->is_host ? HOST_IN : DEVICE_IN, t->file_bytes);
    t->most_out    = p->e->backend->is_host ? 0 : count_in(DEVICE_OUT, t->file_bytes);
    if (wants_files(p->o)) {
        t->n_slot   = in_parts(count_in(SLOT_BYTES, t->file_bytes), n_partition(p));
        t->n_buffer = count_in(BUFFER_BYTES, t->file_bytes);
    }
    t->bytes           = (size_t)(t->n_slot + t->n_buffer) * t->file_bytes;
    t->n_check         = p->e->backend->is_host ? 0 : in_parts(CHECKS, n_partition(p));
    p->e->limits.n_staged = fm__open_n_staged(p);
    t->demotes         = p->o->hicache_debug_demote;
    t->costs.is_forced = t->demotes;
    t->writes = p->e->layout.shard.attn.index == 0; /* ranks of a group hold the same bytes */
}

size_t fm__open_main_memory(const opening *p)
{
    return fm_host_available() / (p->device.n_rank > 1 ? (size_t)p->device.n_rank : 1);
}

/* By the ratio, host memory for prefixes takes no more than three quarters of what is free, and as
 * many pages on every rank. */
fm_status fm__open_bound_host(opening *p)
{
    const fm_tiers *t = &p->e->tiers;
    if (!t->file_bytes || p->e->backend->is_host || p->o->hicache_size > 0) return FM_OK;
    p->most_host = 1 + (int64_t)(fm__open_main_memory(p) / 4 * 3 / t->file_bytes);
    FM_TRY(fm__agree_least(p->e->world, &p->most_host));
    const double wanted = p->o->hicache_ratio * p->e->plan.n_page;
    if (wanted > (double)p->most_host)
        FM_WARN("engine", "--hicache-ratio %g would take %.1f GB of main memory: %.1f GB are used, "
                "three quarters of what is free", p->o->hicache_ratio, wanted * (double)t->file_bytes * 1e-9,
                (double)p->most_host * (double)t->file_bytes * 1e-9);
    return FM_OK;
}

void fm__open_size_host(opening *p)
{
    fm_tiers         *t = &p->e->tiers;
    const fm_options *o = p->o;
    if (!t->file_bytes || p->e->backend->is_host) return;
    double pages = o->hicache_size > 0 ? o->hicache_size * 1e9 / (double)t->file_bytes
                                       : o->hicache_ratio * p->e->plan.n_page;
    if (p->most_host && pages > (double)p->most_host) pages = (double)p->most_host;
    t->n_host          = in_parts(pages < MOST_HOST ? (int)pages : MOST_HOST, n_partition(p));
    t->bytes           = (size_t)(t->n_slot + t->n_buffer + t->n_host) * t->file_bytes;
}

static fm_status open_store(opening *p, const fm_str *facts)
{
    const fm_options *o     = p->o;
    fm_tiers         *t     = &p->e->tiers;
    fm_str            about = {0};
    fm_store_options  s     = {.dir        = o->hicache_storage_dir,
                               .format     = format_of(p),
                               .limit      = o->hicache_storage_size * 0x1p30,
                               .n_slot     = t->n_slot,
                               .n_buffer   = t->n_buffer,
                               .memory     = t->memory,
                               .fault_rate = o->hicache_debug_faults};
    s.format.model          = fm_hash_bytes(facts->text, facts->len, 0);
    fm_str_printf(&about, "model=%s\n%s", p->path.name, facts->text);
    s.about            = about.text;
    const fm_status rc = fm_store_open(&t->store, &s);
    fm_str_fini(&about);
    return rc;
}

static fm_status open_files(opening *p)
{
    fm_tiers *t     = &p->e->tiers;
    fm_str    facts = {0};
    if (!wants_files(p->o)) return FM_OK;
    fm_status rc = describe(p, &facts);
    if (rc == FM_OK) rc = open_store(p, &facts);
    fm_str_fini(&facts);
    if (rc != FM_OK) return rc;
    const fm_store_stats st = fm_store_get_stats(t->store);
    FM_INFO("engine", "pages below the pool: %lld in %s, listed in %.3f s", (long long)st.n_listed,
            p->o->hicache_storage_dir, st.scan_seconds);
    return FM_OK;
}

static fm_status open_sums(opening *p)
{
    fm_tiers                  *t = &p->e->tiers;
    const size_t               before = (size_t)(t->n_slot + t->n_buffer) * t->file_bytes;
    const fm_host_sums_options o = {.image       = fm_page_file_image(t->memory + before),
                                    .stride      = t->file_bytes,
                                    .image_bytes = t->image_bytes,
                                    .n_slot      = t->n_host,
                                    .n_check     = t->n_check,
                                    .fault_rate  = p->o->hicache_debug_faults};
    return t->n_host ? fm_host_sums_create(&t->sums, &o) : FM_OK;
}

static fm_status open_books(opening *p)
{
    fm_tiers    *t      = &p->e->tiers;
    const size_t n_slot = (size_t)t->n_slot, n_host = (size_t)t->n_host;
    t->copy             = calloc((size_t)fm__tiers_max_moves(p->e), sizeof *t->copy);
    t->copied_in        = calloc(n_slot + n_host + 1, sizeof *t->copied_in);
    t->held             = calloc(n_slot + 1, sizeof *t->held);
    t->unsummed         = calloc(n_host + 1, sizeof *t->unsummed);
    t->is_unsummed      = calloc(n_host + 1, sizeof *t->is_unsummed);
    if (!t->copy || !t->copied_in || !t->held || !t->unsummed || !t->is_unsummed)
        return fm_fail(FM_E_OOM, "moves of pages");
    return open_sums(p);
}

fm_status fm__open_tiers(opening *p)
{
    fm_engine *e = p->e;
    fm_tiers  *t = &e->tiers;
    if (!t->file_bytes) return FM_OK;
    if (!e->run->ops->copy_pages)
        return fm_fail(FM_E_NOSUP, "--enable-hierarchical-cache: not with --device %s",
                       e->backend->name);
    FM_TRY(fm__tiers_meet(e));
    FM_TRY(e->backend->is_host
               ? fm_host_alloc((void **)&t->memory, t->bytes, "pages on their way to files")
               : e->backend->alloc_pinned((void **)&t->memory, t->bytes, "--hicache-size"));
    FM_TRY(open_books(p));
    if (t->n_host)
        FM_INFO("engine", "host memory for prefixes: %d pages, %.2f GB", t->n_host,
                (double)t->n_host * (double)t->file_bytes * 1e-9);
    FM_TRY(fm__tiers_time_copies(e));
    return open_files(p);
}

/* Memory in which a thread hangs is left to the end of the process. */
void fm__open_close_tiers(fm_engine *e)
{
    fm_tiers *t    = &e->tiers;
    uint32_t  made = 0;
    fm__tiers_part(e);
    if (t->memory && e->run) (void)fm_run_copied(e->run, 1, &made);
    fm_host_sums_destroy(t->sums);
    if (fm_store_close(t->store)) {
        if (t->memory && !e->backend->is_host)
            e->backend->free_pinned(t->memory);
        else
            fm_host_free(t->memory, t->bytes);
    }
    free(t->copy);
    free(t->copied_in);
    free(t->held);
    free(t->unsummed);
    free(t->is_unsummed);
}
