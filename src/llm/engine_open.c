/* SPDX-License-Identifier: Apache-2.0 */
/* From options to a loaded engine: find, plan, load, allocate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "device/host.h"
#include "llm/engine_internal.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/load/weights_fill.h"

enum { DEFAULT_RUNNING = 256 };

typedef struct {
    fm_engine        *e;
    const fm_options *o;
    fm_model_path     path;
    fm_dtype          act;
    int               dummy;
    fm_sched_options  sched;
    fm_source_types   types;
} opening;

static fm_status check_words(opening *p)
{
    const fm_options *o = p->o;
    const int64_t ranks = o->tp_size * o->pp_size * o->dp_size * o->ep_size;
    if (ranks != 1)
        return fm_fail(FM_E_NOSUP, "--tp-size, --pp-size, --dp-size and --ep-size must be 1: this "
                                   "version runs a model on one rank");
    if (strcmp(o->device, "cpu"))
        return fm_fail(FM_E_NOSUP, "--device %s: this build computes on cpu", o->device);
    if (!strcmp(o->dtype, "float32") || !strcmp(o->dtype, "float")) p->act = FM_F32;
    else if (!strcmp(o->dtype, "auto") || !strcmp(o->dtype, "bfloat16")) p->act = FM_BF16;
    else return fm_fail(FM_E_ARG, "--dtype %s is none of auto, bfloat16, float32", o->dtype);
    if (!strcmp(o->load_format, "dummy")) p->dummy = 1;
    else if (strcmp(o->load_format, "auto") && strcmp(o->load_format, "safetensors"))
        return fm_fail(FM_E_ARG, "--load-format %s is none of auto, safetensors, dummy", o->load_format);
    if (!strcmp(o->schedule_policy, "lpm")) p->sched.policy = FM_POLICY_LPM;
    else if (strcmp(o->schedule_policy, "fcfs"))
        return fm_fail(FM_E_ARG, "--schedule-policy %s is none of fcfs, lpm", o->schedule_policy);
    return FM_OK;
}

static fm_status read_config(opening *p)
{
    const char *asked = p->o->model_path ? p->o->model_path : "r1-mini";
    FM_TRY(fm_model_path_find(&p->path, asked));
    if (p->path.builtin) {
        p->dummy = 1; /* a shape has no weights */
        return fm_config_parse(&p->e->config, p->path.builtin, strlen(p->path.builtin), asked,
                               p->o->json_model_override_args);
    }
    char file[4200];
    snprintf(file, sizeof file, "%s/config.json", p->path.dir);
    return fm_config_read(&p->e->config, file, p->o->json_model_override_args);
}

static fm_status open_source(opening *p)
{
    if (p->dummy) return fm_source_open_dummy(&p->e->source, &p->e->config, (uint64_t)p->o->seed);
    return fm_source_open_files(&p->e->source, p->path.dir);
}

static fm_status open_tokenizer(opening *p)
{
    const char *dir = p->o->tokenizer_path ? p->o->tokenizer_path : p->path.dir;
    if (p->o->skip_tokenizer_init || !*dir) return FM_OK;
    if (!p->o->tokenizer_path && !fm_tokenizer_exists(dir)) return FM_OK; /* ids alone */
    FM_TRY(fm_tokenizer_open(&p->e->tokenizer, dir));
    return fm_tokenizer_scratch_create(&p->e->scratch, p->e->tokenizer);
}

static fm_status set_limits(opening *p)
{
    const fm_options *o = p->o;
    fm_engine        *e = p->e;
    const int         most = e->config.max_position;
    fm_sched_options *s    = &p->sched;
    s->max_context = o->context_length && o->context_length < most ? (int)o->context_length : most;
    s->max_running = o->max_running_requests ? (int)o->max_running_requests : DEFAULT_RUNNING;
    s->chunk       = o->chunked_prefill_size > 0 ? (int)o->chunked_prefill_size : 0;
    s->max_prefill = (int)o->max_prefill_tokens;
    s->page_size   = (int)o->page_size;
    s->n_page      = 1; /* until the plan says how many */
    s->deterministic    = o->deterministic;
    s->conservativeness = o->schedule_conservativeness;
    s->n_eos            = e->config.n_eos;
    for (int i = 0; i < e->config.n_eos; i++) s->eos[i] = e->config.eos[i];
    e->limits = (fm_run_limits){.max_rows    = fm_sched_max_rows(s),
                                .max_out     = fm_sched_max_out(s),
                                .max_context = s->max_context,
                                .page_size   = s->page_size,
                                .n_thread    = fm_threads_count(e->threads),
                                .n_lane      = 1};
    return e->limits.max_rows > 0 ? FM_OK : FM_E_ARG; /* the scheduler said why */
}

static fm_status layout(opening *p, fm_slab *slab)
{
    fm_engine *e = p->e;
    p->types     = (fm_source_types){e->source, p->act};
    return fm_weights_layout(&e->weights, &e->config, &e->shard, p->act, fm_source_mtp_layers(e->source, &e->config),
                             fm_source_dtype_of, &p->types, slab);
}

static fm_status make_plan(opening *p, size_t weights)
{
    fm_engine         *e     = p->e;
    const fm_options  *o     = p->o;
    const fm_run_bytes bytes = fm_run_cpu_bytes(&e->config, &e->shard, p->act, &e->limits);
    const fm_plan_request q  = {.total            = fm_host_total(),
                                .available        = fm_host_available(),
                                .mem_fraction     = o->mem_fraction_static,
                                .max_total_tokens = o->max_total_tokens,
                                .page_size        = e->limits.page_size,
                                .max_running      = p->sched.max_running,
                                .max_context      = p->sched.max_context,
                                .weights          = weights,
                                .workspace        = bytes.workspace,
                                .kv_page          = bytes.kv_page + fm_kv_book_bytes(e->limits.page_size)};
    FM_TRY(fm_plan_make(&e->plan, &q));
    e->limits.n_page = p->sched.n_page = e->plan.n_page;
    return FM_OK;
}

static fm_status load(opening *p, int show)
{
    fm_engine *e = p->e;
    FM_TRY(fm_host_alloc(&e->slab, e->slab_bytes, "weights"));
    fm_threads_spread(e->threads, e->slab, e->slab_bytes);
    fm_slab place = {.base = e->slab, .size = e->slab_bytes};
    fm_weights_fini(&e->weights);
    FM_TRY(layout(p, &place));
    const double began = fm_now();
    FM_TRY(fm_weights_fill(&e->weights, e->source, e->limits.n_thread, show));
    e->load_seconds = fm_now() - began;
    fm_source_close(e->source);
    e->source = NULL;
    return FM_OK;
}

static fm_status build_rooms(opening *p)
{
    fm_engine          *e  = p->e;
    const fm_kv_options kv = {.n_page      = e->plan.n_page,
                              .page_size   = e->limits.page_size,
                              .max_lease   = p->sched.max_running + 1, /* one for scoring */
                              .max_context = p->sched.max_context,
                              .share       = !p->o->disable_radix_cache};
    e->world = fm_comm_self();
    FM_TRY(fm_run_create_cpu(&e->run, &e->weights, &e->limits, fm_ranks_self(&e->world)));
    FM_TRY(fm_kv_create(&e->kv, &kv));
    FM_TRY(fm_sched_create(&e->sched, &p->sched, e->kv));
    const size_t n = (size_t)e->limits.max_out;
    e->sampler     = calloc((size_t)e->limits.n_thread, sizeof *e->sampler);
    e->sampled     = calloc(n, sizeof *e->sampled);
    e->row         = calloc(n, sizeof(fm_request *));
    e->token       = calloc(n, sizeof *e->token);
    if (!e->sampler || !e->sampled || !e->row || !e->token) return fm_fail(FM_E_OOM, "engine");
    for (int i = 0; i < e->limits.n_thread; i++) FM_TRY(fm_sampler_create(&e->sampler[i], e->config.vocab));
    return FM_OK;
}

static fm_status open_all(opening *p, fm_show_plan_fn *show_plan)
{
    fm_engine *e       = p->e;
    fm_slab    measure = {0};
    e->seed            = (uint64_t)p->o->seed;
    FM_TRY(check_words(p));
    FM_TRY(read_config(p));
    e->shard = fm_shard_whole(&e->config);
    FM_TRY(open_tokenizer(p));
    FM_TRY(open_source(p));
    FM_TRY(fm_threads_create(&e->threads, p->o->cpu_bind, (int)p->o->threads));
    fm_threads_pin(e->threads);
    FM_TRY(set_limits(p));
    FM_TRY(layout(p, &measure));
    FM_TRY(fm_weights_check(&e->weights, e->source));
    e->slab_bytes = measure.used;
    FM_TRY(make_plan(p, measure.used));
    if (show_plan) show_plan(&e->plan, p->path.name);
    FM_TRY(load(p, show_plan != NULL));
    FM_TRY(build_rooms(p));
    fm_threads_roam(e->threads); /* threads made from here on are not bound; a step pins again */
    return FM_OK;
}

fm_status fm_engine_open_shown(fm_engine **out, const fm_options *o, fm_show_plan_fn *show_plan)
{
    fm_engine *e = calloc(1, sizeof *e);
    if (!e) return fm_fail(FM_E_OOM, "engine");
    opening         p  = {.e = e, .o = o};
    const fm_status rc = open_all(&p, show_plan);
    if (rc != FM_OK) {
        fm_engine_close(e);
        return rc;
    }
    *out = e;
    return FM_OK;
}

fm_status fm_engine_open(fm_engine **out, const fm_options *o)
{
    return fm_engine_open_shown(out, o, NULL);
}

void fm_engine_close(fm_engine *e)
{
    if (!e) return;
    while (e->sched && e->jobs) { /* give back their pages first */
        for (fm_job *j = e->jobs; j; j = j->next)
            if (j->request.state != FM_REQ_DONE) fm_sched_cancel(e->sched, &j->request);
        fm__engine_post(e, 0);
    }
    fm__engine_free_jobs(e);
    fm_sched_destroy(e->sched);
    fm_kv_destroy(e->kv);
    fm_run_destroy(e->run);
    fm_weights_fini(&e->weights);
    fm_host_free(e->slab, e->slab_bytes);
    fm_source_close(e->source);
    for (int i = 0; e->sampler && i < e->limits.n_thread; i++) fm_sampler_destroy(e->sampler[i]);
    free(e->sampler);
    free(e->sampled);
    free(e->row);
    free(e->token);
    fm_tokenizer_scratch_destroy(e->scratch);
    fm_tokenizer_close(e->tokenizer);
    fm_threads_destroy(e->threads);
    free(e);
}
