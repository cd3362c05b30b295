/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cpu_stand.h"

#include "base/rng.h"
#include "device/host.h"
#include "llm/load/source.h"
#include "llm/load/weights_fill.h"
#include "llm/model/model.h"

enum { PAGE = 16 };

static fm_status load(fm_stand *s, fm_source *src)
{
    fm_source_types       types = {src, FM_BF16};
    const fm_weights_want want  = {.act = FM_BF16, .dtype_of = fm_source_dtype_of, .ctx = &types};
    FM_TRY(fm_bench_lay_out(&s->weights, &s->config, &want, fm_host_alloc, &s->slab, &s->slab_bytes));
    return fm_weights_fill(&s->weights, src, s->limits.n_thread, 0);
}

static fm_status open_all(fm_stand *s, const char *model, const char *overrides, int max_rows,
                          int max_keys, int n_thread)
{
    fm_source *src = NULL;
    FM_TRY(fm_bench_read_shape(&s->config, model, overrides));
    s->limits = (fm_run_limits){.max_rows    = max_rows,
                                .max_out     = 256,
                                .max_context = max_keys,
                                .page_size   = PAGE,
                                .n_page      = max_keys / PAGE + max_rows,
                                .n_thread    = n_thread,
                                .n_lane      = 1};
    FM_TRY(fm_bench_batch_make(&s->batch, &s->limits, s->config.vocab, 0));
    FM_TRY(fm_source_open_dummy(&src, &s->config, 0));
    const fm_status rc = load(s, src);
    fm_source_close(src);
    FM_TRY(rc);
    fm_model_declare(&fm_model_deepseek, &s->config, &s->weights.shard, s->weights.act, &s->limits);
    s->world = fm_comm_self();
    return fm_run_create_cpu(&s->run, &s->weights, &s->limits, fm_ranks_self(&s->world));
}

fm_status fm_stand_open(fm_stand *s, const char *model, const char *overrides, int max_rows,
                        int max_keys, int n_thread)
{
    *s                 = (fm_stand){0};
    const fm_status rc = open_all(s, model, overrides, max_rows, max_keys, n_thread);
    if (rc != FM_OK) fm_stand_close(s);
    return rc;
}

void fm_stand_close(fm_stand *s)
{
    fm_run_destroy(s->run);
    fm_weights_fini(&s->weights);
    fm_host_free(s->slab, s->slab_bytes);
    fm_bench_batch_free(&s->batch);
    *s = (fm_stand){0};
}

void fm_stand_shape(fm_stand *s, const fm_shape *shape)
{
    fm_bench_batch_shape(&s->batch, &s->limits, shape, 0);
    fm_run_start(s->run, &s->batch.batch);
}

/* As prompt rows in steps of max_rows: only the latents are stored, nothing is
 * computed from them. */
void fm_stand_fill(fm_stand *s, int n_seq, int n_key)
{
    fm_run      *r     = s->run;
    const size_t n     = (size_t)s->limits.max_rows * (size_t)r->act.ckv.width;
    const int    n_all = n_seq * n_key; /* pages are consecutive: one long text */
    for (size_t i = 0; i < n; i++) r->act.ckv.data[i] = (float)fm_rng_u32(4, i) * 0x1p-31f - 1.0f;
    for (int at = 0; at < n_all; at += s->limits.max_rows) {
        const int      left  = n_all - at;
        const fm_shape shape = {
            .n_seq = 1, .pos0 = at, .n_row = left < s->limits.max_rows ? left : s->limits.max_rows};
        fm_stand_shape(s, &shape);
        for (int l = 0; l < s->config.n_layer; l++)
            fm_store_kv(r, l, r->act.ckv, s->weights.layer[l].attn.kv_norm);
    }
}
