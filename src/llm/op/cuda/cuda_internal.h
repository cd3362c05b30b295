/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU back end: its record (fm_cuda_run), what it remembers of the pass in flight, and the
 * functions its files call of each other.
 *
 * Rows are reordered when a pass begins: generated rows first, then the prompt spans.  The caller
 * does not notice, since tokens go in and logits come out by batch->out. */
#ifndef FM_LLM_OP_CUDA_CUDA_INTERNAL_H
#define FM_LLM_OP_CUDA_CUDA_INTERNAL_H

#include "device/cuda/device.h"
#include "device/cuda/graph.h"
#include "llm/kernel/cuda/fp8/fp8.h"
#include "llm/kernel/cuda/linear/linear.h"
#include "llm/kernel/cuda/attention/mla.h"
#include "llm/kernel/cuda/rows/rows.h"
#include "llm/kernel/cuda/route/route.h"
#include "llm/kernel/cuda/sample/sample.h"
#include "llm/op/cuda/cuda.h"
#include "llm/op/cuda/exchange_internal.h"
#include "llm/op/cuda/stamps_internal.h"

enum {
    FM_CUDA_PASS_ROWS = 4096,     /* rows an FFN takes through its wide middle at once */
    FM_CUDA_KEYS      = 16384,    /* keys expanded at once, at least */
    FM_CUDA_PART      = 512,      /* keys of a part in the absorbed form, unless config.split_tile says more */
    FM_CUDA_FEW_PARTS = 16,       /* up to these, of 16 heads, parts are divided among blocks */
    FM_CUDA_UNIT_KEYS = 1 << 21,  /* keys of long texts at once, besides a part of each row */
    FM_CUDA_LT_BYTES  = 64 << 20, /* workspace of cuBLASLt */
    FM_CUDA_EDITS     = 1 << 16,  /* logits that penalties and biases change in a step */
    FM_CUDA_SIDE_ROWS = 512,      /* up to these, independent work goes to a second stream */
    FM_CUDA_GRAPHS    = 96,       /* recorded steps, and links of chains */
    FM_CUDA_AHEAD     = 2,        /* passes the host may be ahead of the device */
    FM_CUDA_PATIENCE  = 300,      /* seconds until a device that does not answer counts as stuck */
};

/* How long the lists of a pass are; padded passes of as many rows have the same. */
typedef struct {
    int    row, out, span, table;
    size_t page;
    int    has_states;
} fm_cuda_list_sizes;

/* The lists of a pass: written on the host close to each other, and copied in one
 * piece to where they lie alike. */
typedef struct {
    int32_t     *token, *pos, *table;  /* [row] */
    int32_t     *out;                  /* [out] */
    int32_t     *gen_keys, *gen_table; /* [row] of the generated rows */
    int32_t     *before, *keep;        /* [row] of states, where any are kept; kernel/cuda/rows/rows.h */
    int32_t     *n_live, *n_gen, *n_span; /* [1] rows, generated rows, prompt spans */
    int32_t     *group_row0;          /* [n_group+1] first row of each group */
    int32_t     *own_word, *word_at;  /* [row] rows of the table to contribute to the
                                       * embedding, and where each row's then lies; */
    int32_t     *word_base;           /* [n_attn] see kernel/cuda/exchange/columns.h */
    fm_mla_span *span;                /* [span] prompt spans */
    int32_t     *page_begin;          /* [table+1] */
    int32_t     *page_list;           /* [page] of all spans; comes last */
} fm_cuda_lists;

/* Decode steps are padded to a few numbers of rows, and each such number is
 * recorded when it is met for the second time: by then every product has its
 * plan. */
typedef struct fm_cuda_recorded {
    int          rows, is_few, is_link, is_seen;
    fm_graph     graph;
    fm_graph     stamped;  /* recorded with timestamps, once a trace was taken */
    fm_cuda_tape tape;     /* what these belong to */
    uint32_t     n_unseen; /* passes without, since the last one with */
} fm_cuda_recorded;

/* A step's choice of tokens, on the host and on the device. */
typedef struct {
    fm_cuda_sampling   *how;  /* [max_out of all groups] */
    int32_t            *n_edit;
    fm_cuda_logit_edit *edit; /* [FM_CUDA_EDITS] behind their number */
    uint32_t           *allowed; /* [max_out of all groups, words of V bits], first come first */
    int32_t            *id, *top_id; /* what comes back, [] and [, 20]; FM_NO_TOKEN */
    float              *logprob, *top_logprob;
} fm_cuda_choice;

/* A sampling of tokens that was queued on the device. */
typedef struct {
    fm_cuda_choice here;
    fm_mark        done; /* and is known here */
    int            n, any_top;
} fm_cuda_asked;

/* What the host remembers of the pass in flight. */
typedef struct {
    int n_gen, n_prompt_span, n_tile, n_table;
    int is_padded;  /* padded: its number of rows is one of the recorded sizes */
    int is_routed;  /* an FFN with routed experts follows */
    int is_sorted;  /* and its pairs are sorted */
    int is_few;     /* parts are divided among blocks */
    int is_planned; /* the list of parts is on the device */
    int has_slots;  /* and where rows are cached */
    int is_tiled;   /* the tiles of a pass over all keys are, too */
    int n_own_word; /* rows this rank contributes to the embedding, */
    int n_word;     /* and all do */
    fm_cuda_combine_args experts; /* wait for the sum that follows; y NULL: none do */
    fm_cuda_add_args sum;      /* waits for the norm that follows; x NULL: none does */
    fm_cuda_rope_args rotation; /* waits for the cache write that follows; q NULL: none does */
    fm_cuda_linear_args queries; /* wait for the product of latents that follows; x NULL: none do */
} fm_cuda_pass;

/* Rows of activations in E4M3, with a scale for every 128 columns (W8A8). */
typedef struct {
    uint8_t *x;
    float   *scale;
} fm_cuda_bytes;

/* A second stream; side.c. */
typedef struct {
    fm_stream   stream;
    fm_mark     begin, end;
    fm_cuda_lt *lt;     /* without a workspace, which is one stream's */
    uint16_t   *middle; /* [rows of a pass beside, inter] of the shared expert */
    fm_cuda_bytes middle8; /* the same, quantised */
    int         is_noted, is_open;
} fm_cuda_side;

/* Pages on their way between the pool and host memory (pages.c). */
enum { FM_CUDA_LAYER_GROUPS = 4, FM_CUDA_COPIES = 8 };

typedef struct {
    fm_stream stream;
    fm_mark   here, done; /* event of the compute stream when the copies were queued; event behind
                           * the copies */
    int       at;         /* what computing has launched since */
    char     *stage;      /* [limits.n_staged] images, on the device */
    fm_mark   arrived[FM_CUDA_LAYER_GROUPS]; /* behind each group of layers of the last copies */
    int       n_group;        /* groups they arrive in; 0: not in groups */
    int       n_due, awaited; /* groups the pass at hand waits for, and has waited for */
    fm_mark   made[FM_CUDA_COPIES]; /* behind the copies of each call, in turn */
    uint32_t  n_asked, n_made;      /* calls; those of them the host knows to have been made */
    int64_t   n_transfer;           /* copies across the link so far */
} fm_cuda_copies;

/* Passes and ops named for a profiler (ranges.c). */
typedef struct {
    fm_op_hook hook;
    int        are_read; /* one is attached */
} fm_cuda_ranges;

typedef struct {
    fm_cuda_device dev;
    fm_stream      stream;
    fm_cuda_lt    *lt;
    fm_ops         ops;
    fm_cuda_side   side;
    fm_cuda_copies copies;
    fm_cuda_stamps stamps;
    fm_cuda_ranges ranges;
    int            immediate; /* no op leaves work to a later one */

    char         *list[FM_CUDA_AHEAD]; /* pinned, in turn: the others may not be read yet */
    fm_mark       read[FM_CUDA_AHEAD]; /* reached when it has */
    char         *list_there;
    size_t        list_bytes;          /* of each */
    unsigned      n_pass;
    int           n_out_before, out0_before; /* out rows of the pass before: of all groups, and
                                              * of those before the own */
    fm_cuda_lists here, there; /* of the pass at hand on the host, device */
    int32_t      *row_of;      /* host [max_rows] the batch's row -> ours */
    int32_t      *slot;        /* [max_rows] where a row's token is cached */
    int32_t      *page;        /* [max_span, max_page] */
    fm_cuda_pass  pass;
    int           pads;        /* decode steps are padded */
    fm_cuda_recorded  recorded[FM_CUDA_GRAPHS];
    fm_cuda_recorded *recording; /* NULL: this pass is not */
    int               n_recorded, records;
    int           max_span, max_unit, max_tile, max_key, max_page;

    char  *kv;       /* [n_layer][n_page*page_size][kv_width] bf16, or e4m3 bytes */
    float *kv_scale; /* e4m3: [n_layer][n_page*page_size]; else NULL */
    size_t kv_layer; /* bytes of one layer */
    float *cos, *sin; /* [max_context, rope/2] */

    uint16_t    *q_latent, *z_latent; /* [max_rows, H', kv_width or kv_lora] */
    fm_mla_unit *unit;
    int32_t     *unit0;
    uint16_t    *part_z;
    float       *part_sum, *score;
    int32_t     *done;  /* what blocks count by */
    fm_mla_tile *tile;
    int32_t     *n_tile, *key0;
    uint16_t    *latent; /* [max_key, kv_width] */
    uint16_t    *key;    /* [max_key, H', nope + v_dim] */
    float       *state_o, *state_sum;

    uint16_t *middle;   /* [pairs or rows of a pass, inter] */
    uint16_t *pair_out; /* [pairs of a pass, D'] */
    int32_t  *count, *offset, *pair_row, *pair_of, *block, *n_block;

    fm_cuda_bytes h8, cqn8; /* act.h and act.cqn, quantised by the norms that make them */
    fm_cuda_bytes rows8;    /* any rows, until the next product */
    fm_cuda_bytes pair8;    /* rows of the experts' pairs, by pair: h, then the middle */

    fm_cuda_exchange exchange;

    fm_cuda_asked  asked[FM_CUDA_AHEAD]; /* in turn */
    unsigned       n_asked;
    fm_cuda_choice choose_there;
    void          *choose_scratch;
    int32_t       *edit_at; /* host [V] zeros between rows */

    uint16_t          *kept;    /* [limits.n_kept, D] hidden states, for drafts */
    fm_matrix          draft_head; /* the head in E4M3, for links; panels NULL: links use the head */
    fm_cuda_bytes      draft_row;  /* [max_out, D] rows that are multiplied with it */
    fm_cuda_candidate *best;    /* [n_attn, max_out] */
    int32_t           *link_id; /* [max_out] what the last link drafted */
    int32_t           *drafted; /* host [limits.max_draft, max_out] of the chain at hand */

    float *logits;                  /* host [n_lane][max_out of all groups, V] */
    char  *memory, *pinned;         /* all of the above but kv */
    void  *lt_space;
    size_t memory_bytes, pinned_bytes, kv_bytes;
} fm_cuda_run;

static inline fm_cuda_run *fm__gpu(fm_run *r)
{
    return r->backend;
}

/* The scales of one layer's cached tokens; NULL: they are bf16. */
static inline float *fm__cuda_kv_scale(const fm_run *r, int layer)
{
    const fm_cuda_run *g     = r->backend;
    const size_t       slots = (size_t)r->limits.n_page * (size_t)r->limits.page_size;
    return g->kv_scale ? g->kv_scale + (size_t)layer * slots : NULL;
}

/* Generated rows, with those that pad a step of them alone. */
static inline int fm__cuda_generated(const fm_run *r)
{
    const fm_cuda_run *g = r->backend;
    return g->pass.n_prompt_span ? g->pass.n_gen : r->n_row;
}

static inline int fm__cuda_least(int a, int b)
{
    return a < b ? a : b;
}

static inline size_t fm__cuda_most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Rows of a pass through an FFN, of the own group or of `groups`. */
static inline size_t fm__cuda_pass_rows(const fm_run_limits *lim, int groups)
{
    return fm__cuda_most(1, (size_t)fm__cuda_least(lim->max_rows * groups, FM_CUDA_PASS_ROWS));
}

/* Slots of a row whose experts this rank can have, at most. */
static inline size_t fm__cuda_own_slots(const fm_model_config *c, const fm_shard *shard)
{
    return (size_t)fm__cuda_least(c->top_k, fm_shard_n_expert(shard, c));
}

/* Words of a mask with a bit per token. */
static inline size_t fm__cuda_mask_words(int vocab)
{
    return ((size_t)vocab + 31) / 32;
}

/* pages.c */
fm_status fm__cuda_copies_create(fm_cuda_copies *c);
void      fm__cuda_copies_destroy(fm_cuda_copies *c);
fm_status fm__cuda_copy_pages(fm_run *r, const fm_page_copy *copy, int n);
fm_status fm__cuda_copied(fm_run *r, int waits, uint32_t *n_made);
fm_status fm__cuda_copies_pass(fm_cuda_run *g, int is_whole); /* a pass begins; is_whole: it may be
                                                               * recorded and cannot wait later */
fm_status fm__cuda_copies_layer(fm_run *r, int layer); /* before it touches the cache of a layer */
fm_status fm__cuda_copies_end(fm_cuda_run *g);

/* carve.c: on a counting slab this is the plan */
void   fm__cuda_set_bounds(fm_cuda_run *g, const fm_model_config *c, const fm_run_limits *lim);
void   fm__cuda_carve(fm_cuda_run *g, fm_acts *a, const fm_model_config *c, const fm_shard *shard,
                      const fm_run_limits *lim, fm_slab *s);
void   fm__cuda_carve_lists(fm_cuda_lists *l, const fm_cuda_list_sizes *n, const fm_shard *shard,
                            fm_slab *s);
void   fm__cuda_carve_pinned(fm_cuda_run *g, const fm_model_config *c, const fm_shard *shard,
                             const fm_run_limits *lim, fm_slab *s);
/* Keys of a part of generated rows; parts of a row that sees so many keys. */
static inline int fm__cuda_part_keys(const fm_model_config *c)
{
    return c->split_tile > 0 ? c->split_tile : FM_CUDA_PART;
}

static inline int fm__cuda_parts(const fm_model_config *c, int n_key)
{
    return fm_mla_parts(n_key, fm__cuda_part_keys(c));
}

/* Parts that count as few, of which thread blocks may share each; 0: none. A rank may have no
 * head at all. */
static inline int fm__cuda_few_units(const fm_model_config *c, int n_head)
{
    const int by16 = n_head > 16 ? (n_head + 15) / 16 : 1;
    if (fm__cuda_part_keys(c) > FM_MLA_FEW_PART) return 0;
    return by16 < FM_CUDA_FEW_PARTS ? FM_CUDA_FEW_PARTS / by16 : 1;
}

/* ranges.c */
void fm__cuda_ranges_open(fm_run *r);
void fm__cuda_ranges_pass(fm_run *r); /* around a pass */
void fm__cuda_ranges_end(fm_run *r);
/* batch.c */
void fm__cuda_begin(fm_run *r); /* the batch's lists go to the device */
void fm__cuda_end(fm_run *r);
/* sample.c */
fm_status fm__cuda_sample(fm_run *r, const fm_batch *b, const fm_draw *draw, int *ticket);
fm_status fm__cuda_sampled(fm_run *r, int ticket, fm_sampled *out);
/* rows.c */
void fm__cuda_find_slots(fm_run *r); /* the first thing in a pass */
void fm__cuda_embed(fm_run *r, fm_f32s x, const void *table);
void fm__cuda_rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w);
void fm__cuda_gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w);
fm_status fm__cuda_combine_later(fm_run *r, const fm_cuda_combine_args *a); /* with y's sum */
void fm__cuda_add_later(fm_run *r, fm_f32s x, fm_f32s y); /* x += y, with the next norm of x */
void fm__cuda_settle(fm_run *r); /* runs deferred sums now, because x or y is read by another op */
void fm__cuda_rope_q(fm_run *r, fm_act q);
void fm__cuda_store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm);
void fm__cuda_route(fm_run *r, fm_routing out, fm_f32s score, const float *bias);
/* side.c: open and close enclose what goes to the side, if open says so;
 * join comes before the first use of its results */
fm_status fm__cuda_side_create(fm_cuda_side *s);
void      fm__cuda_side_destroy(fm_cuda_side *s);
void      fm__cuda_side_note(fm_run *r); /* what the side needs is in the stream now */
int       fm__cuda_side_open(fm_run *r);
void      fm__cuda_side_again(fm_run *r); /* behind what it had, until close */
void      fm__cuda_side_close(fm_run *r);
void      fm__cuda_side_join(fm_run *r);
/* ffn.c */
void fm__cuda_product(fm_run *r, fm_cuda_linear_args a);
void fm__cuda_linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row);
void fm__cuda_linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row);
void fm__cuda_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w);
/* quantise.c: E4M3 activations of E4M3 weights */
int  fm__cuda_quantises(const fm_run *r, const fm_matrix *w);
void fm__cuda_quantise(fm_run *r, fm_cuda_bytes to, const void *x, int k, int n_row);
fm_cuda_bytes    fm__cuda_bytes_for(const fm_run *r, fm_act y); /* what a norm of y quantises to */
fm_cuda_bytes    fm__cuda_bytes_of(fm_run *r, const void *x, int k, int n_row);
fm_cuda_fp8_args fm__cuda_bytes_args(const fm_run *r, fm_cuda_bytes x, const fm_matrix *w);
void             fm__cuda_bytes_product(fm_run *r, fm_cuda_bytes x, const fm_matrix *w, void *y,
                                        fm_cuda_fp8_out out, int n_row);
/* experts.c */
int       fm__cuda_sorts_along(const fm_run *r); /* few rows, whose pairs are sorted as they are routed */
fm_status fm__cuda_route_and_sort(fm_run *r, const fm_cuda_route_args *route);
void fm__cuda_experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                      int accumulate);
/* drafts.c */
fm_status fm__cuda_fill_draft_head(fm_run *r); /* from the weights */
void      fm__cuda_linear_draft(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w);
void      fm__cuda_list_states(fm_run *r); /* on the host, when a pass begins */
void      fm__cuda_hidden(fm_run *r, fm_act h, fm_f32s x, const float *norm, const float *w);
void      fm__cuda_best(fm_run *r, fm_f32s logits, fm_act state);
void      fm__cuda_end_link(fm_run *r); /* its drafts go to the host */
fm_status fm__cuda_drafted(fm_run *r, const fm_batch *b, int n_link, int32_t *id);
/* Where FM_CHOICE tokens of the pass at hand are found. */
static inline const int32_t *fm__cuda_chosen(const fm_run *r)
{
    const fm_cuda_run *g = r->backend;
    return r->batch->link ? g->link_id : g->choose_there.id;
}
/* attend.c */
void fm__cuda_attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w);

#endif
