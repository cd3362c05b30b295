/* SPDX-License-Identifier: Apache-2.0 */
/* Log-probabilities of tokens that are already there, and which may come. */
#include <math.h>

#include "base/argmax.h"
#include "llm/sample/sample_internal.h"

void fm__report_top(const float *distance, int vocab, int n, double log_z, fm_sampled *out)
{
    fm_top_logprob *top = out->top;
    for (int i = 0; i < vocab; i++) {
        if (!(distance[i] < INFINITY)) continue;
        if (out->n_top == n && distance[i] >= top[n - 1].logprob) continue;
        int at = out->n_top < n ? out->n_top++ : n - 1;
        for (; at > 0 && distance[i] < top[at - 1].logprob; at--) top[at] = top[at - 1];
        top[at] = (fm_top_logprob){i, distance[i]};
    }
    for (int i = 0; i < out->n_top; i++) top[i].logprob = (float)(-(double)top[i].logprob - log_z);
}

void fm_score(fm_sampler *s, float *logits, int32_t id, int n_top, fm_sampled *out)
{
    const float max = logits[fm_argmax(logits, s->vocab)];
    *out            = (fm_sampled){.id = id, .logprob = -INFINITY};
    if (!(max > -INFINITY)) return;
    const double log_z = log(fm__distances(logits, s->weight, s->vocab, max, 1));
    out->logprob       = (float)(-(double)logits[id] - log_z);
    if (n_top > 0) fm__report_top(logits, s->vocab, n_top, log_z, out);
}

void fm_sample_only(float *logits, int vocab, const uint32_t *allowed)
{
    for (int i = 0; i < vocab; i++)
        if (!(allowed[i / 32] >> i % 32 & 1)) logits[i] = -INFINITY;
}
