/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

static fm_status all_reduce_f32(fm_comm *c, float *x, size_t n)
{
    (void)c, (void)x, (void)n; /* the sum over one rank is what is there */
    return FM_OK;
}

static const fm_comm_ops ops = {"self", all_reduce_f32};

fm_comm fm_comm_self(void)
{
    return (fm_comm){&ops, 0, 1};
}
