/* SPDX-License-Identifier: Apache-2.0 */
/* Where a model is computed: what an engine must know to plan its memory, load
 * its weights and make a run there.  One record of functions per kind. */
#ifndef FM_LLM_OP_BACKEND_H
#define FM_LLM_OP_BACKEND_H

#include "llm/load/source.h"
#include "llm/op/run.h"

typedef struct {
    int device;        /* this rank's place on its host: GPUs are taken in turn */
    int n_rank;        /* ranks on this host */
    int deterministic; /* a row's bits never depend on its batch; on the CPU they never do */
    int no_graphs;     /* GPU: decode steps are not recorded */
    int kv_e4m3;       /* GPU: KV in 8 bits */
} fm_backend_options;

typedef struct {
    size_t total, available; /* bytes of its memory */
} fm_backend_memory;

typedef struct {
    const char *name; /* "cpu", "cuda" */
    fm_packing  packing;
    int         is_host; /* weights lie in this process's memory: there is no alloc, and ranks
                          * of a host may share them */

    int (*is_there)(void); /* can be used on this machine */
    fm_status (*open)(const fm_backend_options *o, fm_backend_memory *out);
    fm_run_bytes (*bytes)(const fm_model_config *c, const fm_shard *shard, fm_dtype act,
                          const fm_run_limits *lim, const fm_backend_options *o);
    fm_status (*alloc)(void **out, size_t bytes, const char *what);
    void (*free)(void *p); /* NULL is fine */
    fm_status (*fill)(fm_weights *w, const fm_source *s, int n_thread, int show_progress);

    /* All ranks of the replica together. */
    fm_status (*create)(fm_run **out, const fm_weights *w, const fm_run_limits *lim, fm_ranks ranks,
                        const fm_backend_options *o);
} fm_backend;

extern const fm_backend fm_backend_cpu;

/* NULL: this build has none. */
const fm_backend *fm_backend_cuda(void);

/* By the word of --device: "cpu", "cuda", or "auto", the best that is there.
 * FM_E_NOSUP: not in this build.  FM_E_DEVICE: not on this machine. */
fm_status fm_backend_find(const fm_backend **out, const char *word, fm_dtype act);

#endif
