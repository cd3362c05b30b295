/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_forward_part.h"

#include <string.h>

#include "device/cuda/device.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/model/model.h"
#include "llm/op/cuda/weights.h"

static void load(part *p, fm_world *w, const fm_shard *shard)
{
    fm_source_types       types = {p->source, FM_BF16};
    const fm_weights_want want  = {.shard    = shard,
                                   .packing  = FM_PACK_ROWS,
                                   .act      = FM_BF16,
                                   .dtype_of = fm_source_dtype_of,
                                   .ctx      = &types};
    fm_slab               slab  = {0};
    CHECK(w, fm_weights_layout(&p->weights, &p->config, &want, &slab) == FM_OK);
    fm_weights_fini(&p->weights);
    CHECK(w, fm_cuda_alloc(&p->slab, slab.used, "weights") == FM_OK);
    slab = (fm_slab){.base = p->slab, .size = slab.used};
    CHECK(w, fm_weights_layout(&p->weights, &p->config, &want, &slab) == FM_OK);
    CHECK(w, fm_cuda_weights_fill(&p->weights, p->source, 1, 0) == FM_OK);
}

void part_open(part *p, fm_world *w, const part_wish *o)
{
    const char    *text = fm_builtin_config("r1-mini");
    fm_cuda_device device;
    CHECK(w, fm_cuda_open(&device, 0) == FM_OK);
    CHECK(w, fm_config_parse(&p->config, text, strlen(text), "r1-mini", o->overrides) == FM_OK);
    CHECK(w, fm_source_open_dummy(&p->source, &p->config, 1) == FM_OK);
    fm_run_limits lim = {.max_rows    = o->steps->max_rows + 8,
                               .max_out     = o->steps->max_out + 8,
                               .max_context = o->steps->max_len,
                               .page_size   = PAGE,
                               .n_page      = N_TEXT * o->steps->pages,
                               .n_thread    = 1,
                               .n_lane      = o->n_lane};
    load(p, w, o->shard);
    fm_model_declare(&fm_model_deepseek, &p->config, &p->weights.shard,
                     o->kv_e4m3 ? FM_FP8 : FM_BF16, &lim);
    CHECK(w, fm_run_create_cuda(&p->run, &p->weights, &lim, &o->options) == FM_OK);
}

void part_forward(part *p, fm_world *w, const steps_batch *b)
{
    fm_run_start(p->run, &b->batch);
    fm_model_deepseek.forward(p->run);
    CHECK(w, fm_run_finish(p->run) == FM_OK);
}

void part_close(part *p)
{
    fm_run_destroy(p->run);
    fm_weights_fini(&p->weights);
    fm_source_close(p->source);
    fm_cuda_free(p->slab);
}
