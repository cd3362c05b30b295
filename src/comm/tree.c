/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/tree.h"

#include <string.h>

enum { TILE = 2048 }; /* numbers: a few tiles stay in the first cache */

/* One definition for both types, so that they cannot differ. */
#define FM_TREE(type, suffix)                                                                      \
    void fm_tree_add_##suffix(type *out, const type *low, const type *high, size_t len)            \
    {                                                                                              \
        for (size_t i = 0; i < len; i++) out[i] = low[i] + high[i];                                \
    }                                                                                              \
                                                                                                   \
    static void sum_tile_##suffix(type *out, type *const *part, int n, size_t at, size_t len)      \
    {                                                                                              \
        int stride = 1;                                                                            \
        for (; 2 * stride < n; stride *= 2)                                                        \
            for (int i = 0; i + stride < n; i += 2 * stride)                                       \
                fm_tree_add_##suffix(part[i] + at, part[i] + at, part[i + stride] + at, len);      \
        fm_tree_add_##suffix(out + at, part[0] + at, part[stride] + at, len);                      \
    }                                                                                              \
                                                                                                   \
    void fm_tree_sum_##suffix(type *out, type *const *part, int n, size_t len)                     \
    {                                                                                              \
        if (n == 1) {                                                                              \
            if (out != part[0]) memcpy(out, part[0], len * sizeof *out);                           \
            return;                                                                                \
        }                                                                                          \
        for (size_t at = 0; at < len; at += TILE)                                                  \
            sum_tile_##suffix(out, part, n, at, len - at < TILE ? len - at : TILE);                \
    }

FM_TREE(float, f32)
FM_TREE(double, f64)
