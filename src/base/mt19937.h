/* SPDX-License-Identifier: Apache-2.0 */
/* The Mersenne Twister as Python's `random` and NumPy's legacy generator seed
 * and use it, so that a seed gives the samples their users know. */
#ifndef FM_BASE_MT19937_H
#define FM_BASE_MT19937_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t state[624];
    int      next;
} fm_mt;

void     fm_mt_seed_python(fm_mt *g, uint64_t seed); /* random.seed(seed) */
void     fm_mt_seed_numpy(fm_mt *g, uint32_t seed);  /* np.random.seed(seed) */
uint32_t fm_mt_u32(fm_mt *g);

uint32_t fm_mt_python_below(fm_mt *g, uint32_t m);               /* random.randrange(m), m > 0 */
void     fm_mt_python_shuffle(fm_mt *g, void *base, size_t n, size_t size); /* random.shuffle */
int64_t  fm_mt_numpy_randint(fm_mt *g, int64_t lo, int64_t hi);  /* np.random.randint(lo, hi) */
double   fm_mt_double(fm_mt *g); /* random.random() and np.random.random_sample(): [0, 1), 53 bits */

#endif
