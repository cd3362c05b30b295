/* SPDX-License-Identifier: Apache-2.0 */
/* FP8 panels to BF16 panels with their scales, 64 weights at a time: under one scale there are 128
 * magnitudes, so their BF16 numbers are computed once for each 128 k and then looked up byte by
 * byte.  A panel takes about as long as reading it from memory does, which happens meanwhile. */
#include "llm/kernel/gemm/widen_vbmi.h"

enum {
    LINE     = 64,
    PREFETCH = 16384, /* bytes between widening and prefetching */
};

void fm__widen_vbmi(void *restrict bf16, const void *restrict w, const float *restrict scale, int k)
{
    const char *from = w;
    char       *to   = bf16;
    for (int p = 0; p < k; p += FM__SCALE_K) {
        const fm__magnitudes t     = fm__scaled_magnitudes(scale[p / FM__SCALE_K * 2]);
        const int            pairs = fm__least(FM__SCALE_K, k - p) / 2;
        for (int q = 0; q < pairs; q++, from += LINE, to += 2 * LINE) {
            fm__fetch_soon(from + PREFETCH);
            fm__put_pair_row(to, fm__look_up(t, _mm512_loadu_si512(from)));
        }
    }
}
