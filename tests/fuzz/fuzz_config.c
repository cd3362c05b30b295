/* SPDX-License-Identifier: Apache-2.0 */
/* config.json, then optionally a NUL and overrides.  What is accepted must be
 * a model that can be laid out and rotated. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "llm/load/config_read.h"
#include "llm/weights/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static fm_dtype bf16(void *ctx, const char *tensor)
{
    (void)ctx, (void)tensor;
    return FM_BF16;
}

static void use(const fm_model_config *c)
{
    float      freq[512];
    fm_weights w;
    fm_slab    s = {0};

    FM_BUG_UNLESS(isfinite(fm_attention_scale(c)) && isfinite(fm_rope_magnitude(c)));
    fm_rope_frequencies(c, freq);
    for (int i = 0; i < c->rope / 2; i++) FM_BUG_UNLESS(isfinite(freq[i]));
    FM_BUG_UNLESS(fm_param_active(c) > 0 && fm_param_active(c) <= fm_param_count(c));
    if ((int64_t)c->n_layer * (c->n_expert + c->n_head) > 4096) return; /* slow, not wrong */
    const fm_weights_want want = {.act = FM_BF16, .dtype_of = bf16};
    if (fm_weights_layout(&w, c, &want, &s) != FM_OK) return;
    FM_BUG_UNLESS(s.used / 2 >= (size_t)fm_param_count(c));
    fm_weights_fini(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_model_config c;
    char           *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size]       = 0;
    const size_t len = strlen(text);
    if (fm_config_parse(&c, text, len, "input", len < size ? text + len + 1 : NULL) == FM_OK)
        use(&c);
    free(text);
    return 0;
}
