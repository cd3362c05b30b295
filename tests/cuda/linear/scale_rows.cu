/* SPDX-License-Identifier: Apache-2.0 */
/* A rank's rows of an E4M3 matrix may begin within 128 that share factors: they
 * give the bits the whole matrix gives. */
#include "check.h"
#include "llm/kernel/cuda/experts/experts.h"
#include "llm/kernel/cuda/linear/linear.h"

typedef std::vector<uint8_t>  bytes;
typedef std::vector<uint16_t> bf16s;
typedef std::vector<float>    floats;

enum { K = 160, N = 352, BLOCKS = (K + 127) / 128 };

static int blocks(int n)
{
    return (n + 127) / 128;
}

static bytes weights(fm_numbers &r, int n)
{
    bytes w((size_t)(n * K));
    for (uint8_t &x : w) x = (uint8_t)(r.u32() % 0x70 | (r.u32() & 0x80)); /* no NaN */
    return w;
}

static bf16s inputs(fm_numbers &r, int n)
{
    bf16s x((size_t)(n * K));
    for (uint16_t &v : x) v = (uint16_t)(0x3f00 + r.below(0x100) + (r.u32() & 0x8000));
    return x;
}

/* Rows [begin, end) of each of `parts` arrays of n rows of `wide` elements. */
template <class T>
static std::vector<T> cut(const std::vector<T> &all, int parts, int n, int wide, int begin, int end)
{
    std::vector<T> out;
    for (int p = 0; p < parts; p++)
        out.insert(out.end(), all.begin() + (p * n + begin) * wide,
                   all.begin() + (p * n + end) * wide);
    return out;
}

struct matrix {
    fm_device<uint8_t> w;
    fm_device<float>   scale;
    int                n, row0;
};

/* Rows [begin, end) of a matrix whose rows come in `parts`, interleaved by 16. */
static matrix shard(const bytes &w, const floats &scale, int parts, int begin, int end)
{
    return {fm_device<uint8_t>(cut(w, 1, 0, K, parts * begin, parts * end)),
            fm_device<float>(cut(scale, parts, blocks(N), BLOCKS, begin / 128, blocks(end))),
            parts * (end - begin), begin % 128};
}

/* shape: one of fm_cuda_wide; -1: tiles */
template <class T>
static std::vector<T> linear(const matrix &m, const bf16s &x, int rows, int swiglu, int shape = -1)
{
    const int           n = swiglu ? m.n / 2 : m.n;
    fm_device<uint16_t> dx(x);
    fm_device<T>        y((size_t)(rows * n));
    fm_cuda_linear_args a = {};
    a.x = dx.data(), a.w = m.w.data(), a.scale = m.scale.data(), a.scale_row0 = m.row0;
    a.y = y.data(), a.m = rows, a.n = m.n, a.k = K, a.ldx = a.ldw = K, a.ldy = n;
    a.n_batch = 1, a.swiglu = swiglu, a.n_sm = 3;
    FM_CHECK((shape < 0 ? fm_cuda_linear_tiles(&a, NULL)
                        : fm_cuda_linear_wide(&a, (fm_cuda_wide)shape, NULL)) == FM_OK);
    return y.host();
}

/* Columns [begin, end) of rows of n. */
template <class T> static std::vector<T> columns(const std::vector<T> &y, int n, int begin, int end)
{
    std::vector<T> out;
    for (size_t i = 0; i < y.size(); i += (size_t)n)
        out.insert(out.end(), y.begin() + (ptrdiff_t)i + begin, y.begin() + (ptrdiff_t)i + end);
    return out;
}

static const int cuts[][2] = {{0, 352}, {16, 352}, {48, 176}, {96, 144}, {112, 352}, {208, 320}};

FM_TEST(linear_from_any_sixteenth_row)
{
    FM_CHECK(fm_cuda_linear_init() == FM_OK);
    fm_numbers   r(1);
    const bytes  w = weights(r, N), pair = weights(r, 2 * N);
    const floats scale = r.floats((size_t)(2 * blocks(N) * BLOCKS), 0.5f, 2);
    for (int rows : {3, 70}) {
        const bf16s  x     = inputs(r, rows);
        const matrix plain = shard(w, scale, 1, 0, N), both = shard(pair, scale, 2, 0, N);
        const floats y     = linear<float>(plain, x, rows, 0);
        const bf16s  gated = linear<uint16_t>(both, x, rows, 1);
        for (const auto &c : cuts) {
            const matrix m = shard(w, scale, 1, c[0], c[1]), g = shard(pair, scale, 2, c[0], c[1]);
            for (int shape = -1; shape < FM_CUDA_N_WIDE; shape++) {
                FM_CHECK_EQUAL(linear<float>(m, x, rows, 0, shape), columns(y, N, c[0], c[1]));
                FM_CHECK_EQUAL(linear<uint16_t>(g, x, rows, 1, shape),
                               columns(gated, N, c[0], c[1]));
            }
        }
    }
}

static bf16s up(const matrix &m, const bf16s &x, int rows, int width = 8)
{
    fm_device<uint16_t>  h(x), middle((size_t)(rows * m.n / 2));
    fm_cuda_experts_args a = {};
    a.gate_up              = {m.w.data(), m.scale.data(), m.row0};
    a.h = h.data(), a.middle = middle.data(), a.n_row = rows, a.block_rows = width;
    a.D = K, a.I = m.n / 2, a.n_sm = 3;
    FM_CHECK(fm_cuda_experts_up(&a, NULL) == FM_OK);
    return middle.host();
}

static bf16s down(const matrix &m, const bf16s &x, int rows, int width = 16)
{
    fm_device<uint16_t>  middle(x), y((size_t)(rows * m.n));
    fm_cuda_experts_args a = {};
    a.down                 = {m.w.data(), m.scale.data(), m.row0};
    a.middle = middle.data(), a.pair_out = y.data(), a.n_row = rows, a.block_rows = width;
    a.D = m.n, a.I = K, a.n_sm = 3;
    FM_CHECK(fm_cuda_experts_down(&a, NULL) == FM_OK);
    return y.host();
}

FM_TEST(experts_from_any_sixteenth_row)
{
    FM_CHECK(fm_cuda_experts_init() == FM_OK);
    fm_numbers   r(2);
    const int    rows = 11;
    const bytes  w = weights(r, N), pair = weights(r, 2 * N);
    const floats scale = r.floats((size_t)(2 * blocks(N) * BLOCKS), 0.5f, 2);
    const bf16s  x = inputs(r, rows), gated = up(shard(pair, scale, 2, 0, N), x, rows);
    const bf16s  answer = down(shard(w, scale, 1, 0, N), x, rows);
    for (int width : {8, 32, 64})
        for (const auto &c : cuts) {
            FM_CHECK_EQUAL(up(shard(pair, scale, 2, c[0], c[1]), x, rows, width),
                           columns(gated, N, c[0], c[1]));
            FM_CHECK_EQUAL(down(shard(w, scale, 1, c[0], c[1]), x, rows, width),
                           columns(answer, N, c[0], c[1]));
        }
}
