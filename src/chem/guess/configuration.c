/* SPDX-License-Identifier: Apache-2.0 */
/* Shells are filled in Madelung's order; the few exceptions among the transition
 * metals do not matter for a starting density. */
#include "chem/guess/guess.h"

void fm_guess_configuration(int z, int electrons[4])
{
    static const char order[] = {0, 0, 1, 0, 1, 0, 2, 1, 0, 2, 1}; /* 1s 2s 2p 3s 3p 4s 3d 4p ... */
    for (int l = 0; l < 4; l++) electrons[l] = 0;
    for (unsigned i = 0; i < sizeof order && z > 0; i++) {
        const int room = 2 * (2 * order[i] + 1);
        electrons[(int)order[i]] += z < room ? z : room;
        z -= room;
    }
}
