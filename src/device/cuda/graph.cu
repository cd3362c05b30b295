/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/graph.h"

#include <cuda_runtime.h>

#include "device/cuda/check.h"

fm_status fm_cuda_record_begin(fm_stream s)
{
    FM_CUDA(cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal));
    return FM_OK;
}

fm_status fm_cuda_record_end(fm_stream s, fm_graph *out)
{
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    FM_CUDA(cudaStreamEndCapture((cudaStream_t)s, &graph));
    const cudaError_t e = cudaGraphInstantiate(&exec, graph, 0);
    (void)cudaGraphDestroy(graph);
    if (e != cudaSuccess) return fm_fail(FM_E_DEVICE, "recording a step: %s", cudaGetErrorString(e));
    *out = exec;
    return FM_OK;
}

fm_status fm_cuda_graph_start(fm_graph g, fm_stream s)
{
    FM_CUDA(cudaGraphLaunch((cudaGraphExec_t)g, (cudaStream_t)s));
    return FM_OK;
}

void fm_cuda_graph_destroy(fm_graph g)
{
    if (g) (void)cudaGraphExecDestroy((cudaGraphExec_t)g);
}
