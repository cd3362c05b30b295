/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a loaded engine: find, divide, plan, load, allocate. After each of these the
 * ranks of a job agree whether all of them succeeded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "llm/open/agree.h"
#include "llm/open/open_internal.h"
#include "llm/engine/replicas.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"

/* Sequences in one step by default; a GPU is faster with more of
 * them, as long as their workspace leaves most of its memory to the cache. */
enum { RUNNING_ON_CPU = 256, RUNNING_ON_GPU = 1024, WORKSPACE_PART = 8 };

fm_status fm__open_together(fm_engine *e, fm_status rc)
{
    if (rc != FM_OK && fm_world_comm(e->world)->n_rank > 1) fm_world_abort(e->world, "%s", fm_why());
    return rc;
}

/* --- find ------------------------------------------------------------------ */

fm_status fm__open_check_words(opening *p)
{
    const fm_options *o = p->o;
    if (!strcmp(o->dtype, "float32") || !strcmp(o->dtype, "float")) p->act = FM_F32;
    else if (!strcmp(o->dtype, "auto") || !strcmp(o->dtype, "bfloat16")) p->act = FM_BF16;
    else return fm_fail(FM_E_ARG, "--dtype %s is none of auto, bfloat16, float32", o->dtype);
    if (!fm__is_one_of(o->kv_cache_dtype, "auto bf16 bfloat16 fp8_e4m3"))
        return fm_fail(FM_E_ARG, "--kv-cache-dtype %s is none of auto, bfloat16, fp8_e4m3",
                       o->kv_cache_dtype);
    if (!fm__is_one_of(o->fp8_activations, "auto on off"))
        return fm_fail(FM_E_ARG, "--fp8-activations %s is none of auto, on, off", o->fp8_activations);
    const int64_t tile = o->attention_split_tile_size;
    if (tile & (tile - 1))
        return fm_fail(FM_E_ARG, "--attention-split-tile-size %lld is none of 512, 1024, 2048, 4096",
                       (long long)tile);
    if (!strcmp(o->load_format, "dummy")) p->dummy = 1;
    else if (strcmp(o->load_format, "auto") && strcmp(o->load_format, "safetensors"))
        return fm_fail(FM_E_ARG, "--load-format %s is none of auto, safetensors, dummy",
                       o->load_format);
    FM_TRY(fm__open_check_drafts(p));
    FM_TRY(fm__open_check_tiers(p));
    if (!strcmp(o->schedule_policy, "lpm")) p->sched.policy = FM_POLICY_LPM;
    else if (strcmp(o->schedule_policy, "fcfs"))
        return fm_fail(FM_E_ARG, "--schedule-policy %s is none of fcfs, lpm", o->schedule_policy);
    return FM_OK;
}

/* In the reference arithmetic weights are F32, and so is what they are multiplied with. */
static fm_status choose_activations(opening *p)
{
    fm_model_config *c  = &p->e->config;
    const int        on = !strcmp(p->o->fp8_activations, "on");
    if (on && (!c->fp8 || p->act != FM_BF16))
        return fm_fail(FM_E_ARG, "--fp8-activations on: the model's weights are not FP8%s",
                       c->fp8 ? " with --dtype float32" : "");
    if (on) c->fp8_activations = 1;
    if (!strcmp(p->o->fp8_activations, "off") || p->act != FM_BF16) c->fp8_activations = 0;
    return FM_OK;
}

fm_status fm__open_read_config(opening *p)
{
    const char *asked = p->o->model_path ? p->o->model_path : "r1-mini";
    FM_TRY(fm_model_path_find(&p->path, asked));
    if (p->path.builtin) p->dummy = 1; /* a shape has no weights */
    FM_TRY(fm_config_of(&p->e->config, &p->path, p->o->json_model_override_args));
    FM_TRY(choose_activations(p));
    p->e->config.split_tile = (int)p->o->attention_split_tile_size;
    return fm_model_find(&p->e->model, &p->e->config);
}

fm_status fm__open_make_layout(opening *p, int rank)
{
    const fm_options   *o    = p->o;
    const fm_rank_sizes size = {.tp           = (int)o->tp_size,
                                .pp           = (int)o->pp_size,
                                .dp           = (int)o->dp_size,
                                .ep           = (int)o->ep_size,
                                .dp_attention = o->enable_dp_attention};
    return fm_layout_make(&p->e->layout, &size, &p->e->config, rank, p->n_rank);
}

/* --device auto: a GPU where each rank of the job can have one. */
static fm_status look_for_gpu(opening *p)
{
    int       index = 0;
    const int n     = fm_world_on_host(p->e->world, &index);
    int64_t   has   = strcmp(p->o->device, "auto") == 0;
    if (has && fm_backend_suits_gpu(p->act, n) != FM_OK) {
        FM_INFO("engine", "device=cpu, no GPU: %s", fm_why());
        has = 0;
    }
    FM_TRY(fm__agree_least(p->e->world, &has));
    p->has_gpu = (int)has;
    return FM_OK;
}

/* What follows from the kind of device alone. */
fm_status fm__open_suit_device(opening *p)
{
    const fm_options *o = p->o;
    fm_engine        *e = p->e;
    e->max_running      = o->max_running_requests ? (int)o->max_running_requests
                          : e->backend->is_host   ? RUNNING_ON_CPU
                                                  : RUNNING_ON_GPU;
    p->cache            = strcmp(o->kv_cache_dtype, "fp8_e4m3") ? p->act : FM_FP8;
    if (p->cache == FM_FP8 && e->backend->is_host)
        return fm_fail(FM_E_NOSUP, "--kv-cache-dtype fp8_e4m3: on the CPU the cache is bfloat16");
    return FM_OK;
}

/* Ranks of a host take its GPUs in turn. */
static fm_status find_device(opening *p)
{
    const fm_options *o     = p->o;
    fm_engine        *e     = p->e;
    int               index = 0;
    const int         n     = fm_world_on_host(e->world, &index);
    FM_TRY(fm_backend_find(&e->backend, o->device, p->act, p->has_gpu, o->shadow));
    FM_TRY(fm__open_suit_device(p));
    p->device = (fm_backend_options){.device    = index,
                                     .n_rank    = n,
                                     .no_graphs = o->disable_cuda_graph,
                                     .beside    = &e->beside.weights};
    if (e->backend->also && p->n_rank > 1)
        return fm_fail(FM_E_NOSUP, "--shadow compares one rank: %d were started", p->n_rank);
    FM_TRY(e->backend->open(&p->device, &p->memory));
    if (e->backend->also) FM_TRY(e->backend->also->open(&p->device, &p->beside));
    FM_INFO("engine", "device=%s, %s", e->backend->name, p->memory.where);
    return FM_OK;
}

static fm_status find(opening *p)
{
    FM_TRY(find_device(p));
    FM_TRY(fm__open_read_config(p));
    return fm__open_make_layout(p, fm_world_comm(p->e->world)->rank);
}

/* --- divide ---------------------------------------------------------------- */

fm_status fm__open_source(opening *p)
{
    fm_engine *e = p->e;
    if (!e->source) /* else several plans share one (foresee.h) */
        FM_TRY(p->dummy ? fm_source_open_dummy(&e->source, &e->config, (uint64_t)p->o->seed)
                        : fm_source_open_files(&e->source, p->path.dir));
    p->types = (fm_source_types){e->source, p->act};
    return FM_OK;
}

const char *fm_engine_tokenizer_dir(const fm_options *o, const fm_model_path *where)
{
    if (o->skip_tokenizer_init) return NULL;
    if (o->tokenizer_path) return *o->tokenizer_path ? o->tokenizer_path : NULL;
    return where->dir[0] && fm_tokenizer_exists(where->dir) ? where->dir : NULL;
}

static fm_status open_tokenizer(opening *p)
{
    const char *dir = fm_engine_tokenizer_dir(p->o, &p->path);
    if (!dir || !p->e->layout.is_leader) return FM_OK;
    FM_TRY(fm_tokenizer_open(&p->e->tokenizer, dir));
    FM_TRY(fm_tokenizer_scratch_create(&p->e->scratch, p->e->tokenizer));
    return fm_grammars_create(&p->e->grammars, p->e->tokenizer, p->e->config.vocab, p->e->config.eos,
                              p->e->config.n_eos);
}

static fm_status start_threads(opening *p)
{
    fm_engine *e     = p->e;
    int        index = 0;
    const int  n     = fm_world_on_cpus(e->world, &index);
    const char *bind = p->o->cpu_bind ? p->o->cpu_bind : p->hooks ? "auto" : "none";
    FM_TRY(fm_threads_create_part(&e->threads, bind, (int)p->o->threads, index, n));
    fm_threads_pin(e->threads);
    p->n_thread = fm_threads_count(e->threads);
    return FM_OK;
}

/* Whether links may multiply with a copy of the head in bytes.  Not where a CPU's and a GPU's links
 * are compared; nor where the head is smaller than that anyway.  Unknown until weights are measured. */
static int keeps_draft_head(const fm_engine *e)
{
    const fm_matrix *head = &e->weights.head;
    return e->draft.is_chain && !e->backend->also && head->n && head->dtype == FM_BF16;
}

/* Seats divide the running requests, groups the prompt tokens of a step. */
fm_status fm__open_set_limits(opening *p)
{
    const fm_options *o       = p->o;
    fm_engine        *e       = p->e;
    const int         most    = e->config.max_position;
    const int         n_group = e->layout.n_group, n_lane = e->layout.size.pp;
    fm_sched_options *s       = &p->sched;
    s->max_context = o->context_length && o->context_length < most ? (int)o->context_length : most;
    s->max_running = fm__part_of(e->max_running, n_lane * n_group);
    s->chunk       = o->chunked_prefill_size > 0 ? fm__part_of(o->chunked_prefill_size, n_group) : 0;
    s->max_prefill = fm__part_of(o->max_prefill_tokens, n_group);
    s->page_size   = (int)o->page_size;
    s->max_draft   = e->draft.most;
    s->keeps_states = e->draft.is_chain;
    s->other_leases = 1 + fm__open_n_load(p); /* one for scoring */
    s->n_page      = 1; /* until the plan says how many */
    s->deterministic    = o->deterministic;
    s->conservativeness = o->schedule_conservativeness;
    s->n_eos            = e->config.n_eos;
    for (int i = 0; i < e->config.n_eos; i++) s->eos[i] = e->config.eos[i];
    e->limits = (fm_run_limits){.max_rows    = fm_sched_max_rows(s),
                                .max_out     = fm_sched_max_out(s),
                                .max_context = s->max_context,
                                .page_size   = s->page_size,
                                .n_thread    = p->n_thread,
                                .n_lane      = n_lane,
                                .n_kept      = n_lane * fm_sched_n_kept(s),
                                .max_draft   = e->draft.is_chain ? e->draft.most : 0,
                                .draft_head  = keeps_draft_head(e),
                                .n_staged    = fm__open_n_staged(p),
                                .team        = e->threads};
    fm_model_declare(e->model, &e->config, &e->layout.shard, p->cache, &e->limits);
    return e->limits.max_rows > 0 ? FM_OK : FM_E_ARG; /* the scheduler said why */
}

/* What layers cost is timed by rank 0, so that all cut them alike. */
static fm_status price_layers(opening *p)
{
    fm_engine    *e       = p->e;
    const int     seats   = e->layout.size.pp * e->layout.n_group;
    fm_status     rc      = FM_OK;
    p->price              = fm__prices_of_bytes();
    if (e->layout.size.pp == 1 || p->o->pp_layer_partition || !e->backend->is_host) return FM_OK;
    if (fm_world_comm(e->world)->rank == 0)
        rc = fm__prices_measure(&p->price, &e->config, p->act, fm__part_of(e->max_running, seats));
    FM_TRY(fm__agree_all_well(e->world, rc));
    return fm_broadcast(fm_world_comm(e->world), &p->price, sizeof p->price, 0);
}

fm_status fm__open_cut_stages(opening *p)
{
    fm_engine *e  = p->e;
    const int  pp = e->layout.size.pp;
    fm_shard   s  = e->layout.shard;
    if (!(p->stage = calloc((size_t)pp, sizeof *p->stage))) return fm_fail(FM_E_OOM, "stages");
    s.attn.index = s.group.index = s.expert.index = s.channel.index = 0;
    const fm__layer_costs costs = {&e->config, &s, &p->types, &p->price, p->sched.max_running};
    if (p->o->pp_layer_partition)
        FM_TRY(fm_layout_read_layers(p->stage, pp, p->o->pp_layer_partition, e->config.n_layer));
    else if (pp > 1)
        FM_TRY(fm__cut_by_cost(p->stage, pp, &costs));
    else
        p->stage[0] = e->layout.shard.layer;
    e->layout.shard.layer = p->stage[e->layout.stage];
    fm_model_declare(e->model, &e->config, &e->layout.shard, p->cache, &e->limits);
    return FM_OK;
}

fm_status fm__open_lay_out(opening *p, fm_weights *w, fm_packing packing, fm_slab *slab)
{
    fm_engine            *e    = p->e;
    const fm_weights_want want = {.shard    = &e->layout.shard,
                                  .packing  = packing,
                                  .act      = p->act,
                                  .n_mtp    = e->layout.shard.n_mtp,
                                  .dtype_of = fm_source_dtype_of,
                                  .ctx      = &p->types};
    return e->model->weights(w, &e->config, &want, slab);
}

/* How many bytes the weights take, in each memory they go to. */
fm_status fm__open_measure_weights(opening *p)
{
    fm_engine        *e       = p->e;
    const fm_backend *also    = e->backend->also;
    fm_slab           measure = {0};
    FM_TRY(fm__open_lay_out(p, &e->weights, e->backend->packing, &measure));
    FM_TRY(fm_weights_check(&e->weights, e->source));
    e->slab.bytes = measure.used;
    measure       = (fm_slab){0};
    if (also) FM_TRY(fm__open_lay_out(p, &e->beside.weights, also->packing, &measure));
    e->beside.bytes      = measure.used;
    e->limits.draft_head = keeps_draft_head(e);
    return FM_OK;
}

static fm_status divide(opening *p)
{
    FM_TRY(open_tokenizer(p));
    FM_TRY(fm__open_source(p));
    FM_TRY(start_threads(p));
    FM_TRY(fm__open_drafts(p));
    FM_TRY(fm__open_set_limits(p));
    FM_TRY(fm__open_cut_stages(p));
    fm__open_size_tiers(p);
    return fm__open_measure_weights(p);
}

static int is_crowded(const opening *p)
{
    const fm_engine *e     = p->e;
    const size_t     taken = e->slab.bytes + p->memory.reserve;
    const size_t     left  = p->memory.available > taken ? p->memory.available - taken : 0;
    const size_t     need  = e->backend->workspace(&e->config, &e->layout.shard, p->act, &e->limits);
    return need > left / WORKSPACE_PART;
}

/* A default is lowered until it suits this rank's memory. */
fm_status fm__open_lower_running(opening *p)
{
    fm_engine *e = p->e;
    if (p->o->max_running_requests || e->backend->is_host) return FM_OK;
    while (e->max_running > RUNNING_ON_CPU && is_crowded(p)) {
        e->max_running /= 2;
        FM_TRY(fm__open_set_limits(p));
    }
    return FM_OK;
}

/* And that of every other rank. */
static fm_status fit_running(opening *p)
{
    fm_engine *e = p->e;
    if (p->o->max_running_requests || e->backend->is_host) return FM_OK;
    FM_TRY(fm__open_lower_running(p));
    int64_t least = e->max_running;
    FM_TRY(fm__agree_least(e->world, &least));
    e->max_running = (int)least;
    return fm__open_set_limits(p);
}

/* --- allocate -------------------------------------------------------------- */

/* A byte that is no part of a character becomes U+FFFD, three bytes, and so does
 * the unfinished character before the token. */
static void reserve_text(fm_engine *e)
{
    enum { REPLACEMENT = 3 };
    size_t longest = 0;
    if (!e->tokenizer) return;
    for (int id = 0; id < e->config.vocab; id++) {
        size_t n = 0;
        fm_token_bytes(e->tokenizer, id, &n);
        if (n > longest) longest = n;
    }
    e->token_text = REPLACEMENT * (longest + 2);
    fm_str_reserve(&e->fresh, e->token_text);
}

static fm_status build_leader(opening *p)
{
    fm_engine   *e = p->e;
    const size_t n = (size_t)e->limits.max_out * (size_t)e->layout.n_group;
    FM_TRY(fm__partitions_create(e, p->n_lane, &p->sched, !p->o->disable_radix_cache));
    e->sampler = calloc((size_t)e->limits.n_thread, sizeof *e->sampler);
    e->sampled = calloc(n, sizeof *e->sampled);
    e->token   = calloc(n, sizeof *e->token);
    e->draw    = calloc(n, sizeof *e->draw);
    if (!e->sampler || !e->sampled || !e->token || !e->draw) return fm_fail(FM_E_OOM, "engine");
    reserve_text(e);
    FM_TRY(fm__open_ngrams(p));
    for (int i = 0; i < e->limits.n_thread; i++)
        FM_TRY(fm_sampler_create(&e->sampler[i], e->config.vocab));
    e->overlaps = !p->o->disable_overlap_schedule && e->run->ops->sample;
    e->draft.can_rest = e->draft.is_chain && e->draft.is_adaptive && !e->run->ops->sample;
    if (!e->backend->is_host)
        FM_INFO("engine", "steps are planned ahead: %s",
                e->overlaps                ? "yes"
                : e->layout.size.pp > 1 ? "no, the lanes of a pipeline keep its stages busy"
                                        : "no");
    if (e->layout.n_replica == 1 || !fm_engine_is_leader(e)) return FM_OK;
    return fm__replicas_create(&e->replicas, e, p->o->world.comm_timeout);
}

static fm_status build_rooms(opening *p)
{
    fm_engine *e = p->e;
    FM_TRY(e->backend->create(&e->run, &e->weights, &e->limits, e->groups.ranks, &p->device));
    FM_TRY(fm__open_tiers(p));
    if (e->groups.ranks.replica->n_rank > 1) FM_TRY(fm_courier_create(&e->courier, &p->courier));
    FM_TRY(fm__open_chain(p));
    return e->layout.is_leader ? build_leader(p) : FM_OK;
}

static fm_status agree(opening *p)
{
    const fm_layout *l = &p->e->layout;
    FM_TRY(fm__agree_start(p->e->world, p->o, &p->path));
    if (l->n_replica > 1)
        FM_TRY(fm__agree_tokenizer(p->e->world, fm_engine_tokenizer_dir(p->o, &p->path),
                                   l->is_leader));
    return fm__agree_checkpoint(p->e->world, &p->path, &p->checkpoint);
}

static fm_status open_all(opening *p)
{
    fm_engine *e = p->e;
    e->seed      = (uint64_t)p->o->seed;
    if (!e->borrows_world) FM_TRY(fm_world_open(&e->world, &p->o->world));
    p->n_rank = fm_world_comm(e->world)->n_rank;
    FM_TRY(fm_broadcast(fm_world_comm(e->world), &e->reports, sizeof e->reports, 0));
    fm_world_doing(e->world, "opening the model");
    FM_TRY(fm__agree_all_well(e->world, fm__open_check_words(p)));
    FM_TRY(look_for_gpu(p));
    FM_TRY(fm__agree_all_well(e->world, find(p)));
    FM_TRY(fm__agree_all_well(e->world, agree(p)));
    FM_TRY(fm__open_together(e, fm_groups_make(&e->groups, &e->layout, fm_world_comm(e->world))));
    FM_TRY(price_layers(p));
    FM_TRY(fm__agree_all_well(e->world, divide(p)));
    FM_TRY(fit_running(p));
    FM_TRY(fm__open_plan(p));
    if (p->plans_only) return FM_OK;
    fm_world_doing(e->world, "loading");
    FM_TRY(fm__open_load(p));
    FM_TRY(fm__agree_all_well(e->world, build_rooms(p)));
    if (p->o->trace && *p->o->trace)
        FM_TRY(fm__tracing_open(e, p->o->trace, p->o->trace_size, p->path.name));
    fm_threads_roam(e->threads); /* threads made from here on are not bound; a step pins again */
    e->is_open = 1;
    fm_world_doing(e->world, "waiting for the first requests");
    return FM_OK;
}

fm_status fm_engine_open_shown(fm_engine **out, const fm_options *o, const fm_engine_hooks *hooks)
{
    fm_engine *e = calloc(1, sizeof *e);
    if (!e) return fm_fail(FM_E_OOM, "engine");
    opening p = {.e = e, .o = o, .hooks = hooks};
    e->reports = o->world.comm_report;
    if (hooks) e->report = hooks->report;
    const fm_status rc = open_all(&p);
    free(p.stage);
    if (rc != FM_OK) {
        fm_engine_close(e);
        return rc;
    }
    *out = e;
    return FM_OK;
}

fm_status fm_engine_plan(fm_engine_planned *out, const fm_options *o, fm_world *world)
{
    fm_engine *e = calloc(1, sizeof *e);
    if (!e) return fm_fail(FM_E_OOM, "engine");
    opening p          = {.e = e, .o = o, .plans_only = 1};
    e->world           = world;
    e->borrows_world   = 1;
    const fm_status rc = open_all(&p);
    free(p.stage);
    if (rc == FM_OK)
        *out = (fm_engine_planned){.plan     = {e->plan, e->beside.plan},
                                   .n_plan   = e->backend->also ? 2 : 1,
                                   .is_dummy = p.dummy,
                                   .path     = p.path};
    fm_engine_close(e);
    return rc;
}
