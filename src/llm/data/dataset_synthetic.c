/* SPDX-License-Identifier: Apache-2.0 */
/* The "synthetic" dataset: no file, ShareGPT's mean lengths (313 in, 194 out)
 * and a long tail.  A length is read off a quantile table, the 32nds of a
 * log-normal (sigma 1.2) clipped to [4, 1024], with straight lines between:
 * its mean is the table's trapezoid sum, exactly, and no libm is involved. */

#include "llm/data/dataset_internal.h"

enum { STEPS = 32, LONGEST = 1024 };

/* clang-format off */
static const int16_t input_quantile[STEPS + 1] = {
      4,  21,  31,  40,  49,  58,  67,  76,  86,  97, 108, 120, 132, 146,  160,  176, 194,
    213, 234, 258, 284, 314, 348, 388, 435, 492, 562, 651, 771, 943, 1024, 1024, 1024,
};
static const int16_t output_quantile[STEPS + 1] = {
      4,  11,  17,  22,  26,  31,  36,  41,  47,  53,  59,  65,  72,  79,  87,  96,  105,
    116, 127, 140, 154, 171, 189, 211, 236, 267, 305, 354, 418, 512, 663, 984, 1024,
};
/* clang-format on */

static int draw_length(fm_mt *python, const int16_t *quantile)
{
    const double x = fm_mt_double(python) * STEPS;
    const int    i = (int)x;
    return (int)(quantile[i] + (x - i) * (quantile[i + 1] - quantile[i]) + 0.5);
}

fm_status fm__deal_synthetic(fm_dataset *d, fm__dealer *k)
{
    int32_t row[LONGEST];
    FM_TRY(fm__dataset_fits(k->opt->n_prompt, LONGEST));
    for (int i = 0; i < k->opt->n_prompt; i++) {
        const int n        = draw_length(&k->python, input_quantile);
        const int n_output = draw_length(&k->python, output_quantile);
        for (int j = 0; j < n; j++)
            row[j] = (int32_t)fm_mt_numpy_randint(&k->numpy, 0, k->opt->vocab);
        FM_TRY(fm__dataset_add(d, k, row, n, n_output));
    }
    return FM_OK;
}
