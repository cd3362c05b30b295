/* SPDX-License-Identifier: Apache-2.0 */
/* Ops have ids, and a run tells hooks when each begins and ends: profiles, the comparison of
 * two back ends (op/shadow) and traces all stand on this.
 *
 *     static void end(fm_op_hook *h, fm_run *r, const fm_op_call *c) { ... }
 *     fm_op_hook h = {.end = end};
 *     fm_run_add_hook(r, &h);        until fm_run_remove_hook(r, &h)
 *
 * Without a hook an op costs one more test of a pointer.  A hook sees ops when they are issued:
 * not after a fault, nor in a pass that is replayed as recorded.  What `end` may conclude about
 * the data is said at the deferred ops in run.h. */
#ifndef FM_LLM_OP_HOOK_H
#define FM_LLM_OP_HOOK_H

struct fm_run;

/* id and name, in the order of a forward pass */
#define FM_OP_MAP(X)                                                                               \
    X(EMBED, "embed")                                                                              \
    X(RECEIVE, "receive")                                                                          \
    X(RMSNORM, "rmsnorm")                                                                          \
    X(LINEAR, "linear")                                                                            \
    X(LINEAR_ACT, "linear_act")                                                                    \
    X(ROPE_Q, "rope_q")                                                                            \
    X(STORE_KV, "store_kv")                                                                        \
    X(ATTEND, "attend")                                                                            \
    X(GATHER_ACT, "gather_act")                                                                    \
    X(GATHER_ADD, "gather_add")                                                                    \
    X(ROUTE, "route")                                                                              \
    X(DISPATCH, "dispatch")                                                                        \
    X(MLP, "mlp")                                                                                  \
    X(EXPERTS, "experts")                                                                          \
    X(PASS_ON, "pass_on")                                                                          \
    X(HIDDEN, "hidden")                                                                            \
    X(GATHER_NORM, "gather_norm")                                                                  \
    X(HEAD, "head")                                                                                \
    X(COLLECT, "collect")                                                                          \
    X(BEST, "best")                                                                                \
    X(SAMPLE, "sample")

typedef enum {
#define X(id, name) FM_OP_##id,
    FM_OP_MAP(X)
#undef X
        FM_N_OP
} fm_op;

const char *fm_op_name(fm_op op);

enum { FM_NO_LAYER = -1 };

typedef struct {
    fm_op       op;
    int         layer;   /* of the model; FM_NO_LAYER before the first and behind the last */
    int         n_row;   /* rows it computes, with those that pad a step */
    const void *out;     /* the data of the buffer it writes; NULL: it writes none of the run's */
    const void *weights; /* as the op was given them: a matrix, a vector; NULL: it has none */
} fm_op_call;

typedef struct fm_op_hook {
    void (*begin)(struct fm_op_hook *h, struct fm_run *r, const fm_op_call *c); /* or NULL */
    void (*end)(struct fm_op_hook *h, struct fm_run *r, const fm_op_call *c);   /* or NULL */
    struct fm_op_hook *next;                                                    /* the run's */
} fm_op_hook;

#endif
