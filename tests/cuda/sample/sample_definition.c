/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "definition.h"
#include "llm/sample/sample.h"

void right_sample(const fm_sampling *p, float *logits, int vocab, const int32_t *output,
                  int n_output, const int32_t *eos, int n_eos, right_sampled *out)
{
    fm_sampler *s = NULL;
    fm_sampled  r;
    if (fm_sampler_create(&s, vocab) != FM_OK) return;
    fm_sample(s, p, logits, output, n_output, eos, n_eos, &r);
    fm_sampler_destroy(s);
    *out = (right_sampled){.id = r.id, .logprob = r.logprob, .n_top = r.n_top};
    memcpy(out->top, r.top, sizeof r.top);
}
