/* SPDX-License-Identifier: Apache-2.0 */
/* Pages between a GPU's pool and host memory, and back. */
#ifndef FM_TESTS_CUDA_COPIES_MODEL_H
#define FM_TESTS_CUDA_COPIES_MODEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int n_layer, width, page_size, n_page;
    int e4m3, has_draft;
    int n_staged; /* pages gathered at once */
    int n_slot;   /* in host memory */
} fm_copies_shape;

typedef struct {
    int     n_wrong;      /* pages that did not arrive as they were */
    int64_t n_out, n_in;  /* transfers across the link */
    int     n_group;      /* of layers in which pages came in; 0: all at once */
    const char *why;      /* of a failure */
} fm_copies_result;

/* Pages page[i] go to slot[i], the pool is cleared, and they come back. */
fm_copies_result fm_copy_there_and_back(const fm_copies_shape *s, const int *page, const int *slot,
                                        int n);

#ifdef __cplusplus
}
#endif

#endif
