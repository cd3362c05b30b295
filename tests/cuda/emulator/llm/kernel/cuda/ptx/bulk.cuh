/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's twin of src/llm/kernel/cuda/ptx/bulk.cuh: the same contracts, in
 * the same order. */
#ifndef FM_LLM_KERNEL_CUDA_BULK_CUH
#define FM_LLM_KERNEL_CUDA_BULK_CUH

#include "llm/kernel/cuda/ptx/ptx.cuh"
#include "phases.h"

typedef uint64_t fm_mbarrier;

/* --- barriers --------------------------------------------------------------- */

FM_DEVICE void fm_mbarrier_init(fm_mbarrier *b, int n_arrive) { fm_emu_phase_init(b, n_arrive); }

FM_DEVICE void fm_mbarrier_arrive(fm_mbarrier *b) { fm_emu_phase_arrive(b, 0); }

FM_DEVICE void fm_mbarrier_expect(fm_mbarrier *b, int bytes) { fm_emu_phase_arrive(b, bytes); }

FM_DEVICE void fm_mbarrier_arrive_copied(fm_mbarrier *b) { fm_emu_phase_arrive_copied(b); }

FM_DEVICE void fm_mbarrier_wait(fm_mbarrier *b, int parity) { fm_emu_phase_wait(b, parity); }

/* --- copies into shared memory ---------------------------------------------- */

typedef struct {
    const unsigned char *base;
    int64_t              rows, row_bytes, pitch;
    int                  box_rows;
} fm_tile_map;

/* Chunks are permuted by bits of the address, as the hardware does it. */
static inline void fm_emu_box(std::vector<fm_emu_piece> &pieces, void *smem, const fm_tile_map *map,
                              int at, int row)
{
    for (int i = 0; i < map->box_rows * 8; i++) {
        const int64_t   r = row + i / 8, x = at + i % 8 * 16;
        const uintptr_t to = (uintptr_t)smem + (uintptr_t)i * 16;
        const bool      in = r >= 0 && r < map->rows && x >= 0 && x < map->row_bytes;
        const int64_t   left = map->row_bytes - x;
        pieces.push_back({(unsigned char *)(to ^ (to >> 7 & 7) << 4),
                          in ? map->base + r * map->pitch + x : NULL,
                          in ? (int)(left < 16 ? left : 16) : 0});
    }
}

FM_DEVICE void fm_bulk_tile(void *smem, const fm_tile_map *map, int at, int row, fm_mbarrier *b)
{
    fm_emu_need_shared("bulk tile", smem, (size_t)map->box_rows * 128, 1024);
    if (at % 16) fm_emu_stop("a bulk tile from byte %d of its rows: not in sixteens", at);
    std::vector<fm_emu_piece> pieces;
    fm_emu_box(pieces, smem, map, at, row);
    fm_emu_bulk(b, pieces, map->box_rows * 128);
}

FM_DEVICE void fm_bulk_tile_prefetch(const fm_tile_map *, int, int) {}

FM_DEVICE void fm_tile_map_prefetch(const fm_tile_map *) {}

/* --- registers of a warpgroup ----------------------------------------------- */

template <int N> FM_DEVICE void fm_registers_down() {}

template <int N> FM_DEVICE void fm_registers_up() {}

/* --- on the host ------------------------------------------------------------ */

static inline fm_status fm_tile_map_rows(fm_tile_map *map, const void *base, int64_t rows,
                                         int64_t row_bytes, int64_t pitch, int box_rows)
{
    if ((uintptr_t)base % 16 || pitch % 16 || box_rows < 1 || box_rows > 256 || rows < 1)
        fm_emu_stop("a tile map of %lld rows, %lld bytes apart, at %p, in boxes of %d",
                    (long long)rows, (long long)pitch, base, box_rows);
    *map = {(const unsigned char *)base, rows, row_bytes, pitch, box_rows};
    return FM_OK;
}

#endif
