/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/open/foresee.h"

#include <stdlib.h>
#include <string.h>

#include "llm/open/open_internal.h"

/* On a CPU the engine times its kernels to cut a pipeline; so it is done here. */
static fm_status price_layers(opening *p)
{
    fm_engine *e     = p->e;
    const int  seats = e->layout.size.pp * e->layout.n_group;
    p->price         = fm__prices_of_bytes();
    if (e->layout.size.pp == 1 || p->o->pp_layer_partition || !e->backend->is_host) return FM_OK;
    return fm__prices_measure(&p->price, &e->config, p->act, fm__part_of(e->max_running, seats));
}

static fm_status read_model(opening *p)
{
    FM_TRY(fm__open_check_words(p));
    FM_TRY(fm__open_suit_device(p));
    return fm__open_read_config(p);
}

static fm_status foresee(opening *p, const fm_place *where)
{
    FM_TRY(read_model(p));
    FM_TRY(fm__open_make_layout(p, where->rank));
    if (p->e->layout.size.pp > FM_FORESEEN_STAGES)
        return fm_fail(FM_E_ARG, "--pp-size: more than %d stages", FM_FORESEEN_STAGES);
    FM_TRY(price_layers(p));
    FM_TRY(fm__open_source(p));
    FM_TRY(fm__open_drafts(p));
    FM_TRY(fm__open_set_limits(p));
    FM_TRY(fm__open_cut_stages(p));
    fm__open_size_tiers(p);
    FM_TRY(fm__open_measure_weights(p));
    FM_TRY(fm__open_lower_running(p));
    FM_TRY(fm__open_set_limits(p));
    FM_TRY(fm__open_set_courier(p));
    FM_TRY(fm__open_make_plan(p, p->o->max_total_tokens));
    fm__open_share_pages(p);
    return FM_OK;
}

static fm_foreseen_tiers tiers_of(const fm_tiers *t)
{
    return (fm_foreseen_tiers){.n_slot      = t->n_slot,
                               .n_buffer    = t->n_buffer,
                               .n_host      = t->n_host,
                               .most_in     = t->most_in,
                               .most_out    = t->most_out,
                               .saving      = t->saving,
                               .image_bytes = t->image_bytes,
                               .file_bytes  = t->file_bytes};
}

static void hand_over(fm_foreseen *out, opening *p)
{
    fm_engine *e = p->e;
    *out         = (fm_foreseen){.config      = e->config,
                                 .layout      = e->layout,
                                 .sched       = p->sched,
                                 .limits      = e->limits,
                                 .n_lane      = p->n_lane,
                                 .max_running = e->max_running,
                                 .is_dummy    = p->dummy,
                                 .plan        = e->plan,
                                 .tiers       = tiers_of(&e->tiers),
                                 .weights     = e->weights};
    for (int i = 0; i < e->layout.size.pp; i++) out->stage[i] = p->stage[i];
    out->weights.config = &out->config;
    e->weights          = (fm_weights){0};
}

static fm_status begin(fm_engine **out, int on_gpu)
{
    fm_engine *e = calloc(1, sizeof *e);
    if (!e) return fm_fail(FM_E_OOM, "engine");
    e->backend       = on_gpu ? &fm_backend_cuda_counts : &fm_backend_cpu;
    e->borrows_world = 1; /* there is none */
    *out             = e;
    return FM_OK;
}

fm_status fm_engine_foresee_source(fm_source **out, const fm_options *o, int on_gpu)
{
    fm_engine *e = NULL;
    FM_TRY(begin(&e, on_gpu));
    opening   p  = {.e = e, .o = o, .plans_only = 1};
    fm_status rc = read_model(&p);
    if (rc == FM_OK) rc = fm__open_source(&p);
    if (rc == FM_OK) *out = e->source;
    e->source = NULL;
    fm_engine_close(e);
    return rc;
}

fm_status fm_engine_foresee(fm_foreseen *out, const fm_options *o, const fm_place *where)
{
    fm_engine *e = NULL;
    FM_TRY(begin(&e, where->on_gpu));
    opening p          = {.e          = e,
                          .o          = o,
                          .n_rank     = where->n_rank,
                          .n_thread   = where->n_thread,
                          .memory     = where->memory,
                          .plans_only = 1};
    e->source          = where->source;
    const fm_status rc = foresee(&p, where);
    if (rc == FM_OK) hand_over(out, &p);
    if (where->source) e->source = NULL;
    free(p.stage);
    fm_engine_close(e);
    return rc;
}

void fm_foreseen_fini(fm_foreseen *f) { fm_weights_fini(&f->weights); }
