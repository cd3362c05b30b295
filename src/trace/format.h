/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a trace: one file a rank, of fixed size, mapped while it is written.
 *
 *     0           head    who, when, clocks, counters that grow
 *     key_at      keys    [n_key_max] what is measured: class, name, part
 *     sum_at      sums    [n_key_max] exact totals and a histogram of each key
 *     span_at     spans   [n_span_max] a ring: the latest single measurements
 *
 * The writer stores a span, then counts it in `n_span` (release order), so the file of a process
 * that was killed is complete up to the last span: the mapping belongs to the kernel.  Once the
 * ring is full, the oldest span is overwritten; sums have no such limit.  A file that was closed
 * is cut behind its last span.
 *
 * All numbers are little-endian; times are nanoseconds.  CLOCK is the rank's monotonic clock. */
#ifndef FM_TRACE_FORMAT_H
#define FM_TRACE_FORMAT_H

#include <stdint.h>

enum {
    FM_TRACE_VERSION   = 1,
    FM_TRACE_ORDER     = 0x01020304,
    FM_TRACE_KEYS      = 256, /* the last one collects what found no room */
    FM_TRACE_BUCKETS   = 656, /* of a histogram: 16 per octave, from 1 ns to 4.9 hours */
    FM_TRACE_BINS      = 24,  /* by operations per byte, powers of two from 1/4 on */
    FM_TRACE_NO_LAYER  = 0xffff,
    FM_TRACE_MAX_RANKS = 65536,
    FM_TRACE_SAMPLED   = 31, /* a span of a device stands for this many at most */
};
#define FM_TRACE_MAGIC "fmtrace\n"

/* What a span is; the name of the class in reports. */
#define FM_TRACE_CLASS_MAP(X)                                                                      \
    X(STEP, "step")             /* a round of work, from its launch to its end */                  \
    X(PHASE, "phase")           /* a part of the loop around the work, on the host */              \
    X(WORK, "op")               /* computing */                                                    \
    X(COLLECTIVE, "collective") /* a call on a group of ranks */                                   \
    X(TASK, "task")             /* a stage in the life of something a user waits for */            \
    X(GAP, "gap")               /* between rounds, with work waiting */                            \
    X(IDLE, "idle")             /* nothing to do */

typedef enum {
#define FM_TRACE_CLASS_ENUM(id, text) FM_TRACE_##id,
    FM_TRACE_CLASS_MAP(FM_TRACE_CLASS_ENUM)
#undef FM_TRACE_CLASS_ENUM
        FM_N_TRACE_CLASS
} fm_trace_class;

/* Flags of a key. */
enum {
    FM_TRACE_HOLDS_WORK = 1, /* PHASE: spans of WORK lie inside */
    FM_TRACE_STALLS     = 2, /* STEP: tasks under way waited for additional work in it */
    FM_TRACE_AWAITS     = 4, /* PHASE: waiting for another rank to say what is next */
    FM_TRACE_IS_DEVICE  = 8, /* WORK, COLLECTIVE: measured on an accelerator, beside what the host
                              * does; PHASE: the host waits for that */
    FM_TRACE_BESIDE = 16,    /* WORK: at the same time as other work of its device */
};

typedef struct {
    uint8_t  cls, flags;
    uint16_t unused;
    char     name[36];  /* "experts" */
    char     part[24];  /* which kind of it: "moe"; or "" */
    char     factor[8]; /* type of the factors of its products, as in probe/rates.h; or "" */
    char     hint[120]; /* what to try if most time goes here; or "" */
} fm_trace_key;

/* Calls with about the same operations per byte. */
typedef struct {
    double   bytes, flops;
    uint64_t ns; /* they took, without communication inside */
} fm_trace_bin;

typedef struct {
    uint64_t     count, total_ns, comm_ns; /* comm_ns: of the total, inside collectives */
    uint64_t     min_ns, max_ns, rows;
    double       bytes, flops;
    double       square; /* sum of (total - comm)^2, in ns^2 */
    fm_trace_bin bin[FM_TRACE_BINS];
    uint64_t     bucket[FM_TRACE_BUCKETS]; /* counts of total_ns */
} fm_trace_sum;

typedef struct {
    uint64_t begin_ns, dur_ns; /* since the head's epoch */
    uint16_t key;
    uint16_t layer; /* COLLECTIVE: class of its bytes (fm_bucket_of); STEP: tasks that waited */
    uint32_t
        rows; /* STEP: rows; TASK: tokens or the like; COLLECTIVE: microseconds of waiting for it */
    uint64_t tag; /* WORK, PHASE, STEP: the step; TASK: its id; COLLECTIVE: group and call */
} fm_trace_span;

/* When clocks were compared: rank 0's clock = this rank's + offset, give or take error. */
typedef struct {
    uint64_t at_ns; /* CLOCK of this rank; 0: not compared */
    int64_t  offset_ns;
    uint64_t error_ns;
} fm_trace_clock;

typedef struct {
    char     magic[8];
    uint32_t version, order;
    uint32_t head_bytes, key_bytes, sum_bytes, span_bytes;
    uint64_t key_at, sum_at, span_at;
    uint32_t n_key_max, unused;
    uint64_t n_span_max;

    uint64_t job; /* the same in the files of a job */
    int32_t  rank, n_rank;
    char     host[64], program[32], command[256];
    char     task[16], row[16]; /* nouns: "request", "token" */

    uint64_t       epoch_ns; /* CLOCK when the trace began, after clocks were compared */
    int64_t        wall_ns;  /* the same moment, since 1970 */
    fm_trace_clock clock[2]; /* at the beginning and at the end */

    uint64_t n_key;     /* grow while the trace is written */
    uint64_t n_span;    /* ever; the ring has the last n_span_max */
    uint64_t last_ns;   /* end of the latest span, since the epoch */
    uint64_t is_closed; /* 0: being written, or its writer was killed */
} fm_trace_head;

_Static_assert(sizeof(fm_trace_key) == 192, "fm_trace_key");
_Static_assert(sizeof(fm_trace_span) == 32, "fm_trace_span");
_Static_assert(sizeof(fm_trace_head) % 8 == 0, "fm_trace_head");

#endif
