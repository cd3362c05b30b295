/* SPDX-License-Identifier: Apache-2.0 */
/* Dummy weights against the CPU's, bit for bit. */
#include "check.h"
#include "definition.h"
#include "llm/kernel/cuda/weights/dummy.h"

typedef std::vector<uint8_t> bytes;

/* What the CPU puts into rows of dst; n rows of k at (row0, col0). */
static void fill_right(bytes *dst, const fm_cuda_dummy_args &a)
{
    const int64_t size = (int64_t)fm_dtype_bytes(a.type);
    for (int64_t r = 0; r < a.n; r++) {
        const int64_t  to   = r / a.group * a.spread + r % a.group + a.first;
        const uint64_t i    = (uint64_t)((a.row0 + r) * a.cols + a.col0);
        const uint64_t edge = (i | 0xffffffffu) + 1, n = (uint64_t)a.k,
                       before = i + n > edge ? edge - i : n;
        uint8_t *out          = dst->data() + to * a.ld * size;
        right_dummy(out, a.type, a.key, i, (uint32_t)before, a.centre, a.step);
        if (before < n)
            right_dummy(out + before * (uint64_t)size, a.type, a.key, edge, (uint32_t)(n - before),
                        a.centre, a.step);
    }
}

static void check_dummy(fm_cuda_dummy_args a, size_t dst_rows)
{
    const size_t       n = dst_rows * (size_t)a.ld * fm_dtype_bytes(a.type);
    fm_device<uint8_t> dst(n, 0xcc);
    bytes              want(n, 0xcc);
    a.dst = dst.data();
    FM_CHECK(fm_cuda_dummy(&a, NULL) == FM_OK);
    fill_right(&want, a);
    FM_CHECK_EQUAL(dst.host(), want);
}

static fm_cuda_dummy_args tensor(fm_dtype type, int64_t n, int64_t k)
{
    fm_cuda_dummy_args a = {};
    a.type = type, a.key = 0x123456789abcdef0u, a.step = 3.1e-9f;
    a.cols = k, a.n = n, a.k = k, a.ld = k, a.group = 1, a.spread = 1;
    return a;
}

FM_TEST(whole_tensors_of_every_type)
{
    for (const fm_dtype type : {FM_F32, FM_BF16, FM_FP8}) {
        check_dummy(tensor(type, 33, 128), 33);
        check_dummy(tensor(type, 7, 13), 7); /* no 16 bytes anywhere */
        check_dummy(tensor(type, 1, 1), 1);
        check_dummy(tensor(type, 0, 64), 1);
    }
}

FM_TEST(a_centre_as_norms_have)
{
    fm_cuda_dummy_args a = tensor(FM_BF16, 1, 2048);
    a.centre             = 1;
    check_dummy(a, 1);
    a.type = FM_F32;
    check_dummy(a, 1);
}

FM_TEST(a_part_of_a_tensor_into_wider_rows)
{
    fm_cuda_dummy_args a = tensor(FM_BF16, 5, 64);
    a.cols = 1000, a.row0 = 17, a.col0 = 100, a.ld = 72;
    check_dummy(a, 5);
    a.k = 63; /* odd: one by one */
    check_dummy(a, 5);
}

FM_TEST(gate_and_up_share_panels)
{
    fm_cuda_dummy_args a = tensor(FM_BF16, 48, 32);
    a.group = 16, a.spread = 32;
    check_dummy(a, 96);
    a.first = 16;
    check_dummy(a, 96);
    a.type = FM_FP8, a.n = 40; /* the last group is not full */
    check_dummy(a, 96);
}

/* The stream changes every 2^32 elements, here in the middle of a row. */
FM_TEST(beyond_four_thousand_million_elements)
{
    for (const fm_dtype type : {FM_F32, FM_BF16, FM_FP8}) {
        fm_cuda_dummy_args a = tensor(type, 2, 64);
        a.cols = 100, a.row0 = ((int64_t)3 << 32) / 100, a.col0 = 32;
        check_dummy(a, 2);
    }
}
