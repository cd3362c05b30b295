/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens chosen on the device against the host's choice from the same logits.
 * How a request samples is the engine's to know, and it takes the CPU's logits:
 * here every other row is greedy and the rest drawn. */
#include <string.h>

#include "base/finite.h"
#include "llm/op/shadow/shadow_internal.h"

static int32_t choose_here(fm_run *r, const fm_sampling *how, const float *logits)
{
    fm_shadow             *s   = fm__shadow(r);
    const fm_model_config *c   = r->config;
    float                 *row = (float *)s->room; /* sampling overwrites it */
    fm_sampled             out;
    if (!fm_all_finite(logits, c->vocab)) return FM_NO_TOKEN;
    memcpy(row, logits, (size_t)c->vocab * sizeof *row);
    fm_sample(s->sampler, how, row, NULL, 0, c->eos, c->n_eos, &out);
    return out.id;
}

/* The largest logit is the same on both; a draw may fall beside a border that
 * the GPU's exp() puts elsewhere, which is counted. */
static fm_status compare_tokens(fm_run *r, const fm_batch *b, const float *logits)
{
    fm_shadow       *s     = fm__shadow(r);
    fm_shadow_count *count = &s->count[FM_OP_SAMPLE];
    for (int i = 0; i < b->n_out; i++) {
        const float  *row = logits + (size_t)i * (size_t)r->config->vocab;
        const int32_t id  = choose_here(r, s->draw[i].how, row), got = s->sampled[i].id;
        count->n_value++;
        if (got == id) continue;
        count->n_swap++;
        if (i % 2 && id >= 0 && got >= 0 && got < r->config->vocab) continue;
        return fm_fail(FM_E_DEVICE,
                       "--shadow: sample, tensor logits, row %d: token %d on the CPU, %d on the GPU",
                       i, (int)id, (int)got);
    }
    return FM_OK;
}

fm_status fm__shadow_choose(fm_run *r, const fm_batch *b, const float *logits)
{
    fm_shadow  *s      = fm__shadow(r);
    fm_sampling greedy = fm_sampling_default(), drawn = greedy;
    greedy.temperature = 0;
    drawn.temperature  = 0.8f;
    drawn.top_k        = 40;
    drawn.top_p        = 0.9f;
    drawn.has_seed     = 1;
    drawn.seed         = 7;
    for (int i = 0; i < b->n_out; i++) s->draw[i] = (fm_draw){.how = i % 2 ? &drawn : &greedy};
    FM_TRY(fm_run_sample(s->gpu, b, s->draw, s->sampled));
    return compare_tokens(r, b, logits);
}
