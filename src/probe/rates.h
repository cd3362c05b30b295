/* SPDX-License-Identifier: Apache-2.0 */
/* What the machines of a job can do at best, measured: memory bandwidth, product peaks, links
 * between ranks, file reads. `fathom doctor` measures and writes them; traces, plans and later
 * checkups compare with them.
 *
 *     fathom doctor ──fm_rates_print──> rates.json ──fm_rates_load──> trace, plan
 *
 *     fm_rates
 *     ├ rank[r]      host, CPU, cores, memory
 *     │  ├ read                   bytes/s out of main memory, all threads
 *     │  ├ node[i]                reading and the bf16 product (ref: f32) of a NUMA node's cores
 *     │  ├ product[type]          FLOP/s of all threads, by type of the factors
 *     │  ├ level[isa]             FLOP/s of the bf16 product, by instruction set
 *     │  ├ gpu                    the same of its GPU
 *     │  └ file                   bytes/s out of a file that is in no cache
 *     ├ link[i, j]   seconds of an empty message, bytes/s of a long one, from i to j
 *     ├ near, far    the same, over all pairs on one host, and on two
 *     ├ all_to_all   bytes/s that a rank sends while every rank sends to every other
 *     └ gpu_link, gpu_near, gpu_far, gpu_all_to_all   the same from GPU to GPU, by NCCL
 *
 * Units are bytes, seconds and FLOP (a multiply-add is two); nothing is scaled.
 *
 * The file is JSON with the names of the fields here.  A rate is written as
 * {"median": 1.2e10, "spread": 3e8, "best": 1.25e10, "repeats": 9}; one that was not measured is
 * absent.  Readers ignore members they do not know. */
#ifndef FM_PROBE_RATES_H
#define FM_PROBE_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/status.h"
#include "base/str.h"

enum {
    FM_RATES_VERSION  = 1,
    FM_RATES_MAX_NODE = 16,
    FM_RATES_MAX_RANK = 4096,
    FM_RATES_LEVELS   = FM_ISA_AMX + 1
};

/* A number that was measured several times. */
typedef struct {
    double median;
    double spread; /* standard deviation, estimated by the median distance from the median */
    double best;   /* the fastest repeat: the largest rate, the least time */
    int    n;      /* repeats; 0: not measured */
} fm_rate;

/* Of n repeats; sorts x.  n 0: not measured. */
fm_rate fm_rate_of(double *x, int n);       /* of rates: more is better */
fm_rate fm_rate_of_times(double *x, int n); /* of times: less is better */

#define FM_FACTOR_MAP(X)                                                                           \
    X(F64, "f64")                                                                                  \
    X(F32, "f32")                                                                                  \
    X(BF16, "bf16")                                                                                \
    X(FP8, "fp8")

/* The type of the factors of a product; sums are f32, or f64 for f64. */
typedef enum {
#define FM_FACTOR_ENUM(name, text) FM_FACTOR_##name,
    FM_FACTOR_MAP(FM_FACTOR_ENUM)
#undef FM_FACTOR_ENUM
        FM_N_FACTOR
} fm_factor;

const char *fm_factor_name(fm_factor f); /* "bf16" */

typedef struct {
    int     id;     /* the system's number of the NUMA node */
    int     n_core; /* of its cores that this rank may use; 0: not known */
    fm_rate read, product;
} fm_rates_node;

typedef struct {
    char     name[96]; /* "": this rank has no GPU */
    uint64_t memory;   /* bytes */
    fm_rate  read;     /* bytes/s out of its memory */
    fm_rate  product[FM_N_FACTOR];
    fm_rate  upload, download; /* bytes/s between pinned host memory and the GPU */
} fm_rates_gpu;

typedef struct {
    char          host[64], cpu[96], isa[16];
    int           n_core, n_thread; /* cores this rank may use, threads that measured */
    uint64_t      memory;           /* bytes of main memory this process may use */
    fm_rate       read;             /* the rank alone on its host, all its threads */
    int           n_node;
    fm_rates_node node[FM_RATES_MAX_NODE];
    fm_rate       product[FM_N_FACTOR];
    fm_rate       level[FM_RATES_LEVELS]; /* the bf16 product (ref: f32) by each instruction set */
    fm_rates_gpu  gpu;
    char          directory[256]; /* where `file` was measured; "": it was not */
    fm_rate       file;
} fm_rates_rank;

typedef struct {
    double latency;   /* seconds of an empty message, one way */
    double bandwidth; /* bytes per second of a long one; both 0: not measured */
} fm_rates_link;

typedef struct {
    fm_rate latency, bandwidth;
} fm_rates_links;

typedef struct {
    char           made[32];    /* UTC, "2025-03-14T09:26:53Z" */
    char           version[32]; /* of the program that measured */
    int            n_rank;
    fm_rates_rank *rank; /* [n_rank] owned */
    fm_rates_link *link; /* [n_rank, n_rank] owned, row: who sends; NULL: not measured */
    fm_rates_links near, far;
    fm_rate        all_to_all;
    fm_rates_link *gpu_link; /* as link, by NCCL */
    fm_rates_links gpu_near, gpu_far;
    fm_rate        gpu_all_to_all;
} fm_rates;

/* Zeroed ranks; with `has_link` and `has_gpu_link`, zeroed matrices. */
fm_status fm_rates_init(fm_rates *r, int n_rank, int has_link, int has_gpu_link);
void      fm_rates_fini(fm_rates *r); /* {0} is fine */

/* FM_E_IO: cannot be opened; FM_E_FORMAT names file and field.  *out is untouched on failure. */
fm_status fm_rates_load(fm_rates *out, const char *path);
fm_status fm_rates_parse(fm_rates *out, const char *text, size_t len, const char *name);

/* Appends the JSON text, ended by a newline. */
void fm_rates_print(const fm_rates *r, fm_str *out);

#endif
