/* SPDX-License-Identifier: Apache-2.0 */
/* Timestamps of ops on the device (op/watch.h).
 *
 *     stream   s0 embed s1 rmsnorm s2 linear s3 ...      a kernel s writes the device's clock
 *     side              └ s mlp s
 *
 * In a pass that is stamped, a hook puts a stamp behind every op, also while the pass is recorded:
 * a size of steps has a recording with stamps and one without, and replaying either launches as
 * many times as it has nodes, nothing more.  Which ops the stamps belong to is the recording's
 * *tape*.  Stamps are written to device memory, copied to a *slot* in pinned memory when the
 * next pass begins, and read when that copy is known to be done.
 *
 * Which passes are stamped is the same on all ranks of a replica, which run the same passes. */
#ifndef FM_LLM_OP_CUDA_STAMPS_INTERNAL_H
#define FM_LLM_OP_CUDA_STAMPS_INTERNAL_H

#include "device/cuda/stream.h"
#include "llm/op/cuda/device_clock.h"
#include "llm/op/run.h"

enum {
    FM_CUDA_STAMPS      = 4096,    /* of a pass; ops behind are not timed */
    FM_CUDA_STAMP_SLOTS = 4,       /* passes whose stamps are under way */
    FM_CUDA_TAPES       = 1 << 16, /* ops on the tapes of all recordings */
    FM_CUDA_STAMP_EVERY = 31,      /* of this many decode steps one; a prime, since steps and the
                                    * links of chains take turns */
};

typedef struct {
    fm_op_call call;
    double     bytes, flops;
    uint64_t   ns;         /* when it was last timed */
    int        begin, end; /* stamps */
    int        beside;
} fm_cuda_timed;

typedef struct {
    fm_cuda_timed *op; /* [n] */
    int            n, n_stamp;
    int            last;     /* stamp of the main stream */
    int            is_timed; /* ns are there */
} fm_cuda_tape;

struct fm_cuda_recorded;

typedef struct {
    fm_cuda_tape             ops;  /* of the pass, [FM_CUDA_STAMPS] */
    uint64_t                *time; /* pinned [FM_CUDA_STAMPS] */
    fm_mark                  done;
    uint32_t                 times;
    uint64_t                 tag;
    struct fm_cuda_recorded *of; /* NULL: a pass of a size that is not recorded */
} fm_cuda_stamp_slot;

typedef struct {
    fm_op_hook          hook;  /* first: the run hands it back */
    fm_op_watch        *watch; /* NULL: no watcher */
    int                 is_open;
    fm_device_clock     clock;
    uint64_t           *there;  /* device [FM_CUDA_STAMPS] */
    uint64_t            own_ns; /* what a stamp costs */
    fm_cuda_stamp_slot  slot[FM_CUDA_STAMP_SLOTS];
    unsigned            n_taken, n_read;      /* slots, in turn */
    fm_cuda_stamp_slot *at;                   /* the pass at hand is stamped; NULL: it is not */
    int                 side_begin, side_end; /* stamps of the op at hand; -1: none */
    unsigned       n_step, next, apart; /* decode steps since the watch began; the next stamped */
    uint32_t       n_unseen;            /* such steps without a recording, not stamped */
    fm_cuda_timed *tapes;               /* [FM_CUDA_TAPES] */
    int            n_tape;
} fm_cuda_stamps;

/* A pass begins, on the device and on the host: is_step if its size is one of a few. */
void fm__cuda_stamps_pass(fm_run *r, int is_step);
/* It is one of these, `e`; is_replayed: as recorded with stamps. */
void fm__cuda_stamps_recorded(fm_run *r, struct fm_cuda_recorded *e, int is_replayed);
void fm__cuda_stamps_end(fm_run *r); /* all ops of the pass are issued, or it is replayed */
void fm__cuda_stamps_side(fm_run *r, int is_end); /* what follows goes to the side, or no longer */

fm_status fm__cuda_watch(fm_run *r, fm_op_watch *w);
void      fm__cuda_stamps_destroy(fm_cuda_stamps *s); /* {0} is fine */

#endif
