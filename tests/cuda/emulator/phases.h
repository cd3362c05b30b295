/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers in shared memory that count arrivals and bytes (mbarrier), and copies
 * that report to them.  A copy lands when no thread of the block can go on: until
 * then its target is poison. */
#ifndef FM_TESTS_CUDA_EMULATOR_PHASES_H
#define FM_TESTS_CUDA_EMULATOR_PHASES_H

#include <stdint.h>

#include <vector>

#include "grid.h"

/* n bytes from `from`, zeros in the rest of the room. */
struct fm_emu_piece {
    unsigned char       *to;
    const unsigned char *from;
    int                  n;
    size_t               room = 16;
};

void fm_emu_phase_init(uint64_t *b, int n_arrive);
void fm_emu_phase_arrive(uint64_t *b, int bytes);
void fm_emu_phase_arrive_copied(uint64_t *b); /* once copies of this thread have landed */
void fm_emu_phase_wait(uint64_t *b, int parity);
void fm_emu_bulk(uint64_t *b, const std::vector<fm_emu_piece> &pieces, int bytes);

/* For grid.cpp. */
bool fm_emu_land_next(); /* false: nothing is under way */
void fm_emu_need_no_bulk();
int  fm_emu_phase_parity(const uint64_t *b); /* of the phase that is under way */

#endif
