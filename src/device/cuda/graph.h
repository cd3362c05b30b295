/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a stream, recorded once and started again as a whole. */
#ifndef FM_DEVICE_CUDA_GRAPH_H
#define FM_DEVICE_CUDA_GRAPH_H

#include "base/status.h"
#include "device/cuda/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *fm_graph; /* NULL: none */

/* What is put into the stream from here on is recorded and does not run. */
fm_status fm_cuda_record_begin(fm_stream s);
fm_status fm_cuda_record_end(fm_stream s, fm_graph *out);
fm_status fm_cuda_graph_start(fm_graph g, fm_stream s);
void      fm_cuda_graph_destroy(fm_graph g);

#ifdef __cplusplus
}
#endif

#endif
