/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/sample/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/argmax.h"
#include "base/slab.h"
#include "llm/sample/sample_internal.h"

static const float greedy_below = 1e-6f;

static void carve(fm_sampler **s, fm_slab *slab, int vocab)
{
    fm_sampler *p      = fm_slab_take(slab, sizeof *p);
    int32_t    *count  = fm_slab_take(slab, (size_t)vocab * sizeof *count);
    float      *weight = fm_slab_take(slab, (size_t)vocab * sizeof *weight);
    if (!p) return;
    p->vocab  = vocab;
    p->count  = memset(count, 0, (size_t)vocab * sizeof *count);
    p->weight = weight;
    *s        = p;
}

size_t fm_sampler_bytes(int vocab)
{
    fm_slab slab = {0};
    carve(NULL, &slab, vocab);
    return slab.used;
}

fm_status fm_sampler_create(fm_sampler **out, int vocab)
{
    FM_BUG_UNLESS(vocab > 0);
    const size_t bytes = fm_sampler_bytes(vocab);
    void        *base  = aligned_alloc(FM_SLAB_ALIGN, bytes);
    if (!base) return fm_fail(FM_E_OOM, "scratch for sampling: %zu bytes", bytes);
    fm_slab slab = {.base = base, .size = bytes};
    carve(out, &slab, vocab);
    return FM_OK;
}

void fm_sampler_destroy(fm_sampler *s)
{
    free(s);
}

static float repeated(float logit, float penalty)
{
    return logit < 0 ? logit * penalty : logit / penalty;
}

static void penalise(fm_sampler *s, const fm_sampling *p, float *logits, const int32_t *output,
                     int n)
{
    if (p->frequency_penalty == 0 && p->presence_penalty == 0 && p->repetition_penalty == 1) return;
    for (int i = 0; i < n; i++) {
        FM_BUG_UNLESS(output[i] >= 0 && output[i] < s->vocab);
        s->count[output[i]]++;
    }
    for (int i = 0; i < n; i++) {
        const int32_t id = output[i];
        if (!s->count[id]) continue; /* done at its first occurrence */
        const float less = p->frequency_penalty * (float)s->count[id] + p->presence_penalty;
        logits[id]       = repeated(logits[id] - less, p->repetition_penalty);
        s->count[id]     = 0;
    }
}

static void forbid(float *logits, int vocab, const int32_t *id, int n)
{
    for (int i = 0; i < n; i++)
        if (id[i] >= 0 && id[i] < vocab) logits[id[i]] = -INFINITY;
}

static void add_bias(float *logits, const fm_sampling *p)
{
    for (int i = 0; i < p->n_bias; i++) logits[p->bias[i].id] += p->bias[i].bias;
}

static int32_t draw(fm_sampler *s, const fm_sampling *p, const float *distance, int position,
                    double z)
{
    fm__draw_params d = {
        .distance   = distance,
        .weight     = s->weight,
        .n          = s->vocab,
        .cut        = {INFINITY, INT32_MAX},
        .min_weight = p->min_p,
        .seed       = p->seed,
        .position   = position,
    };
    const int top_k = p->top_k > 0 && p->top_k < s->vocab ? p->top_k : s->vocab;
    if (top_k < s->vocab || p->top_p < 1)
        d.cut = fm__cut_at(s, distance, top_k, p->top_p < 1 ? (double)p->top_p * z : INFINITY);
    return fm__draw(&d);
}

void fm_sample(fm_sampler *s, const fm_sampling *p, float *logits, const int32_t *output,
               int n_output, const int32_t *eos, int n_eos, fm_sampled *out)
{
    penalise(s, p, logits, output, n_output);
    if (n_output < p->min_new_tokens) {
        forbid(logits, s->vocab, eos, n_eos);
        forbid(logits, s->vocab, p->stop_id, p->n_stop_id);
    }
    add_bias(logits, p);

    const int greedy = p->temperature < greedy_below, wanted = p->logprobs || p->top_logprobs > 0;
    out->id      = fm_argmax(logits, s->vocab);
    out->logprob = 0;
    out->n_top   = 0;
    if (greedy && !wanted) return;

    const float max = logits[out->id];
    if (!(max > -INFINITY)) { /* nothing is possible: token 0, as argmax says */
        out->logprob = -INFINITY;
        return;
    }
    const double z = fm__distances(logits, s->weight, s->vocab, max, greedy ? 1 : p->temperature);
    if (!greedy) out->id = draw(s, p, logits, n_output, z);
    if (wanted) {
        out->logprob = (float)(-(double)logits[out->id] - log(z));
        if (p->top_logprobs > 0) fm__report_top(logits, s->vocab, p->top_logprobs, log(z), out);
    }
}
