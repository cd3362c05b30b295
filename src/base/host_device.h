/* SPDX-License-Identifier: Apache-2.0 */
/* FM_HD marks small pure functions that kernels on a GPU call, too: one
 * definition, hence the same bits wherever the compiler does not contract. */
#ifndef FM_BASE_HOST_DEVICE_H
#define FM_BASE_HOST_DEVICE_H

#ifdef __CUDACC__
#define FM_HD __host__ __device__
#else
#define FM_HD
#endif

#endif
