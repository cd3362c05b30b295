/* SPDX-License-Identifier: Apache-2.0 */
/* The promise of weights/shard.h: however a forward pass is divided among ranks,
 * its logits have the same bits.
 *
 * Rank 0 computes a script of passes alone; then all ranks compute it under
 * every layout their number allows, and rank 0 compares with memcmp. */
#include <string.h>

#include "base/clock.h"
#include "forward_layout.h"
#include "forward_steps.h"
#include "llm/load/config_read.h"
#include "llm/load/model_path.h"
#include "llm/load/weights_fill.h"
#include "llm/model/model.h"
#include "rank.h"

#define SMALL                                                                                      \
    "\"hidden_size\":256,\"intermediate_size\":384,\"vocab_size\":500,\"n_routed_experts\":16,"    \
    "\"n_group\":4,\"topk_group\":2,\"num_experts_per_tok\":4,\"moe_intermediate_size\":64,"       \
    "\"num_attention_heads\":8,\"num_key_value_heads\":8,\"num_hidden_layers\":4,"                 \
    "\"kv_lora_rank\":128,\"bos_token_id\":0,\"eos_token_id\":1"
#define FP8                                                                                        \
    ",\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\","                         \
    "\"weight_block_size\":[128,128]}"
/* Shares that are uneven, and empty ones: 3 heads, 2 blocks of outputs, 2 of an
 * expert's channels, 5 experts, 2 blocks of words. */
#define ODD                                                                                        \
    "\"hidden_size\":64,\"intermediate_size\":96,\"vocab_size\":50,\"n_routed_experts\":5,"        \
    "\"n_group\":1,\"topk_group\":1,\"num_experts_per_tok\":3,\"moe_intermediate_size\":32,"       \
    "\"num_attention_heads\":3,\"num_key_value_heads\":3,\"num_hidden_layers\":4,"                 \
    "\"q_lora_rank\":32,\"kv_lora_rank\":64,\"qk_nope_head_dim\":32,\"qk_rope_head_dim\":16,"      \
    "\"v_head_dim\":32,"                                                                           \
    "\"bos_token_id\":0,\"eos_token_id\":1"

static const struct {
    const char *name, *overrides;
    fm_dtype    act;
    int         vocab, n_expert, longest; /* rows of a prompt chunk */
} models[] = {
    {"bf16", "{" SMALL "}", FM_BF16, 500, 16, 40},
    {"fp8", "{" SMALL FP8 "}", FM_BF16, 500, 16, 40},
    {"f32", "{" SMALL "}", FM_F32, 500, 16, 8},
    {"no q_lora, no shared expert", "{" SMALL ",\"q_lora_rank\":null,\"n_shared_experts\":null}",
     FM_BF16, 500, 16, 40},
    {"odd", "{" ODD "}", FM_BF16, 50, 5, 40},
    {"odd, several passes of rows", "{" ODD "}", FM_BF16, 50, 5, 900},
};

typedef struct {
    fm_model_config config;
    fm_source      *source;
    fm_weights      weights;
    void           *slab;
    fm_run         *run;
} part;

static fm_world *w;
static float    *want[N_STEP][N_TEXT];

/* --- a part of a model ----------------------------------------------------- */

static void load(part *p, const fm_shard *shard, fm_dtype act)
{
    fm_source_types       types = {p->source, act};
    const fm_weights_want how   = {
          .shard = shard, .act = act, .dtype_of = fm_source_dtype_of, .ctx = &types};
    fm_slab slab = {0};
    CHECK(w, fm_weights_layout(&p->weights, &p->config, &how, &slab) == FM_OK);
    fm_weights_fini(&p->weights);
    p->slab = aligned_alloc(64, slab.used + 64);
    slab    = (fm_slab){.base = p->slab, .size = slab.used};
    CHECK(w, fm_weights_layout(&p->weights, &p->config, &how, &slab) == FM_OK);
    CHECK(w, fm_weights_fill(&p->weights, p->source, 1, 0) == FM_OK);
}

static void open_part(part *p, int model, const fm_shard *shard, const steps *s, int n_lane,
                      fm_ranks ranks)
{
    const char *text = fm_builtin_config("r1-mini");
    CHECK(w, fm_config_parse(&p->config, text, strlen(text), models[model].name,
                             models[model].overrides) == FM_OK);
    CHECK(w, fm_source_open_dummy(&p->source, &p->config, 1) == FM_OK);
    const fm_shard      all = fm_shard_whole(&p->config);
    fm_run_limits lim = {.max_rows    = s->max_rows,
                               .max_out     = s->max_out,
                               .max_context = s->max_len,
                               .page_size   = PAGE,
                               .n_page      = N_TEXT * s->pages,
                               .n_thread    = 1 + model % 2,
                               .n_lane      = n_lane};
    fm_model_declare(&fm_model_deepseek, &p->config, shard ? shard : &all, models[model].act, &lim);
    load(p, shard ? shard : &all, models[model].act);
    CHECK(w, fm_run_create_cpu(&p->run, &p->weights, &lim, ranks) == FM_OK);
}

static void close_part(part *p)
{
    fm_run_destroy(p->run);
    fm_weights_fini(&p->weights);
    fm_source_close(p->source);
    free(p->slab);
}

static void forward(part *p, const steps_batch *b)
{
    fm_run_start(p->run, &b->batch);
    fm_model_deepseek.forward(p->run);
    CHECK(w, fm_run_finish(p->run) == FM_OK);
}

/* --- alone ----------------------------------------------------------------- */

static void compute_alone(int model, const steps *s)
{
    fm_comm     self = fm_comm_self();
    part        p    = {0};
    steps_batch b;
    open_part(&p, model, NULL, s, 1, fm_ranks_self(&self));
    for (int k = 0; k < N_STEP; k++) {
        const float *logits = NULL;
        steps_batch_make(&b, s, k, 0, 1);
        forward(&p, &b);
        CHECK(w, fm_run_logits(p.run, &b.batch, &logits) == FM_OK);
        for (int i = 0; i < N_TEXT; i++) {
            const size_t n = (size_t)s->span[k][i].n_out * (size_t)p.config.vocab;
            want[k][i]     = realloc(want[k][i], (n + 1) * sizeof(float));
            memcpy(want[k][i], logits, n * sizeof(float));
            logits += n;
        }
        steps_batch_free(&b);
    }
    close_part(&p);
}

/* --- together -------------------------------------------------------------- */

static void compare(part *p, const steps *s, int step, const steps_batch *b, const layout *l,
                    const char *model)
{
    const float *logits = NULL;
    CHECK(w, fm_run_logits(p->run, &b->batch, &logits) == FM_OK);
    for (int g = 0; g < l->groups; g++)
        for (int i = g; i < N_TEXT; i += l->groups) {
            const size_t n = (size_t)s->span[step][i].n_out * (size_t)p->config.vocab;
            if (memcmp(logits, want[step][i], n * sizeof *logits))
                fm_world_abort(w, "%s: tp %d pp %d groups %d ep %d: text %d differs in step %d",
                               model, l->tp, l->pp, l->groups, l->ep, i, step);
            logits += n;
        }
}

/* Rank 0 has up to n_lane passes under way, the others follow. */
static void run_steps(part *p, const steps *s, const fm_shard *shard, const layout *l, int model)
{
    const int    is_first = p->run->ranks.replica->rank == 0;
    steps_batch  b[N_STEP];
    for (int k = 0; k < N_STEP; k++) {
        steps_batch_make(&b[k], s, k, shard->group.index, l->groups);
        if (is_first && k >= l->n_lane)
            compare(p, s, k - l->n_lane, &b[k - l->n_lane], l, models[model].name);
        fm_world_doing(w, "step %d of %s, tp %d pp %d groups %d ep %d", k, models[model].name,
                       l->tp, l->pp, l->groups, l->ep);
        forward(p, &b[k]);
    }
    for (int k = N_STEP - l->n_lane; is_first && k < N_STEP; k++)
        compare(p, s, k, &b[k], l, models[model].name);
    for (int k = 0; k < N_STEP; k++) steps_batch_free(&b[k]);
}

/* `dealt`: experts lie anyhow, some of them twice; otherwise evenly. */
static void together(int model, const steps *s, const layout *l, int n_layer, int dealt)
{
    fm_shard      shard = layout_shard(l, fm_world_comm(w)->rank, n_layer);
    fm_ranks      ranks = layout_ranks(l, w, &shard);
    fm_placement *where = dealt ? layout_placement(l, w, models[model].n_expert) : NULL;
    part          p     = {0};
    shard.placement     = where;
    open_part(&p, model, &shard, s, l->n_lane, ranks);
    run_steps(&p, s, &shard, l, model);
    close_part(&p);
    fm_placement_destroy(where);
    layout_ranks_close(&ranks);
}

static int every_layout(int model, const steps *s, int n_rank)
{
    int n = 0;
    for (int tp = 1; tp <= n_rank; tp++)
        for (int groups = 1; groups <= tp; groups++)
            for (int ep = 1; ep <= tp; ep++) {
                if (n_rank % tp || tp % groups || tp % ep) continue;
                const layout l = {tp, n_rank / tp, groups, ep, 1 + n++ % (2 * n_rank / tp), 0};
                together(model, s, &l, 4, 0);
                if (ep > 1) together(model, s, &l, 4, 1);
            }
    return n;
}

int main(void)
{
    w = rank_open();
    const fm_comm *all = fm_world_comm(w);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        const double began = fm_now();
        steps        s;
        steps_make(&s, models[m].vocab, models[m].longest);
        fm_world_doing(w, "%s alone", models[m].name);
        if (all->rank == 0) compute_alone((int)m, &s);
        const int n = every_layout((int)m, &s, all->n_rank);
        if (all->rank == 0)
            printf("%s: %d layouts of %d ranks, %.1f s\n", models[m].name, n, all->n_rank,
                   fm_now() - began);
        steps_free(&s);
    }
    for (int i = 0; i < N_STEP * N_TEXT; i++) free(want[i / N_TEXT][i % N_TEXT]);
    CHECK(w, fm_barrier(fm_world_comm(w)) == FM_OK);
    fm_world_close(w);
    return 0;
}
