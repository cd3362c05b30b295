/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over the cached latents.  The form follows the token: see
 * attend_prompt.c (expanded) and attend_generated.c (absorbed). */
#include "llm/op/cpu/cpu_internal.h"

void fm__cpu_attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w)
{
    fm__attend_prompt(r, o, q, layer, w);
    fm__attend_generated(r, o, q, layer, w);
}
