/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/kernel/draft_head/draft_head.h"

#include "base/clones.h"

enum { MOST = 127, MIDDLE = 128, LANES = 16 };

static const float whole = 0x1.8p23f; /* a number added to it is rounded to an integer */

/* w[j, k] of a BF16 panel (gemm.h). */
static float weight_at(const fm_bf16 *panel, int j, int k)
{
    return fm_f32_of_bf16(panel[k / 2 * 2 * FM_PANEL + 2 * j + k % 2]);
}

/* x times `by`, from -127 to 127; NaN becomes one of them: what is drafted from it does not matter. */
static inline int rounded(float x, float by)
{
    const float y = x * by, low = y >= -MOST ? y : -MOST, z = low <= MOST ? low : MOST;
    return (int)(z + whole) - (int)whole;
}

static inline float factor_of(float most) { return most > 0 ? MOST / most : 0; }

void fm_draft_head_pack(fm_draft_head *h, int i, const void *bf16_panel)
{
    int8_t         *to = h->panel + (size_t)i * fm_draft_panel_bytes(h->k);
    fm_draft_words *of = &h->words[i];
    for (int j = 0; j < FM_PANEL; j++) {
        float most = 0;
        int   sum  = 0;
        for (int k = 0; k < h->k; k++) {
            const float w = weight_at(bf16_panel, j, k), size = w < 0 ? -w : w;
            most          = size > most ? size : most;
        }
        for (int k = 0; k < h->k; k++) {
            const int w = rounded(weight_at(bf16_panel, j, k), factor_of(most));
            to[k / 4 * 4 * FM_PANEL + 4 * j + k % 4] = (int8_t)w;
            sum += w;
        }
        of->shift[j] = MIDDLE * sum;
        of->scale[j] = most;
    }
}

/* Independent lanes, so that the compiler may use vector maxima; NaN is passed over. */
FM_CLONES static float largest_size(const fm_bf16 *x, int k)
{
    float lane[LANES] = {0};
    for (int i = 0; i < k; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const float a = fm_f32_of_bf16(x[i + j] & 0x7fff);
            lane[j]       = a > lane[j] ? a : lane[j];
        }
    for (int half = LANES / 2; half; half /= 2)
        for (int j = 0; j < half; j++) lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
    return lane[0];
}

FM_CLONES static void round_all(uint8_t *restrict q, const fm_bf16 *restrict x, float by, int k)
{
    for (int i = 0; i < k; i++) q[i] = (uint8_t)(rounded(fm_f32_of_bf16(x[i]), by) + MIDDLE);
}

float fm_draft_head_row(uint8_t *q, const fm_bf16 *x, int k)
{
    const float most = largest_size(x, k);
    round_all(q, x, factor_of(most), k);
    return most / (MOST * MOST);
}

static float logit(const fm_draft_head *h, const uint8_t *q, float row_scale, int panel, int j)
{
    const int8_t *w   = h->panel + (size_t)panel * fm_draft_panel_bytes(h->k) + 4 * j;
    int32_t       sum = 0;
    for (int k = 0; k < h->k; k += 4, w += 4 * FM_PANEL)
        for (int i = 0; i < 4; i++) sum += q[k + i] * w[i];
    return (float)(sum - h->words[panel].shift[j]) * (h->words[panel].scale[j] * row_scale);
}

void fm__draft_head_ref(float *restrict c, const uint8_t *const *restrict q,
                        const float *restrict row_scale, const fm_draft_head *h, int first, int n,
                        int m)
{
    for (int p = 0; p < n; p++)
        for (int i = 0; i < m; i++)
            for (int j = 0; j < FM_PANEL; j++) *c++ = logit(h, q[i], row_scale[i], first + p, j);
}

/* The level AVX-512 includes VNNI (base/cpu.c). */
fm_draft_head_fn *fm_draft_head_pick(void)
{
    if (fm_cpu_isa() >= FM_ISA_AMX) return fm__draft_head_amx;
    return fm_cpu_isa() >= FM_ISA_AVX512 ? fm__draft_head_avx512 : NULL;
}
