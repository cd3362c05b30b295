/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps of the device: recorded, they come in the order of the stream, each time anew. */
#include "llm/kernel/cuda/stamp/stamp.h"

#include "check.h"
#include "device/cuda/graph.h"

enum { N = 64 };

static std::vector<uint64_t> replay(fm_graph g, const fm_device<uint64_t> &at)
{
    FM_CHECK(fm_cuda_graph_start(g, NULL) == FM_OK);
    return at.host();
}

FM_TEST(stamps_in_recorded_work)
{
    fm_device<uint64_t> at(N, 0);
    cudaStream_t        s;
    fm_graph            g = NULL;
    fm_check_cuda(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    FM_CHECK(fm_cuda_record_begin(s) == FM_OK);
    for (int i = 0; i < N; i++) FM_CHECK(fm_cuda_stamp(at.data() + i, s) == FM_OK);
    FM_CHECK(fm_cuda_record_end(s, &g) == FM_OK);
    FM_CHECK(at.host()[0] == 0);
    const std::vector<uint64_t> first = replay(g, at), t = replay(g, at);
    uint64_t                    tick = t[N - 1] - t[0];
    for (int i = 1; i < N; i++) {
        FM_CHECK(t[i] >= t[i - 1]);
        if (t[i] > t[i - 1] && t[i] - t[i - 1] < tick) tick = t[i] - t[i - 1];
    }
    FM_CHECK(t[0] >= first[N - 1] && t[N - 1] > t[0]);
    printf("a stamp takes %.0f ns; the clock's smallest step seen is %llu ns\n",
           (double)(t[N - 1] - t[0]) / (N - 1), (unsigned long long)tick);
    fm_cuda_graph_destroy(g);
    fm_check_cuda(cudaStreamDestroy(s), "stream");
}
