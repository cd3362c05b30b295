/* SPDX-License-Identifier: Apache-2.0 */
/* The promise of weights/shard.h on GPUs, which are emulated here: a forward pass
 * has the same bits however it is divided among ranks, padded or not.
 *
 * Rank 0 computes a script of passes alone; then all ranks compute it under
 * every layout their number allows.  `all`: every model under every layout.
 * `nccl`: they meet by its calls (nccl_standin.c), not by the host. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "cuda_forward_part.h"
#include "forward_layout.h"

/* Shares that are uneven, and empty ones: 3 heads, 5 blocks of outputs, 5 of an
 * expert's channels, 6 experts, 2 blocks of words. */
#define ODD                                                                                        \
    "\"hidden_size\":160,\"intermediate_size\":96,\"vocab_size\":50,\"n_routed_experts\":6,"       \
    "\"n_group\":1,\"topk_group\":1,\"num_experts_per_tok\":3,\"moe_intermediate_size\":160,"      \
    "\"num_attention_heads\":3,\"num_key_value_heads\":3,\"num_hidden_layers\":4,"                 \
    "\"q_lora_rank\":32,\"kv_lora_rank\":64,\"qk_nope_head_dim\":32,\"qk_rope_head_dim\":16,"      \
    "\"v_head_dim\":32,"                                                                           \
    "\"bos_token_id\":0,\"eos_token_id\":1"
#define EVEN                                                                                       \
    "\"hidden_size\":128,\"intermediate_size\":128,\"vocab_size\":128,\"n_routed_experts\":8,"     \
    "\"n_group\":4,\"topk_group\":2,\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,"       \
    "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"num_hidden_layers\":4,"                 \
    "\"first_k_dense_replace\":1,\"q_lora_rank\":null,\"n_shared_experts\":null,"                  \
    "\"kv_lora_rank\":64,\"qk_nope_head_dim\":32,\"qk_rope_head_dim\":16,\"v_head_dim\":16,"       \
    "\"bos_token_id\":0,\"eos_token_id\":1"
#define FP8                                                                                        \
    ",\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e4m3\","                         \
    "\"weight_block_size\":[128,128]}"

static const struct {
    const char *name, *overrides;
    int         vocab, n_expert, kv_e4m3;
} models[] = {
    {"odd", "{" ODD "}", 50, 6, 0},
    {"fp8, KV in 8 bits", "{" ODD FP8 "}", 50, 6, 1},
    {"no shared expert, no q_lora", "{" EVEN "}", 128, 8, 0},
};

enum { MAX_OUTS = 8 }; /* of a text in a step */

static fm_world      *w;
static int            is_thorough;
static fm_gpu_meeting meeting = FM_MEET_BY_HOST;
static float         *want[N_STEP][N_TEXT];

/* --- rows that start from what the step before chose -------------------------- */

static int chooses(int step)
{
    return step % 3 == 1;
}

/* The text goes on with the token that the last row of the step before gives. */
static int continues(const steps *s, int step, int text)
{
    if (step == 0 || !chooses(step - 1)) return 0;
    const steps_span *last = &s->span[step - 1][text], *now = &s->span[step][text];
    return last->n_out && now->n_row && now->form == FM_FORM_GENERATED &&
           last->pos0 + last->n_row == now->pos0;
}

/* Where it is the device's own business, the token is not told. */
static void hide_chosen(steps_batch *b, const steps *s, int step, int group, int n_group)
{
    int row = 0, out = 0;
    for (int i = 0; i < N_TEXT; i++) {
        const int is_own = i % n_group == group, goes_on = continues(s, step, i);
        b->batch.has_choices |= goes_on;
        if (!is_own) continue;
        if (step > 0) out += s->span[step - 1][i].n_out;
        if (goes_on) b->batch.token[row] = FM_CHOICE(out - 1);
        row += s->span[step][i].n_row;
    }
}

static int count_hidden(const steps *s)
{
    int n = 0;
    for (int k = 0; k < N_STEP; k++)
        for (int i = 0; i < N_TEXT; i++) n += continues(s, k, i);
    return n;
}

/* The steps in which no text has prompt rows are the same for every group. */
static void make_batch(steps_batch *b, const steps *s, int step, int group, int n_group)
{
    steps_batch_make(b, s, step, group, n_group);
    b->batch.is_decode = 1;
    for (int i = 0; i < N_TEXT; i++)
        if (s->span[step][i].n_row && s->span[step][i].form == FM_FORM_PROMPT)
            b->batch.is_decode = 0;
}

static double distance(const float *a, const float *b, size_t n)
{
    double off = 0, size = 1e-30;
    for (size_t i = 0; i < n; i++) {
        off += pow((double)a[i] - (double)b[i], 2);
        size += pow((double)b[i], 2);
    }
    return sqrt(off / size);
}

static int32_t largest(const float *logits, int n)
{
    int32_t best = 0;
    for (int i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* --- alone ----------------------------------------------------------------- */

/* Texts that go on from a choice get it into their script. */
static void follow_choices(steps *s, int step, int vocab)
{
    for (int i = 0; i < N_TEXT; i++)
        if (continues(s, step, i))
            s->token[i * s->max_len + s->span[step][i].pos0] =
                largest(want[step - 1][i] + (s->span[step - 1][i].n_out - 1) * vocab, vocab);
}

static void compute_alone(int model, steps *s)
{
    const part_wish wish = {.overrides = models[model].overrides,
                            .steps     = s,
                            .n_lane    = 1,
                            .kv_e4m3   = models[model].kv_e4m3};
    part            p    = {0};
    part_open(&p, w, &wish);
    for (int k = 0; k < N_STEP; k++) {
        steps_batch  b;
        const float *logits = NULL;
        follow_choices(s, k, p.config.vocab);
        make_batch(&b, s, k, 0, 1);
        part_forward(&p, w, &b);
        CHECK(w, fm_run_logits(p.run, &b.batch, &logits) == FM_OK);
        for (int i = 0; i < N_TEXT; i++) {
            const size_t n = (size_t)s->span[k][i].n_out * (size_t)p.config.vocab;
            want[k][i]     = realloc(want[k][i], (n + 1) * sizeof(float));
            memcpy(want[k][i], logits, n * sizeof(float));
            CHECK(w, isfinite(distance(logits, logits, n)));
            logits += n;
        }
        steps_batch_free(&b);
    }
    part_close(&p);
}

/* --- together -------------------------------------------------------------- */

static void compare_text(const float *logits, int model, int step, int text, size_t n,
                         const layout *l)
{
    const float *right = want[step][text];
    if (!memcmp(logits, right, n * sizeof *logits)) return;
    fm_world_abort(
        w, "%s: tp %d pp %d groups %d ep %d lanes %d pads %d: text %d differs by %g in step %d",
        models[model].name, l->tp, l->pp, l->groups, l->ep, l->n_lane, l->pads, text,
        distance(logits, right, n), step);
}

/* Tokens chosen where the logits are, instead of taking them. */
static void compare_tokens(part *p, const steps *s, int step, const steps_batch *b, const layout *l)
{
    fm_sampling how = fm_sampling_default();
    fm_draw     draw[N_TEXT * MAX_OUTS];
    fm_sampled  got[N_TEXT * MAX_OUTS], *at = got;
    how.temperature = 0;
    CHECK(w, s->max_out <= N_TEXT * MAX_OUTS);
    for (int i = 0; i < s->max_out; i++) draw[i] = (fm_draw){.how = &how};
    CHECK(w, fm_run_sample(p->run, &b->batch, draw, got) == FM_OK);
    for (int g = 0; g < l->groups; g++)
        for (int i = g; i < N_TEXT; i += l->groups)
            for (int k = 0; k < s->span[step][i].n_out; k++, at++)
                CHECK(w, at->id == largest(want[step][i] + k * p->config.vocab, p->config.vocab));
}

static void compare(part *p, const steps *s, int step, const steps_batch *b, const layout *l,
                    int model)
{
    const float *logits = NULL;
    if (chooses(step) && p->run->ops->sample) {
        compare_tokens(p, s, step, b, l);
        return;
    }
    CHECK(w, fm_run_logits(p->run, &b->batch, &logits) == FM_OK);
    for (int g = 0; g < l->groups; g++)
        for (int i = g; i < N_TEXT; i += l->groups) {
            const size_t n = (size_t)s->span[step][i].n_out * (size_t)p->config.vocab;
            compare_text(logits, model, step, i, n, l);
            logits += n;
        }
}

/* Rank 0 has up to n_lane passes under way, the others follow. */
static void run_steps(part *p, const steps *s, int group, const layout *l, int model)
{
    const int   is_first = p->run->ranks.replica->rank == 0;
    steps_batch b[N_STEP];
    for (int k = 0; k < N_STEP; k++) {
        make_batch(&b[k], s, k, group, l->groups);
        if (l->pp == 1 && l->n_lane == 1) hide_chosen(&b[k], s, k, group, l->groups);
        if (is_first && k >= l->n_lane) compare(p, s, k - l->n_lane, &b[k - l->n_lane], l, model);
        fm_world_doing(w, "step %d of %s, tp %d pp %d groups %d ep %d", k, models[model].name,
                       l->tp, l->pp, l->groups, l->ep);
        part_forward(p, w, &b[k]);
    }
    for (int k = N_STEP - l->n_lane; is_first && k < N_STEP; k++) compare(p, s, k, &b[k], l, model);
    for (int k = 0; k < N_STEP; k++) steps_batch_free(&b[k]);
}

/* `dealt`: experts lie anyhow, some of them twice; otherwise evenly. */
static void together(int model, const steps *s, const layout *l, int dealt)
{
    fm_shard        shard = layout_shard(l, fm_world_comm(w)->rank, 4);
    fm_ranks        ranks = layout_ranks(l, w, &shard);
    fm_placement   *where = dealt ? layout_placement(l, w, models[model].n_expert) : NULL;
    shard.placement       = where;
    const part_wish wish = {.overrides = models[model].overrides,
                            .shard     = &shard,
                            .steps     = s,
                            .n_lane    = l->n_lane,
                            .kv_e4m3   = models[model].kv_e4m3,
                            .options   = {.pads    = l->pads,
                                          .ranks   = &ranks,
                                          .meeting = meeting}};
    part            p    = {0};
    part_open(&p, w, &wish);
    run_steps(&p, s, shard.group.index, l, model);
    part_close(&p);
    fm_placement_destroy(where);
    layout_ranks_close(&ranks);
}

/* Each with another number of lanes, padded by turns.  The models share the
 * layouts between them. */
static int every_layout(int model, const steps *s, int n_rank)
{
    int n = 0, n_run = 0;
    for (int tp = 1; tp <= n_rank; tp++)
        for (int groups = 1; groups <= tp; groups++)
            for (int ep = 1; ep <= tp; ep++) {
                if (n_rank % tp || tp % groups || tp % ep) continue;
                const layout l = {
                    tp, n_rank / tp, groups, ep, 1 + n % (2 * n_rank / tp), (n + model) % 2};
                if (is_thorough || n % n_rank == model % n_rank)
                    together(model, s, &l, (n + model) / 2 % 2), n_run++;
                n++;
            }
    return n_run;
}

/* Padding is of use in steps without prompt rows: are there some? */
static int decode_steps(const steps *s)
{
    int n = 0;
    for (int k = 0; k < N_STEP; k++) {
        steps_batch b;
        make_batch(&b, s, k, 0, 1);
        n += b.batch.is_decode;
        steps_batch_free(&b);
    }
    return n;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        is_thorough |= !strcmp(argv[i], "all");
        if (!strcmp(argv[i], "nccl")) meeting = FM_MEET_BY_NCCL;
    }
    w                  = rank_open();
    const fm_comm *all = fm_world_comm(w);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        const double began = fm_now();
        steps        s;
        steps_make(&s, models[m].vocab, 5);
        CHECK(w, decode_steps(&s) >= 3);
        fm_world_doing(w, "%s alone", models[m].name);
        CHECK(w, count_hidden(&s) >= 3);
        if (all->rank == 0) compute_alone((int)m, &s);
        CHECK(w, fm_broadcast(fm_world_comm(w), s.token,
                              sizeof *s.token * (size_t)(N_TEXT * s.max_len), 0) == FM_OK);
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
