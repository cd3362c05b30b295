/* SPDX-License-Identifier: Apache-2.0 */
/* A ring between one warp that asks for copies and one that reads them: what comes,
 * where it lies, and that neither end runs into the other. */
#include "llm/kernel/cuda/ptx/bulk.cuh"

#include "check.h"

enum { ROWS = 16, TILE = ROWS * 128, STAGES = 3, LINE = 256 };

/* A stage: a tile by the map, and one 16-byte copy by each lane, of a line of bytes. */
enum { STAGE = TILE + 512, STAGE_PITCH = (STAGE + 1023) / 1024 * 1024 };

typedef struct {
    const unsigned char *lines;
    unsigned char       *out; /* [n_step][STAGE] */
    int                  n_step, row0;
} ring_args;

FM_DEVICE void fill_stage(unsigned char *stage, const ring_args &a, const fm_tile_map *map,
                          int step, fm_mbarrier *full)
{
    const int            lane = threadIdx.x & 31;
    const unsigned char *line = a.lines + step * LINE;
    fm_cp_async16(stage + TILE + lane * 16, line + lane % 16 * 16, lane != 3);
    fm_mbarrier_arrive_copied(full);
    if (lane) return;
    fm_mbarrier_expect(full, TILE);
    fm_bulk_tile(stage, map, step * 128, a.row0 + step, full);
}

FM_KERNEL(64) ring(const ring_args a, const __grid_constant__ fm_tile_map map)
{
    FM_SHARED_BYTES(bytes);
    __shared__ fm_mbarrier full[STAGES], empty[STAGES];
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; i++) {
            fm_mbarrier_init(&full[i], 33);
            fm_mbarrier_init(&empty[i], 32);
        }
    __syncthreads();
    for (int step = 0; step < a.n_step; step++) {
        const int      at = step % STAGES, round = step / STAGES & 1;
        unsigned char *stage = bytes + at * STAGE_PITCH;
        if (threadIdx.x < 32) {
            fm_mbarrier_wait(&empty[at], !round);
            fill_stage(stage, a, &map, step, &full[at]);
        } else {
            fm_mbarrier_wait(&full[at], round);
            for (int i = (int)threadIdx.x - 32; i < STAGE; i += 32)
                a.out[step * STAGE + i] = stage[i];
            fm_mbarrier_arrive(&empty[at]);
        }
    }
}

typedef std::vector<unsigned char> byte_list;

static byte_list random_bytes(uint64_t seed, size_t n)
{
    fm_numbers r(seed);
    byte_list  b(n);
    for (unsigned char &x : b) x = (unsigned char)r.below(256);
    return b;
}

/* The tile of one step as fm__chunk<128>() has it, outside of the matrix zeros. */
static void want_tile(unsigned char *to, const byte_list &matrix, int rows, int row_bytes,
                      int pitch, int row0, int step)
{
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < 128; i++) {
            const int  row = row0 + step + r, at = step * 128 + i;
            const bool is_in = row >= 0 && row < rows && at < row_bytes;
            const int  place = r * 128 + ((i / 16 ^ r % 8) * 16 + i % 16);
            to[place]        = is_in ? matrix[(size_t)(row * pitch + at)] : 0;
        }
}

/* The matrix ends inside of the last boxes, by rows and by bytes. */
FM_TEST(a_ring_of_tiles_and_single_copies)
{
    const int       rows = 20, row_bytes = 7 * 128 + 32, pitch = row_bytes + 16, n_step = 8;
    const byte_list matrix = random_bytes(1, (size_t)(rows * pitch)),
                    lines  = random_bytes(2, (size_t)(n_step * LINE));
    fm_device<unsigned char> on_matrix(matrix), on_lines(lines), out((size_t)(n_step * STAGE));
    for (int row0 : {0, 7}) {
        fm_tile_map map;
        FM_CHECK(fm_tile_map_rows(&map, on_matrix.data(), rows, row_bytes, pitch, ROWS) == FM_OK);
        const ring_args a = {on_lines.data(), out.data(), n_step, row0};
        FM_LAUNCH(ring, 1, 64, STAGES * STAGE_PITCH, NULL, a, map);
        byte_list want((size_t)(n_step * STAGE));
        for (int step = 0; step < n_step; step++) {
            unsigned char *to = &want[(size_t)(step * STAGE)];
            want_tile(to, matrix, rows, row_bytes, pitch, row0, step);
            for (int lane = 0; lane < 32; lane++)
                if (lane != 3)
                    memcpy(to + TILE + lane * 16,
                           &lines[(size_t)(step * LINE + lane % 16 * 16)], 16);
        }
        FM_CHECK_EQUAL(out.host(), want);
    }
}
