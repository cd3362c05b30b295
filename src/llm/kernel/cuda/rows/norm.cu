/* SPDX-License-Identifier: Apache-2.0 */
/* One block per row: thread t takes columns 4t, 4t + 1024, … and keeps them, so
 * the row is read once and the order of the sum follows from the width alone. */
#include "llm/kernel/cuda/fp8/quantise.cuh"
#include "llm/kernel/cuda/rows/combine.cuh"

enum {
    STRIDE = 4 * FM__ROW_THREADS,
    AHEAD  = 2, /* fours of columns whose experts are requested at once, if there are more */
};

FM_DEVICE int column(int i)
{
    return 4 * (int)threadIdx.x + i * STRIDE;
}

/* v += what the row's experts and `add` make; the slots lie in shared memory, so that registers
 * are left for loads. */
template <int V>
FM_DEVICE void add_experts(float4 (&v)[V], const fm_cuda_combine_args &a, size_t row)
{
    constexpr int        MANY = V < AHEAD ? V : AHEAD;
    __shared__ fm__slots slots;
    fm__slots_begin(slots, a, row);
#pragma unroll
    for (int i = 0; i < V; i += MANY) {
        float4 sum[MANY];
        fm__combined<MANY>(sum, slots, a, row, column(i), STRIDE);
#pragma unroll
        for (int j = 0; j < MANY; j++) v[i + j] = fm__sum4(v[i + j], sum[j]);
    }
}

template <int V, bool EXPERTS>
FM_DEVICE void add_sum(float4 (&v)[V], const fm_cuda_rmsnorm_args &a, size_t row)
{
    const float *y = a.add + row * (size_t)a.width;
    if constexpr (EXPERTS)
        add_experts<V>(v, a.experts, row);
    else
#pragma unroll
        for (int i = 0; i < V; i++)
            if (column(i) < a.width) v[i] = fm__sum4(v[i], fm__load4(y + column(i)));
}

/* The thread's columns, after the residual sum if there is one. */
template <int V, bool EXPERTS>
FM_DEVICE void take(float4 (&v)[V], const fm_cuda_rmsnorm_args &a, size_t row)
{
    float *x = a.x + row * (size_t)a.width;
#pragma unroll
    for (int i = 0; i < V; i++)
        v[i] = column(i) < a.width ? fm__load4(x + column(i)) : make_float4(0, 0, 0, 0);
    if (!a.add) return;
    add_sum<V, EXPERTS>(v, a, row);
    if (a.gather) return;
#pragma unroll
    for (int i = 0; i < V; i++)
        if (column(i) < a.width) fm__store4(x + column(i), v[i]);
}

template <int V> FM_DEVICE void take_weights(float4 (&w)[V], const fm_cuda_rmsnorm_args &a)
{
#pragma unroll
    for (int i = 0; i < V; i++)
        w[i] = column(i) < a.width ? fm__load4(a.w + column(i)) : make_float4(0, 0, 0, 0);
}

/* A warp has 128 columns: four of each lane, zeros behind the row. */
FM_DEVICE void quantise_columns(const fm_cuda_rmsnorm_args &a, int col, uint2 bf16x4)
{
    const int        blocks = (a.width + 127) / 128;
    const fm_quantum q = fm__quantum(fm_warp_max(fm__more(fm__more(0, bf16x4.x), bf16x4.y)));
    if (col >= a.width) return;
    *(uint32_t *)(a.y8 + (size_t)blockIdx.x * (size_t)a.width + col) =
        fm__quantised4(bf16x4.x, bf16x4.y, q);
    if (threadIdx.x % 32 == 0) a.y8_scale[(size_t)blockIdx.x * (size_t)blocks + col / 128] = q.scale;
}

template <int V, bool EXPERTS>
FM_KERNEL(FM__ROW_THREADS)
norm_rows(const fm_cuda_rmsnorm_args a)
{
    __shared__ float part[FM__ROW_WARPS];
    constexpr bool   EARLY = V <= (EXPERTS ? 2 : 8); /* weights are loaded before the wait */
    float4           v[V], w[V];
    float            sum = 0;
    fm_grid_release();
    if (EARLY) take_weights<V>(w, a);
    fm_grid_wait();
    take<V, EXPERTS>(v, a, a.gather ? (size_t)a.gather[blockIdx.x] : blockIdx.x);
#pragma unroll
    for (int i = 0; i < V; i++)
        sum += (v[i].x * v[i].x + v[i].y * v[i].y) + (v[i].z * v[i].z + v[i].w * v[i].w);
    const float s = 1.0f / sqrtf(fm__block_sum(sum, part) / (float)a.width + a.eps);
    if (!EARLY) take_weights<V>(w, a);
    uint16_t *y = a.y + (size_t)blockIdx.x * (size_t)a.width;
#pragma unroll
    for (int i = 0; i < V; i++) {
        const uint2 out = make_uint2(fm_bf16x2_of_f32(v[i].x * s * w[i].x, v[i].y * s * w[i].y),
                                     fm_bf16x2_of_f32(v[i].z * s * w[i].z, v[i].w * s * w[i].w));
        if (column(i) < a.width) *(uint2 *)(y + column(i)) = out;
        if (a.y8) quantise_columns(a, column(i), out); /* behind the row, v and w are zeros */
    }
}

template <int V, bool EXPERTS>
static void launch(const fm_cuda_rmsnorm_args *a, fm_stream stream)
{
    FM_LAUNCH_EARLY((norm_rows<V, EXPERTS>), (unsigned)a->n_row, FM__ROW_THREADS, 0, stream, *a);
}

template <int V> static void launch_way(const fm_cuda_rmsnorm_args *a, fm_stream stream)
{
    if (a->experts.top_k)
        launch<V, true>(a, stream);
    else
        launch<V, false>(a, stream);
}

fm_status fm_cuda_rmsnorm(const fm_cuda_rmsnorm_args *a, fm_stream stream)
{
    const fm_cuda_combine_args *e = &a->experts;
    FM_BUG_UNLESS(a->width > 0 && a->width % 4 == 0);
    FM_BUG_UNLESS(!e->top_k ||
                  (e->y == a->add && e->width == a->width && a->width <= FM_CUDA_NORM_EXPERTS));
    if (a->width > FM_CUDA_NORM_MAX)
        return fm_fail(FM_E_NOSUP, "rows of %d elements: the GPU takes at most %d", a->width,
                       FM_CUDA_NORM_MAX);
    if (a->n_row == 0) return FM_OK;
    if (a->width <= STRIDE)
        launch_way<1>(a, stream);
    else if (a->width <= 2 * STRIDE)
        launch_way<2>(a, stream);
    else if (a->width <= 8 * STRIDE)
        launch_way<8>(a, stream);
    else
        launch<FM_CUDA_NORM_MAX / STRIDE, false>(a, stream);
    return fm_cuda_launched("norm_rows");
}
