/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of work on a GPU, as C files that do not see CUDA's headers pass it on. */
#ifndef FM_DEVICE_CUDA_STREAM_H
#define FM_DEVICE_CUDA_STREAM_H

typedef void *fm_stream; /* a cudaStream_t; NULL is the default stream */
typedef void *fm_mark;   /* a cudaEvent_t: a place in that queue */

#endif
