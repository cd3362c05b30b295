/* SPDX-License-Identifier: Apache-2.0 */
#include "definition.h"
#include "llm/op/cpu/cpu_internal.h"

void right_route(const fm_model_config *c, float *score, const float *bias, int32_t *expert,
                 float *weight)
{
    fm_cpu         cpu   = {.n_thread = 1};
    const fm_batch batch = {.n_row = 1};
    fm_run         run   = {.config = c, .batch = &batch, .backend = &cpu};
    fm__cpu_route(&run, (fm_routing){.expert = expert, .weight = weight},
                  (fm_f32s){.data = score, .width = c->n_expert}, bias);
}
