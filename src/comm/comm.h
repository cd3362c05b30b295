/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks.  A group is some of the processes of a job; its transport is a
 * record of functions, one folder each (self: a world of one).
 *
 * Every call returns FM_E_COMM, with a sentence naming the rank, when a peer
 * failed or did not answer in time; none ever hangs. */
#ifndef FM_COMM_COMM_H
#define FM_COMM_COMM_H

#include <stddef.h>

#include "base/status.h"

typedef struct fm_comm fm_comm;

typedef struct {
    const char *name;
    fm_status (*all_reduce_f32)(fm_comm *c, float *x, size_t n); /* in place, fixed order */
} fm_comm_ops;

struct fm_comm {
    const fm_comm_ops *ops;
    int                rank, n_rank;
};

fm_comm fm_comm_self(void); /* the group of this process alone */

static inline fm_status fm_all_reduce_f32(fm_comm *c, float *x, size_t n)
{
    return c->ops->all_reduce_f32(c, x, n);
}

#endif
