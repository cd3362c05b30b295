/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FM_BENCH_FED_AMX_H
#define FM_BENCH_FED_AMX_H

/* FLOP/s of AMX products as the kernels do them, with operands from L1: on a core that is shared
 * with another machine's hyperthread less than the peak, now and then or always. */
double fm_bench_fed_amx(void);

#endif
