/* SPDX-License-Identifier: Apache-2.0 */
/* Eight parts, spread evenly over 1, 2, 4 or 8 ranks, summed in the tree: rank
 * 0 prints a hash of the sum's bits, the same for every number of ranks and
 * every length of message they were part of. */
#include <inttypes.h>
#include <string.h>

#include "base/rng.h"
#include "comm/tree.h"
#include "rank.h"

enum { LEAVES = 8, LENGTH = 50000 };

static float part[LEAVES][LENGTH];

static void local_sum(const fm_comm *c)
{
    const int each = LEAVES / c->n_rank;
    float    *p[LEAVES];
    for (int k = 0; k < each; k++) {
        p[k] = part[k];
        for (size_t i = 0; i < LENGTH; i++)
            part[k][i] = ((float)(fm_rng_u32((uint64_t)(c->rank * each + k), i) >> 8) - 0x1p23f) *
                         (float)(1 << fm_rng_u32(3, i) % 20);
    }
    fm_tree_sum_f32(part[0], p, each, LENGTH);
}

int main(int argc, char **argv)
{
    fm_world    *w     = rank_open();
    fm_comm     *c     = fm_world_comm(w);
    const size_t piece = argc > 1 ? (size_t)atol(argv[1]) : LENGTH;
    CHECK(w, piece > 0 && LEAVES % c->n_rank == 0);
    local_sum(c);
    for (size_t at = 0; at < LENGTH; at += piece)
        CHECK(w, fm_all_reduce_f32(c, part[0] + at, LENGTH - at < piece ? LENGTH - at : piece) ==
                     FM_OK);
    uint64_t hash = 0;
    for (size_t i = 0; i < LENGTH; i++) {
        uint32_t bits;
        memcpy(&bits, &part[0][i], sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3u;
    }
    CHECK(w, fm_world_agree(w, "sum", hash, "bits") == FM_OK);
    if (c->rank == 0) printf("%016" PRIx64 "\n", hash);
    fm_world_close(w);
    return 0;
}
