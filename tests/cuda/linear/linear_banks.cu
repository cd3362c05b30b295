/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory answers 128 bytes at a time if they lie in different banks:
 * what a warp reads together must. */
#include "check.h"
#include "llm/kernel/cuda/ptx/fragment.cuh"

enum { ROWS = 8, CHUNKS = 16 };

/* Byte of each (row, chunk) under both orders, for rows of 128 and 256 bytes. */
FM_KERNEL(ROWS *CHUNKS) places(int *at)
{
    const int i = (int)threadIdx.x, r = i / CHUNKS, c = i % CHUNKS;
    at[i]                     = fm__chunk<256>(r, c);
    at[i + ROWS * CHUNKS]     = fm__chunk<128>(r, c % 8);
    at[i + 2 * ROWS * CHUNKS] = fm__chunk_pair<256>(r, c);
}

static std::vector<int> all_places()
{
    fm_device<int> d(3 * ROWS * CHUNKS);
    FM_LAUNCH(places, 1, ROWS * CHUNKS, 0, NULL, d.data());
    return d.host();
}

/* ldmatrix: 16 bytes of each of eight rows. */
FM_TEST(eight_rows_of_a_chunk_fill_the_banks)
{
    const std::vector<int> at = all_places();
    for (int table = 0; table < 2; table++)
        for (int c = 0; c < CHUNKS; c++) {
            unsigned seen = 0;
            for (int r = 0; r < ROWS; r++)
                seen |= 1u << at[(size_t)((table * ROWS + r) * CHUNKS + c)] / 16 % 8;
            FM_CHECK(seen == 0xff);
        }
}

/* 8-byte loads: half a warp reads two chunks of each of four rows. */
FM_TEST(four_rows_of_two_chunks_fill_the_banks)
{
    const std::vector<int> at = all_places();
    for (int r0 = 0; r0 < ROWS; r0 += 4)
        for (int c = 0; c < CHUNKS; c += 2) {
            unsigned seen = 0;
            for (int i = 0; i < 8; i++)
                seen |= 1u << at[(size_t)((2 * ROWS + r0 + i / 2) * CHUNKS + c + i % 2)] / 16 % 8;
            FM_CHECK(seen == 0xff);
        }
}

/* Every chunk has a place of its own within its row. */
FM_TEST(chunks_stay_in_their_row)
{
    const std::vector<int> at = all_places();
    for (int table = 0; table < 3; table++)
        for (int r = 0; r < ROWS; r++) {
            const int bytes = table == 1 ? 128 : 256;
            unsigned  seen  = 0;
            for (int c = 0; c < bytes / 16; c++) {
                const int byte = at[(size_t)((table * ROWS + r) * CHUNKS + c)];
                FM_CHECK(byte / bytes == r && byte % 16 == 0);
                seen |= 1u << byte % bytes / 16;
            }
            FM_CHECK(seen == (1u << bytes / 16) - 1);
        }
}
