/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/weights/config.h"

#include <math.h>
#include <stddef.h>

#include "base/status.h"

#define PI 3.14159265358979323846

/* YaRN's magnitude m(s, a): 1 unless the context is stretched. */
static double magnitude(double s, double a)
{
    return s <= 1 ? 1 : 0.1 * a * log(s) + 1;
}

float fm_attention_scale(const fm_model_config *c)
{
    const double m = c->yarn ? magnitude(c->yarn_factor, c->yarn_mscale_all_dim) : 1;
    return (float)(m * m / sqrt(c->nope + c->rope));
}

float fm_rope_magnitude(const fm_model_config *c)
{
    if (!c->yarn) return 1;
    if (c->yarn_attention_factor > 0) return (float)c->yarn_attention_factor;
    const double s = c->yarn_factor;
    if (c->yarn_mscale != 0 && c->yarn_mscale_all_dim != 0)
        return (float)(magnitude(s, c->yarn_mscale) / magnitude(s, c->yarn_mscale_all_dim));
    return (float)magnitude(s, 1);
}

/* The pair index (not an integer) whose wave turns r times over the original
 * context. */
static double turns_at(const fm_model_config *c, double r)
{
    return c->rope * log(c->yarn_original / (2 * PI * r)) / (2 * log(c->rope_theta));
}

/* Pairs up to `low` keep their frequency, those from `high` on are slowed by
 * the whole factor, linear between. */
static void yarn_ramp(const fm_model_config *c, double *low, double *high)
{
    double lo = turns_at(c, c->yarn_beta_fast), hi = turns_at(c, c->yarn_beta_slow);
    if (c->yarn_truncate) {
        lo = floor(lo);
        hi = ceil(hi);
    }
    lo = fmax(lo, 0);
    hi = fmin(hi, c->rope - 1); /* d - 1, not d/2 - 1: as published */
    if (lo == hi) hi += 0.001;
    *low  = lo;
    *high = hi;
}

void fm_rope_frequencies(const fm_model_config *c, float *inv_freq)
{
    double low = 0, high = 1;
    if (c->yarn) yarn_ramp(c, &low, &high);
    for (int i = 0; i < c->rope / 2; i++) {
        const double f = pow(c->rope_theta, -2.0 * i / c->rope);
        if (!c->yarn) {
            inv_freq[i] = (float)f;
            continue;
        }
        const double ramp = fmin(fmax((i - low) / (high - low), 0), 1);
        inv_freq[i]       = (float)(f / c->yarn_factor * ramp + f * (1 - ramp));
    }
}

void fm_rope_table(const fm_model_config *c, int max_context, float *cos, float *sin)
{
    const int   half = c->rope / 2;
    const float mag  = fm_rope_magnitude(c);
    float       freq[512];
    FM_BUG_UNLESS(half <= 512);
    fm_rope_frequencies(c, freq);
    for (int pos = 0; pos < max_context; pos++)
        for (int i = 0; i < half; i++) {
            const float  angle = (float)pos * freq[i];
            const size_t at    = (size_t)pos * (size_t)half + (size_t)i;
            cos[at]            = cosf(angle) * mag;
            sin[at]            = sinf(angle) * mag;
        }
}

static int64_t attention_params(const fm_model_config *c)
{
    const int64_t D = c->hidden, H = c->n_head, qk = c->nope + c->rope;
    int64_t       n = (c->kv_lora + c->rope) * D + c->kv_lora; /* kv_down and its norm */
    n += H * (c->nope + c->v_dim) * c->kv_lora + D * H * c->v_dim;
    n += c->q_lora ? c->q_lora * (D + 1 + H * qk) : H * qk * D;
    return n;
}

static int64_t mlp_params(const fm_model_config *c, int64_t inter)
{
    return 3 * inter * c->hidden;
}

static int64_t ffn_params(const fm_model_config *c, int layer, int n_expert_used)
{
    if (!fm_layer_is_moe(c, layer)) return mlp_params(c, c->dense_inter);
    const int64_t bias = c->route == FM_ROUTE_NOAUX_TC ? c->n_expert : 0;
    return (int64_t)c->n_expert * c->hidden + bias +
           mlp_params(c, (int64_t)c->n_shared * c->moe_inter) +
           n_expert_used * mlp_params(c, c->moe_inter);
}

static int64_t count(const fm_model_config *c, int n_expert_used)
{
    int64_t n = (int64_t)c->vocab * c->hidden + c->hidden; /* head and last norm */
    for (int l = 0; l < c->n_layer; l++)
        n += attention_params(c) + 2 * c->hidden + ffn_params(c, l, n_expert_used);
    return n;
}

int64_t fm_param_count(const fm_model_config *c)
{
    return (int64_t)c->vocab * c->hidden + count(c, c->n_expert);
}

int64_t fm_param_active(const fm_model_config *c)
{
    return c->hidden + count(c, c->top_k); /* one row of the embedding */
}
