/* SPDX-License-Identifier: Apache-2.0 */
/* A run is one forward pass in flight on one back end; the ops are its verbs.
 *
 * Faults are sticky: an op that fails marks the run, later ops do nothing,
 * and fm_run_finish returns the first fault.  Hence one line per equation in
 * model/.
 *
 * The ranks of a stage run the same ops in the same order, whatever rows they
 * have; data is exchanged in ops alone.
 *
 * Two levels of dispatch, no more: fm_ops here (cpu, cuda, shadow), and inside
 * a back end the kernel families.
 *
 * Deferred work.  An op that returns has been issued; its result need not be in
 * memory yet.  A back end may leave work to a later op of the pass, to save a
 * launch or to overlap a message:
 *
 *     mlp         may go on beside the experts that follow (CUDA: a second stream;
 *                 CPU: its channels are being gathered)
 *     dispatch    may be under way until experts
 *     experts     the sum over a row's slots may wait for the gather_add of y (CUDA)
 *     gather_add  x += y may wait for the next norm of x (CUDA)
 *
 * Hence a forward pass keeps this order, and touches buffers only by ops:
 *   - rope_q, store_kv and attend of a layer in this order; no other op reads q
 *   - between mlp and the end of experts_add no other op reads or writes y
 *   - after gather_add, x and y are next touched by a norm of x, gather_add or pass_on
 *   - gather_norm is the last reader of x: x itself need not become the sum; hidden comes before
 * fm_run_finish leaves no host-side work behind; on a device, results are there when
 * the stream has come so far.  A run made `immediate` (op/cuda/cuda.h) defers nothing: an op
 * has written its result, in the order of the stream, when it returns; the same bits. */
#ifndef FM_LLM_OP_RUN_H
#define FM_LLM_OP_RUN_H

#include "base/slab.h"
#include "base/str.h"
#include "llm/kv/planes.h"
#include "llm/weights/weights.h"
#include "llm/batch.h"
#include "llm/op/activations.h"
#include "llm/op/hook.h"
#include "llm/op/watch.h"
#include "llm/ranks.h"
#include "llm/sample/sample.h"

/* What a step may hold at most; sizes every buffer once. */
typedef struct {
    int max_rows;     /* tokens in one forward */
    int max_out;      /* rows with logits */
    int max_context;  /* tokens of one sequence */
    int page_size;    /* tokens */
    int n_page;       /* pages of the pool */
    int lane_pages;   /* of a micro-batch: those of the i-th begin at page i * lane_pages; 0: n_page */
    int n_thread;
    int n_lane;       /* passes in flight at once in a pipeline: 1 to twice its stages */
    fm_planes planes; /* what is cached of a token, */
    fm_activations activations; /* and what a pass computes in: the model's (model/model.h) */
    int n_kept;       /* hidden states kept between passes, for drafts; 0: there are none */
    int max_draft;    /* links of a chain of drafts, at most */
    int draft_head;   /* links may use a copy of the BF16 head in bytes */
    int n_staged;     /* device: pages that are gathered for one copy to or from host memory; 0: no
                       * pages are copied */
    const struct fm_threads *team; /* over whose NUMA nodes KV pages are spread, or NULL */
} fm_run_limits;

typedef struct fm_run fm_run;

/* How the token of one out row is chosen. */
typedef struct {
    const fm_sampling *how;
    const int32_t     *output; /* [n_output] tokens generated so far */
    int                n_output;
    const uint32_t    *allowed; /* bits of the tokens it may be; NULL: all */
} fm_draw;

/* One page of the pool, to or from an image of it in host memory (kv/planes.h). */
typedef struct {
    int32_t page;
    char   *image;
    int     is_out; /* from the pool into the image */
    int     is_now; /* the next pass reads the page, or may overwrite it */
} fm_page_copy;

typedef struct {
    const char *name;
    void (*begin)(fm_run *r); /* NULL: nothing to do.  May raise r->n_row and r->n_out, or replay
                                 the pass as recorded before */
    void (*end)(fm_run *r);   /* NULL: nothing to do; called after a fault, too */
    void (*embed)(fm_run *r, fm_f32s x, const void *table);
    void (*rmsnorm)(fm_run *r, fm_act y, fm_f32s x, const float *w);
    void (*gather_norm)(fm_run *r, fm_act y, fm_f32s x, const float *w); /* rows batch->out */
    void (*linear_f32)(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row);
    void (*linear_act)(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row);
    void (*rope_q)(fm_run *r, fm_act q);
    void (*store_kv)(fm_run *r, int layer, fm_f32s ckv, const float *norm);
    void (*attend)(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w);
    void (*route)(fm_run *r, fm_routing out, fm_f32s score, const float *bias);
    void (*mlp)(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w);
    void (*experts)(fm_run *r, fm_f32s y, fm_act h, fm_routing route, const fm_mlp_weights *expert,
                    int accumulate);

    /* Exchanges with other ranks.  With groups of one, the first three cost nothing. */
    void (*gather_act)(fm_run *r, fm_act all, fm_act mine); /* columns, over the attention group */
    void (*dispatch)(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h, fm_routing route);
    void (*pass_on)(fm_run *r, fm_f32s x); /* to the next stage; goes on without waiting */
    void (*receive)(fm_run *r, fm_f32s x); /* from the stage before */
    void (*gather_add)(fm_run *r, fm_f32s x, fm_f32s y); /* x += y, columns of the attention group */
    void (*collect)(fm_run *r, fm_f32s logits);          /* to rank 0; goes on without waiting */

    /* Drafts; model/model.h.  Not there: the back end has none. */
    void (*hidden)(fm_run *r, fm_act h, fm_f32s x, const float *norm, const float *w); /* h = the
                                 normed state of the row before; keeps those the spans name.
                                 Without x: of kept states alone */
    void (*best)(fm_run *r, fm_f32s logits, fm_act state); /* the largest of each out row, and keeps
                                 its state */
    void (*embed_product)(fm_run *r, fm_f32s x, fm_act h, const void *table, const float *norm,
                          const fm_matrix *w); /* x = w RMSNorm(Emb(t)), with h as room.  NULL: the
                                 three ops one by one */
    void (*linear_draft)(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w); /* the head's product in
                                 a link, which may be approximate.  NULL: linear_f32 */
    int (*draft_rows)(fm_run *r); /* the rest of the pass has only the rows that fill the cache for
                                 drafts, from the first that is not a decode whose state is not kept
                                 (sched/sched.h); out rows and hidden's x remain.  0: there are no such
                                 rows.  NULL: all fill it, as recorded passes must */
    fm_status (*drafted)(fm_run *r, const fm_batch *b, int n_link, int32_t *id);

    fm_status (*logits)(fm_run *r, const fm_batch *b, const float **all);
    fm_status (*sample)(fm_run *r, const fm_batch *b, const fm_draw *draw, int *ticket); /* NULL:
                                 from the logits, on the host */
    fm_status (*sampled)(fm_run *r, int ticket, fm_sampled *out);
    fm_status (*copy_pages)(fm_run *r, const fm_page_copy *copy, int n); /* NULL: pages stay where they are */
    fm_status (*copied)(fm_run *r, int waits, uint32_t *n_made); /* NULL: copies are made at once */
    fm_status (*watch)(fm_run *r, fm_op_watch *w); /* NULL: hooks see ops as they run */
    void (*report)(const fm_run *r, fm_str *out); /* NULL: nothing to say at the end */
    void (*destroy)(fm_run *r);
} fm_ops;

struct fm_run {
    const fm_ops          *ops;
    const fm_model_config *config;
    const fm_weights      *weights;
    fm_run_limits          limits;
    const fm_batch        *batch; /* of the pass in flight */
    int                    n_row, n_out; /* what ops take: the batch's, or more where begin pads */
    int                    is_replayed;  /* the pass is under way as a whole; ops do nothing */
    int                    layer;        /* the pass is in, of the model; or FM_NO_LAYER */
    fm_op_hook            *hook;         /* called around every op; NULL: none */
    fm_op_call             call;         /* what hooks see of it */
    fm_acts                act;
    fm_ranks               ranks;
    fm_status              fault;
    void                  *backend; /* private to ops */
};

/* Bytes the CPU back end needs for its buffers, without the KV pages: exact, before
 * anything is allocated. */
size_t fm_run_cpu_workspace(const fm_model_config *c, const fm_shard *shard, fm_dtype act,
                            const fm_run_limits *lim);

/* The groups of `ranks` and the weights are borrowed. */
fm_status fm_run_create_cpu(fm_run **out, const fm_weights *w, const fm_run_limits *lim,
                            fm_ranks ranks);
void      fm_run_destroy(fm_run *r); /* NULL is fine */

void      fm_run_start(fm_run *r, const fm_batch *b);
fm_status fm_run_finish(fm_run *r); /* the first fault of the pass */

/* Between passes.  The hook is the caller's and stays where it is until it is removed. */
void fm_run_add_hook(fm_run *r, fm_op_hook *h);
void fm_run_remove_hook(fm_run *r, fm_op_hook *h);

/* Between passes: ops that run on a device are timed (op/watch.h) from here on; w NULL: no longer.
 * The watch is the caller's until then.  FM_E_NOSUP: ops run as they are called, a hook can time them. */
fm_status fm_run_watch(fm_run *r, fm_op_watch *w);

/* On the replica's rank 0: logits [outs of all groups in group order, V] of the
 * oldest finished pass whose logits were not yet taken; waits for the last
 * stage.  `b` is that pass's batch.  Valid until the n_lane-th next call.
 *
 * Rank 0 starts pass p only after it has taken the logits of pass p - n_lane,
 * and takes those of every pass before the runs are destroyed; a pass without
 * outputs counts too. */
fm_status fm_run_logits(fm_run *r, const fm_batch *b, const float **all);

/* After the n_link links of a chain, by the ranks of the last stage and by rank 0, which gets the
 * drafts id[n_link][rows of all groups]; elsewhere id is NULL.  `b` is the last link's batch. */
fm_status fm_run_drafted(fm_run *r, const fm_batch *b, int n_link, int32_t *id);

/* Instead of fm_run_logits, where the back end can (r->ops->sample is there):
 * tokens of the pass's out rows as llm/sample would choose them.
 *
 * Choosing goes on without waiting, and so may the next pass, whose rows can
 * start from what is chosen here (FM_CHOICE).  Two tickets at most are out;
 * a third choice may take the place of one that was never asked for.
 * FM_E_FULL: it is too much for the back end, take the logits. */
fm_status fm_run_choose(fm_run *r, const fm_batch *b, const fm_draw *draw, int *ticket);
fm_status fm_run_chosen(fm_run *r, int ticket, fm_sampled *out); /* waits for them */
fm_status fm_run_sample(fm_run *r, const fm_batch *b, const fm_draw *draw, fm_sampled *out); /* both */

/* Between passes, where the back end can (r->ops->copy_pages is there): copies pages in the order of
 * the list, as the passes before left them.  On a device they are copied beside computing:
 * the next pass waits only for those that are is_now, and all of them are made for the pass after that.
 * Images are in pinned memory there (fm_backend.alloc_pinned). */
fm_status fm_run_copy_pages(fm_run *r, const fm_page_copy *copy, int n);

/* How many calls of fm_run_copy_pages (with n > 0) have made all their copies, as the host sees it.
 * Unchanged where copies are made at once.  waits: until all have. */
fm_status fm_run_copied(fm_run *r, int waits, uint32_t *n_made);

/* For FM_OP alone: tells the hooks. */
void fm__op_begins(fm_run *r, fm_op op, int n_row, const void *out, const void *weights);
void fm__op_ends(fm_run *r);

/* --- the verbs --------------------------------------------------------------- */

/* Ops from here on belong to this rank's layer `l`, or to none (FM_NO_LAYER). */
static inline void fm_at_layer(fm_run *r, int l)
{
    r->layer = l == FM_NO_LAYER ? l : r->weights->shard.layer.begin + l;
}

#define FM_OP(r, id, n_row, out, weights, call)                                                    \
    do {                                                                                           \
        if ((r)->fault != FM_OK || (r)->is_replayed) break;                                        \
        if ((r)->hook) fm__op_begins(r, FM_OP_##id, n_row, out, weights);                          \
        (r)->ops->call;                                                                            \
        if ((r)->hook) fm__op_ends(r);                                                             \
    } while (0)

/* clang-format off */
static inline void fm_embed(fm_run *r, fm_f32s x, const void *table) { FM_OP(r, EMBED, r->n_row, x.data, table, embed(r, x, table)); }
static inline void fm_rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w) { FM_OP(r, RMSNORM, r->n_row, y.data, w, rmsnorm(r, y, x, w)); }
static inline void fm_gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w) { FM_OP(r, GATHER_NORM, r->n_out, y.data, w, gather_norm(r, y, x, w)); }
static inline void fm_linear(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w) { FM_OP(r, LINEAR, r->n_row, y.data, w, linear_f32(r, y, x, w, r->n_row)); }
static inline void fm_linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w) { FM_OP(r, LINEAR_ACT, r->n_row, y.data, w, linear_act(r, y, x, w, r->n_row)); }
static inline void fm_linear_out(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w) { FM_OP(r, HEAD, r->n_out, y.data, w, linear_f32(r, y, x, w, r->n_out)); }
static inline void fm_linear_draft(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w)
{
    if (r->ops->linear_draft) FM_OP(r, HEAD, r->n_out, y.data, w, linear_draft(r, y, x, w));
    else fm_linear_out(r, y, x, w);
}
static inline void fm_embed_product(fm_run *r, fm_f32s x, fm_act h, const void *table, const float *norm, const fm_matrix *w)
{
    if (r->ops->embed_product) {
        FM_OP(r, EMBED, r->n_row, x.data, table, embed_product(r, x, h, table, norm, w));
    } else {
        fm_embed  (r, x, table);
        fm_rmsnorm(r, h, x, norm);
        fm_linear (r, x, h, w);
    }
}
static inline void fm_rope_q(fm_run *r, fm_act q) { FM_OP(r, ROPE_Q, r->n_row, q.data, NULL, rope_q(r, q)); }
static inline void fm_store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm) { FM_OP(r, STORE_KV, r->n_row, NULL, norm, store_kv(r, layer, ckv, norm)); }
static inline void fm_attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w) { FM_OP(r, ATTEND, r->n_row, o.data, w, attend(r, o, q, layer, w)); }
static inline void fm_route(fm_run *r, fm_routing out, fm_f32s score, const float *bias) { FM_OP(r, ROUTE, r->n_row, out.expert, bias, route(r, out, score, bias)); }
static inline void fm_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w) { FM_OP(r, MLP, r->n_row, y.data, w, mlp(r, y, h, w)); }
static inline void fm_experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *e) { FM_OP(r, EXPERTS, r->n_row, y.data, e, experts(r, y, h, rt, e, 0)); }
static inline void fm_experts_add(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *e) { FM_OP(r, EXPERTS, r->n_row, y.data, e, experts(r, y, h, rt, e, 1)); }
static inline void fm_gather_act(fm_run *r, fm_act all, fm_act mine) { FM_OP(r, GATHER_ACT, r->n_row, all.data, NULL, gather_act(r, all, mine)); }
static inline void fm_gather_add(fm_run *r, fm_f32s x, fm_f32s y) { FM_OP(r, GATHER_ADD, r->n_row, x.data, NULL, gather_add(r, x, y)); }
static inline void fm_dispatch(fm_run *r, fm_act h_all, fm_routing rt_all, fm_act h, fm_routing rt) { FM_OP(r, DISPATCH, r->n_row, h_all.data, NULL, dispatch(r, h_all, rt_all, h, rt)); }
static inline void fm_pass_on(fm_run *r, fm_f32s x) { FM_OP(r, PASS_ON, r->n_row, NULL, NULL, pass_on(r, x)); }
static inline void fm_receive(fm_run *r, fm_f32s x) { FM_OP(r, RECEIVE, r->n_row, x.data, NULL, receive(r, x)); }
static inline int  fm_draft_rows(fm_run *r) { return !r->ops->draft_rows || r->ops->draft_rows(r); }
static inline void fm_hidden(fm_run *r, fm_act h, fm_f32s x, const float *norm, const float *w) { FM_OP(r, HIDDEN, r->n_row, h.data, w, hidden(r, h, x, norm, w)); }
static inline void fm_hidden_kept(fm_run *r, fm_act h, const float *w) { FM_OP(r, HIDDEN, r->n_row, h.data, w, hidden(r, h, (fm_f32s){0}, NULL, w)); }
static inline void fm_best(fm_run *r, fm_f32s logits, fm_act state) { FM_OP(r, BEST, r->n_out, NULL, NULL, best(r, logits, state)); }
static inline void fm_collect(fm_run *r, fm_f32s logits) { FM_OP(r, COLLECT, r->n_out, NULL, NULL, collect(r, logits)); }
/* clang-format on */

#endif
