/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator itself: what it computes, and what it refuses. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/number.h"
#include "check.h"
#include "llm/kernel/cuda/ptx/ptx.cuh"

/* --- threads, barriers, shared memory --------------------------------------- */

FM_KERNEL(256) reverse(int *x, int n)
{
    FM_SHARED_BYTES(memory);
    int *line = (int *)memory;
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        line[i] = x[blockIdx.x * (unsigned)n + (unsigned)i];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        x[blockIdx.x * (unsigned)n + (unsigned)i] = line[n - 1 - i];
}

FM_TEST(blocks_reverse_their_part)
{
    const int        n = 1000, n_block = 3;
    std::vector<int> x(n * n_block), want(n * n_block);
    for (int i = 0; i < n * n_block; i++) x[(size_t)i] = i;
    for (int i = 0; i < n * n_block; i++) want[(size_t)i] = i / n * n + n - 1 - i % n;
    fm_device<int> d(x);
    FM_LAUNCH(reverse, n_block, 256, n * sizeof(int), NULL, d.data(), n);
    FM_CHECK_EQUAL(d.host(), want);
}

FM_KERNEL(64) places(int *out)
{
    const unsigned block  = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] = (int)(block * 1000 + thread);
}

FM_TEST(indices_of_threads_and_blocks)
{
    fm_device<int> d(12 * 24);
    FM_LAUNCH(places, dim3(2, 3, 2), dim3(4, 3, 2), 0, NULL, d.data());
    const std::vector<int> got = d.host();
    for (size_t i = 0; i < got.size(); i++) FM_CHECK(got[i] == (int)(i / 24 * 1000 + i % 24));
}

template <int N> FM_KERNEL(N) sum_in_tree(float *out)
{
    __shared__ float part[N];
    part[threadIdx.x] = (float)threadIdx.x;
    for (int half = N / 2; half; half /= 2) {
        __syncthreads();
        if ((int)threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + (unsigned)half];
    }
    if (threadIdx.x == 0) *out = part[0];
}

FM_TEST(barriers_hold_a_tree_together)
{
    fm_device<float> d(1);
    FM_LAUNCH(sum_in_tree<1024>, 1, 1024, 0, NULL, d.data());
    FM_CHECK(d.host()[0] == 1023 * 1024 / 2);
}

FM_KERNEL(128) hand_over(int *out)
{
    __shared__ int box[64];
    const int      t = (int)threadIdx.x;
    if (t < 64) box[t] = t * t;
    fm_barrier(1, 128);
    if (t >= 64) {
        out[t - 64] = box[127 - t];
        fm_barrier(2, 64); /* the other half is gone by then */
    }
}

FM_TEST(named_barriers)
{
    fm_device<int> d(64);
    FM_LAUNCH(hand_over, 1, 128, 0, NULL, d.data());
    const std::vector<int> got = d.host();
    for (int i = 0; i < 64; i++) FM_CHECK(got[(size_t)i] == (63 - i) * (63 - i));
}

/* Half of the warps bring numbers one after the other, and go on when there is room. */
FM_KERNEL(128) bring_and_sum(int *out)
{
    __shared__ int box[64];
    const int      t = (int)threadIdx.x;
    int            sum = 0;
    for (int i = 0; i < 5; i++) {
        if (t < 64) {
            if (i) fm_barrier(2, 128);
            box[t] = t * i;
            fm_barrier_arrive(1, 128);
        } else {
            fm_barrier(1, 128);
            sum += box[127 - t];
            if (i < 4) fm_barrier_arrive(2, 128);
        }
    }
    if (t >= 64) out[t - 64] = sum;
}

FM_TEST(barriers_at_which_only_one_side_waits)
{
    fm_device<int> d(64);
    FM_LAUNCH(bring_and_sum, 1, 128, 0, NULL, d.data());
    const std::vector<int> got = d.host();
    for (int i = 0; i < 64; i++) FM_CHECK(got[(size_t)i] == (63 - i) * 10);
}

/* --- warps ------------------------------------------------------------------ */

FM_KERNEL(64) shuffles(int *out)
{
    const int lane = (int)threadIdx.x % 32;
    int      *mine = out + threadIdx.x * 8;
    mine[0]        = __shfl_xor_sync(FM_WARP, lane, 5);
    mine[1]        = __shfl_down_sync(FM_WARP, lane, 3);
    mine[2]        = __shfl_up_sync(FM_WARP, lane, 3);
    mine[3]        = __shfl_sync(FM_WARP, lane, 35);
    mine[4]        = (int)__ballot_sync(FM_WARP, lane % 3 == 0);
    mine[5]        = (int)fm_warp_sum((float)lane);
    mine[6]        = (int)fm_warp_max((float)(lane ^ 21));
    mine[7] =
        lane < 16 ? __shfl_xor_sync(0x0000ffffu, lane, 1) : __shfl_sync(0xffff0000u, lane, 20);
}

FM_TEST(shuffles_and_votes)
{
    fm_device<int> d(64 * 8);
    FM_LAUNCH(shuffles, 1, 64, 0, NULL, d.data());
    const std::vector<int> got = d.host();
    for (int t = 0; t < 64; t++) {
        const int *g = &got[(size_t)t * 8], l = t % 32;
        FM_CHECK(g[0] == (l ^ 5) && g[1] == (l + 3 < 32 ? l + 3 : l) &&
                 g[2] == (l >= 3 ? l - 3 : l));
        FM_CHECK(g[3] == 3 && g[4] == 0x49249249 && g[5] == 496 && g[6] == 31);
        FM_CHECK(g[7] == (l < 16 ? l ^ 1 : 20));
    }
}

/* A 16x16 matrix through ldmatrix, mma by the unit matrix, and back. */
FM_KERNEL(32) through_tensor_core(float *out, const uint16_t *a, const uint16_t *b)
{
    __shared__ __align__(16) uint16_t sa[16 * 16], sb[16 * 8];
    const int                         lane = (int)threadIdx.x;
    for (int i = lane; i < 256; i += 32) sa[i] = a[i];
    for (int i = lane; i < 128; i += 32) sb[i] = b[i];
    __syncthreads();
    uint32_t fa[4], fb[2];
    float    d[4] = {1, 2, 3, 4};
    fm_ldmatrix_x4(fa, sa + lane % 16 * 16 + lane / 16 * 8);
    fm_ldmatrix_x2_trans(fb, sb + lane % 16 * 8);
    fm_mma_bf16_16816(d, fa, fb);
    for (int i = 0; i < 4; i++) out[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = d[i];
}

FM_TEST(mma_multiplies_what_ldmatrix_loads)
{
    fm_numbers            r(1);
    std::vector<uint16_t> a(256), b(128);
    for (uint16_t &x : a) x = fm_bf16_of_f32((float)(r.below(17) - 8));
    for (uint16_t &x : b) x = fm_bf16_of_f32((float)(r.below(17) - 8));
    fm_device<uint16_t> da(a), db(b);
    fm_device<float>    d(128);
    FM_LAUNCH(through_tensor_core, 1, 32, 0, NULL, d.data(), da.data(), db.data());
    std::vector<float> want(128);
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 8; j++) {
            want[i * 8 + j] = (float)(1 + j % 2 + i / 8 * 2);
            for (size_t k = 0; k < 16; k++)
                want[i * 8 + j] += fm_f32_of_bf16(a[i * 16 + k]) * fm_f32_of_bf16(b[k * 8 + j]);
        }
    FM_CHECK_EQUAL(d.host(), want);
}

FM_KERNEL(32) there_and_back(uint16_t *x)
{
    __shared__ __align__(16) uint16_t from[256], to[256];
    const int                         lane = (int)threadIdx.x;
    for (int i = lane; i < 256; i += 32) from[i] = x[i];
    __syncthreads();
    uint32_t r[4];
    fm_ldmatrix_x4_trans(r, from + lane * 8);
    fm_stmatrix_x4(to + lane * 8, r);
    __syncthreads();
    for (int i = lane; i < 256; i += 32) x[i] = to[i];
}

FM_TEST(matrices_are_transposed_on_the_way)
{
    std::vector<uint16_t> x(256), want(256);
    for (size_t i = 0; i < 256; i++) x[i] = (uint16_t)i;
    for (size_t i = 0; i < 256; i++) want[i] = (uint16_t)(i / 64 * 64 + i % 8 * 8 + i % 64 / 8);
    fm_device<uint16_t> d(x);
    FM_LAUNCH(there_and_back, 1, 32, 0, NULL, d.data());
    FM_CHECK_EQUAL(d.host(), want);
}

/* --- asynchronous copies ---------------------------------------------------- */

FM_KERNEL(32) copy_late(uint32_t *early, uint32_t *late, const uint32_t *from)
{
    __shared__ __align__(16) uint32_t box[2][32 * 4];
    const unsigned                    t = threadIdx.x * 4;
    fm_cp_async16(&box[0][t], from + t, true);
    fm_cp_async_commit();
    fm_cp_async16(&box[1][t], from + t, t >= 64);
    fm_cp_async_commit();
    fm_cp_async_wait<1>();
    for (unsigned i = t; i < t + 4; i++) early[i] = box[0][i], early[128 + i] = box[1][i];
    fm_cp_async_wait<0>();
    for (unsigned i = t; i < t + 4; i++) late[i] = box[1][i];
}

FM_TEST(copies_land_at_the_wait_and_not_before)
{
    std::vector<uint32_t> x(128);
    for (size_t i = 0; i < 128; i++) x[i] = (uint32_t)i + 7;
    fm_device<uint32_t> d(x), early(256), late(128);
    FM_LAUNCH(copy_late, 1, 32, 0, NULL, early.data(), late.data(), d.data());
    const std::vector<uint32_t> e = early.host(), l = late.host();
    for (size_t i = 0; i < 128; i++) {
        FM_CHECK(e[i] == i + 7 && e[128 + i] == 0xffffffffu);
        FM_CHECK(l[i] == (i < 64 ? 0 : i + 7));
    }
}

/* --- numbers ---------------------------------------------------------------- */

FM_KERNEL(256) numbers(uint32_t *e4m3, uint32_t *back)
{
    const uint32_t b = threadIdx.x;
    uint32_t       two[2];
    fm_bf16x4_of_e4m3x4(two, b | b << 8 | b << 16 | b << 24);
    e4m3[b] = two[0] == two[1] && two[0] >> 16 == (two[0] & 0xffff) ? two[0] & 0xffff : 0xbad;
    back[b] = fm_e4m3x2_of_f32(fm_f32_of_bf16_lo(two[0]), 0);
}

FM_TEST(e4m3_there_and_back)
{
    fm_device<uint32_t> bf(256), back(256);
    FM_LAUNCH(numbers, 1, 256, 0, NULL, bf.data(), back.data());
    const std::vector<uint32_t> b = bf.host(), r = back.host();
    for (uint32_t i = 0; i < 256; i++) {
        if ((i & 0x7f) == 0x7f) continue; /* NaN: the contract gives 480 */
        FM_CHECK(fm_f32_of_bf16((uint16_t)b[i]) == fm_f32_of_fp8((uint8_t)i));
        FM_CHECK(r[i] == i);
    }
}

FM_KERNEL(32) halfway(uint32_t *out)
{
    if (threadIdx.x) return;
    out[0] = fm_e4m3x2_of_f32(17.0f, 19.0f); /* between 16, 18 and 18, 20 */
    out[1] = fm_e4m3x2_of_f32(1e9f, -1e9f);
    out[2] = fm_e4m3x2_of_f32(0x1p-10f, 0x1.8p-9f); /* between 0, 2^-9 and 2^-9, 2^-8 */
    out[3] = fm_bf16x2_of_f32(1.00390625f, 1.01171875f);
    out[4] = fm_f16x2_of_f32(2049, 2051); /* between 2048, 2050 and 2050, 2052 */
    out[5] = fm_f16x2_of_f32(1e9f, -1e9f);
    out[6] = fm_f16x2_of_f32(0x1p-25f, 0x1.8p-24f); /* between 0, 2^-24 and 2^-24, 2^-23 */
}

FM_KERNEL(256) f16_back(uint32_t *back)
{
    const uint32_t i = blockIdx.x * 256 + threadIdx.x;
    const float2   x = fm_f32_of_f16x2(i << 16 | (i ^ 0x8000));
    back[i]          = fm_f16x2_of_f32(x.y, x.x);
}

FM_TEST(f16_there_and_back)
{
    fm_device<uint32_t> back(65536);
    FM_LAUNCH(f16_back, 256, 256, 0, NULL, back.data());
    const std::vector<uint32_t> r = back.host();
    for (uint32_t i = 0; i < 65536; i++)
        if ((i & 0x7c00) != 0x7c00) FM_CHECK(r[i] == ((i ^ 0x8000) << 16 | i));
}

FM_TEST(rounding_is_to_nearest_even)
{
    fm_device<uint32_t> d(7);
    FM_LAUNCH(halfway, 1, 32, 0, NULL, d.data());
    const std::vector<uint32_t> got = d.host();
    FM_CHECK(fm_f32_of_fp8((uint8_t)got[0]) == 16 && fm_f32_of_fp8((uint8_t)(got[0] >> 8)) == 20);
    FM_CHECK(got[1] == 0xfe7e);
    FM_CHECK(fm_f32_of_fp8((uint8_t)got[2]) == 0 &&
             fm_f32_of_fp8((uint8_t)(got[2] >> 8)) == 0x1p-8f);
    FM_CHECK(got[3] == 0x3f823f80u);
    FM_CHECK(got[4] == 0x68026800u && got[5] == 0xfbff7bffu && got[6] == 0x00020000u);
}

/* --- mistakes --------------------------------------------------------------- */

FM_KERNEL(64) half_arrives(int *x)
{
    if (threadIdx.x < 32) __syncthreads();
    x[threadIdx.x] = 0;
}

FM_KERNEL(32) lanes_disagree(int *x)
{
    x[threadIdx.x] = threadIdx.x < 7 ? __shfl_sync(FM_WARP, 1, 0) : (int)__ballot_sync(FM_WARP, 1);
}

FM_KERNEL(32) lane_leaves(int *x)
{
    if (threadIdx.x == 3) return;
    x[threadIdx.x] = __shfl_sync(FM_WARP, 1, 0);
}

FM_KERNEL(32) writes_behind(int *x)
{
    FM_SHARED_BYTES(memory);
    ((volatile unsigned char *)memory)[128 + x[0]] = 1;
}

FM_KERNEL(32) copies_behind(const int *x)
{
    FM_SHARED_BYTES(memory);
    fm_cp_async16(memory + threadIdx.x * 16, x, true);
}

FM_KERNEL(32) copies_askew(const char *x)
{
    FM_SHARED_BYTES(memory);
    fm_cp_async16(memory, x + 4, true);
}

/* The sentence a launch dies with; empty if it lives. */
template <class F> static std::vector<char> last_words(const F &launch)
{
    int fd[2];
    if (pipe(fd) != 0) abort();
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], 2);
        launch();
        _exit(0);
    }
    close(fd[1]);
    std::vector<char> text(4096, 0);
    size_t            n = 0;
    ssize_t           got;
    while (n + 1 < text.size() && (got = read(fd[0], &text[n], text.size() - 1 - n)) > 0)
        n += (size_t)got;
    close(fd[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) text.assign(1, 0);
    return text;
}

#define DIES_SAYING(words, launch)                                                                 \
    do {                                                                                           \
        const std::vector<char> said = last_words([&]() { launch; });                              \
        if (!strstr(said.data(), words))                                                           \
            fm_check_failed(__FILE__, __LINE__, "expected \"%s\", heard \"%s\"", words,            \
                            said.data());                                                          \
    } while (0)

FM_KERNEL(32) add_to(int *x, int n)
{
    x[threadIdx.x] += n;
}

/* What is recorded runs when it is launched, each time, with the arguments of then. */
FM_TEST(recorded_work)
{
    fm_device<int>  x(std::vector<int>(32, 1));
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    int             n = 5;
    FM_CHECK(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    FM_LAUNCH(add_to, 1, 32, 0, NULL, x.data(), n);
    n = 7;
    FM_CHECK(cudaStreamSynchronize(NULL) != cudaSuccess);
    FM_CHECK(cudaMemsetAsync(x.data() + 31, 0, sizeof(int), NULL) == cudaSuccess);
    FM_CHECK(cudaStreamEndCapture(NULL, &graph) == cudaSuccess);
    FM_CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    FM_CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    FM_CHECK_EQUAL(x.host(), std::vector<int>(32, 1));
    std::vector<int> expected(32, 11);
    expected[31] = 0;
    for (int i = 0; i < 2; i++) FM_CHECK(cudaGraphLaunch(exec, NULL) == cudaSuccess);
    FM_CHECK_EQUAL(x.host(), expected);
    FM_CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
}

FM_TEST(mistakes_end_with_a_sentence)
{
    fm_device<int> d(64, 0);
    DIES_SAYING("deadlock: of 64 threads 32 wait at barrier 0 for 64, 32 have returned",
                FM_LAUNCH(half_arrives, 1, 64, 0, NULL, d.data()));
    DIES_SAYING("in one lane meets", FM_LAUNCH(lanes_disagree, 1, 32, 0, NULL, d.data()));
    DIES_SAYING("31 wait at __shfl_sync, 1 have returned",
                FM_LAUNCH(lane_leaves, 1, 32, 0, NULL, d.data()));
    DIES_SAYING("byte 128 of 128 bytes", FM_LAUNCH(writes_behind, 1, 32, 128, NULL, d.data()));
    DIES_SAYING("not in shared memory", FM_LAUNCH(copies_behind, 1, 32, 128, NULL, d.data()));
    DIES_SAYING("not 16-byte aligned",
                FM_LAUNCH(copies_askew, 1, 32, 128, NULL, (const char *)d.data()));
    DIES_SAYING("allowed are 49152", FM_LAUNCH(half_arrives, 1, 32, 50000, NULL, d.data()));
    DIES_SAYING("2048 threads", FM_LAUNCH(half_arrives, 1, 2048, 0, NULL, d.data()));
}
