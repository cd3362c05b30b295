/* SPDX-License-Identifier: Apache-2.0 */
/* The head in bytes, for drafts.  A draft is verified, so its logits need not be exact: one that
 * another word wins costs a draft, never a bit of the output.  Half the bytes of BF16 are read, and
 * an instruction multiplies four of them where it multiplies two of BF16.
 *
 *     q[k]     = round(127 x[k] / max |x|) + 128     a row, unsigned;   row_scale = max |x| / 127^2
 *     w8[j, k] = round(127 w[j, k] / max |w[j]|)     a word;            scale[j]  = max |w[j]|
 *     c[i, j]  = (sum_k q[i, k] w8[j, k] - 128 sum_k w8[j, k]) * (scale[j] * row_scale[i])
 *
 * Sums are exact, so every variant has the same bits.  Panels are those of gemm.h, [k/4][32][4] bytes, one behind the other.
 *
 * Contract (tests/check/draft_head.c)
 *   k        a multiple of 32, at most 2^15; panels 64-byte aligned
 *   n, m     any number of panels and rows; c is [n][m, 32]
 * No variant allocates, locks, logs or reads the environment. */
#ifndef FM_LLM_KERNEL_DRAFT_HEAD_DRAFT_HEAD_H
#define FM_LLM_KERNEL_DRAFT_HEAD_DRAFT_HEAD_H

#include <stddef.h>

#include "base/cpu.h"
#include "base/number.h"
#include "llm/kernel/gemm/gemm.h"

/* What belongs to a word of a panel beside its bytes. */
typedef struct {
    int32_t shift[FM_PANEL]; /* 128 sum_k w8 */
    float   scale[FM_PANEL];
} fm_draft_words;

typedef struct {
    int8_t         *panel; /* [n][k/4][32][4] */
    fm_draft_words *words; /* [n] */
    int             k;
} fm_draft_head;

static inline size_t fm_draft_panel_bytes(int k) { return (size_t)FM_PANEL * (size_t)k; }

/* Panel i of h from the BF16 panel of the same words. */
void fm_draft_head_pack(fm_draft_head *h, int i, const void *bf16_panel);
float fm_draft_head_row(uint8_t *q, const fm_bf16 *x, int k); /* returns row_scale */

/* Panels [first, first + n) of h times m rows. */
typedef void fm_draft_head_fn(float *restrict c, const uint8_t *const *restrict q,
                              const float *restrict row_scale, const fm_draft_head *h, int first,
                              int n, int m);

fm_draft_head_fn fm__draft_head_ref, fm__draft_head_avx512, fm__draft_head_amx;

/* The variant for this process; NULL: none is faster than the BF16 product. */
fm_draft_head_fn *fm_draft_head_pick(void);

#endif
