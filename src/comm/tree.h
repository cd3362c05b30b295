/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which numbers of several ranks are added: neighbours first,
 * then pairs of pairs, by index.
 *
 *     0   1   2   3   4   5   6          7 parts
 *     └─+─┘   └─+─┘   └─+─┘   │
 *       └───+───┘       └──+──┘
 *           └───────+──────┘
 *
 * A block of 2^k neighbours that begins at a multiple of 2^k is a subtree.
 * So eight parts have the same sum, bit for bit, on one rank that holds all
 * eight as on two with four each or on eight with one. */
#ifndef FM_COMM_TREE_H
#define FM_COMM_TREE_H

#include <stddef.h>

/* out[len] = the sum of part[0..n)[len].  The parts are used as scratch; out
 * may be part[0]. */
void fm_tree_sum_f32(float *out, float *const *part, int n, size_t len);

void fm_tree_sum_f64(double *out, double *const *part, int n, size_t len);

/* out = low + high, where low stands left in the tree; out may be either. */
void fm_tree_add_f32(float *out, const float *low, const float *high, size_t len);
void fm_tree_add_f64(double *out, const double *low, const double *high, size_t len);

#endif
