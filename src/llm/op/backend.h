/* SPDX-License-Identifier: Apache-2.0 */
/* Where a model is computed: what an engine must know to plan its memory, load
 * its weights and make a run there.  One record of functions per kind. */
#ifndef FM_LLM_OP_BACKEND_H
#define FM_LLM_OP_BACKEND_H

#include "llm/load/source.h"
#include "llm/op/run.h"

typedef struct {
    int device;    /* this rank's place on its host: GPUs are taken in turn */
    int n_rank;    /* ranks on this host */
    int no_graphs; /* GPU: decode steps are not recorded */
    int immediate; /* GPU: no op leaves work to a later one */
    const fm_weights *beside; /* shadow: the weights of `also` */
} fm_backend_options;

typedef struct {
    size_t      total, available; /* bytes of its memory */
    size_t      reserve;          /* for what no plan counts; 0: the plan's own margin */
    const char *kept_for;         /* what takes the reserve */
    char        where[80];        /* "on NVIDIA H200", "in main memory" */
} fm_backend_memory;

typedef struct fm_backend {
    const char *name; /* "cpu", "cuda", "shadow" */
    fm_packing  packing;
    int         is_host; /* weights lie in this process's memory: there is no alloc, and ranks
                          * of a host may share them */
    const struct fm_backend *also; /* runs the same model along, in memory of its own; NULL: none */

    fm_status (*is_usable)(void); /* on this machine; FM_E_DEVICE, saying why not */
    int (*n_device)(void);        /* NULL: ranks of a host share what there is */
    fm_status (*open)(const fm_backend_options *o, fm_backend_memory *out);
    size_t (*workspace)(const fm_model_config *c, const fm_shard *shard, fm_dtype act,
                        const fm_run_limits *lim); /* bytes of its buffers, exact */
    size_t (*pinned)(const fm_model_config *c, const fm_shard *shard,
                     const fm_run_limits *lim); /* of main memory, exact; NULL: none */
    fm_status (*alloc)(void **out, size_t bytes, const char *what);
    void (*free)(void *p); /* NULL is fine */
    fm_status (*alloc_pinned)(void **out, size_t bytes, const char *what); /* host memory that it copies
                                                                             * from and to */
    void (*free_pinned)(void *p); /* NULL is fine */
    fm_status (*fill)(fm_weights *w, const fm_source *s, int n_thread, int show_progress);

    /* All ranks of the replica together. */
    fm_status (*create)(fm_run **out, const fm_weights *w, const fm_run_limits *lim, fm_ranks ranks,
                        const fm_backend_options *o);
} fm_backend;

extern const fm_backend fm_backend_cpu;

/* The GPU's packing, workspace and pinned, in every build; it has none of the other functions. */
extern const fm_backend fm_backend_cuda_counts;

/* NULL: this build has none. */
const fm_backend *fm_backend_cuda(void);
const fm_backend *fm_backend_shadow(void); /* the CPU, and the GPU along with it; op/shadow/shadow.h */

/* Should "auto" be a GPU?  FM_E_NOSUP: not in this build, or not in this
 * arithmetic.  FM_E_DEVICE: not on this machine, or not one for each of its
 * n_rank ranks.  One sentence says why. */
fm_status fm_backend_suits_gpu(fm_dtype act, int n_rank);

/* By the word of --device: "cpu", "cuda", or "auto", which is a GPU if has_gpu.
 * With `shadow` the CPU with the GPU along.  FM_E_NOSUP, FM_E_DEVICE: there is no
 * GPU that can be used. */
fm_status fm_backend_find(const fm_backend **out, const char *word, fm_dtype act, int has_gpu,
                          int shadow);

#endif
