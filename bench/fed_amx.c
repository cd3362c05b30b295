/* SPDX-License-Identifier: Apache-2.0 */
/* Products as the kernels do them, on operands that stay in L1. */
#include "base/clock.h"
#include "bench/fed_amx.h"
#include "llm/kernel/tiles_amx.h"
#include "probe/peak.h"

enum { ROUNDS = 50000, LINE = 64, TILE = FM__TILE_ROWS * LINE };

double fm_bench_fed_amx(void)
{
    _Alignas(64) char x[TILE], w[2 * TILE];
    const double      flops = 2.0 * 16 * 16 * 32 * 2; /* of a pair */
    fm_peak_numbers(x, sizeof x);
    fm_peak_numbers(w, sizeof w);
    fm__shape_tiles(FM__TILE_ROWS);
    fm__memory_is_written();
    const double began = fm_now();
    for (int r = 0; r < ROUNDS; r++) fm__add_pair(x, LINE, w);
    return ROUNDS * flops / (fm_now() - began);
}
