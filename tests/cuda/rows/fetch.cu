/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of every length reach the device whole, and nothing behind them. */
#include "llm/kernel/cuda/rows/fetch.h"

#include "check.h"
#include "device/cuda/device.h"

typedef std::vector<uint8_t> bytes;

static void check_fetch(size_t n)
{
    const size_t       touched = (n + 15) / 16 * 16, room = touched + 64;
    fm_pinned<uint8_t> from(room);
    fm_device<uint8_t> to(room);
    bytes              want(room, 0xff);
    fm_numbers         r(n);
    for (size_t i = 0; i < room; i++) from.data()[i] = (uint8_t)r.u32();
    for (size_t i = 0; i < n; i++) want[i] = from.data()[i];
    FM_CHECK(fm_cuda_fetch(to.data(), from.data(), n, NULL) == FM_OK);
    bytes got = to.host();
    for (size_t i = n; i < touched; i++) got[i] = 0xff; /* may be anything */
    FM_CHECK_EQUAL(got, want);
}

FM_TEST(lists_of_every_length_arrive)
{
    for (size_t n : {0, 1, 15, 16, 17, 960, 4096, 4112, 10000}) check_fetch(n);
}

FM_TEST(long_lists_are_copied)
{
    for (size_t n : {FM_CUDA_FETCH_MOST - 1, FM_CUDA_FETCH_MOST + 0, FM_CUDA_FETCH_MOST + 1})
        check_fetch(n);
}

/* A list is there for what follows it, and the next one comes after that. */
FM_TEST(lists_follow_each_other)
{
    const size_t       n = 4096;
    fm_pinned<uint8_t> one(n), two(n);
    fm_device<uint8_t> to(n), copy(n);
    memset(one.data(), 1, n);
    memset(two.data(), 2, n);
    for (int i = 0; i < 20; i++) {
        FM_CHECK(fm_cuda_fetch(to.data(), one.data(), n, NULL) == FM_OK);
        FM_CHECK(fm_cuda_copy(copy.data(), to.data(), n, NULL) == FM_OK);
        FM_CHECK(fm_cuda_fetch(to.data(), two.data(), n, NULL) == FM_OK);
    }
    FM_CHECK_EQUAL(copy.host(), bytes(n, 1));
    FM_CHECK_EQUAL(to.host(), bytes(n, 2));
}
