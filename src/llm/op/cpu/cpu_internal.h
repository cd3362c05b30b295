/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU back end: its record (fm_cpu), sizes of tiles and passes, and inline helpers of its ops.
 *
 *     rows of x ──> tiles of up to 512 rows ──> panels of 32 outputs (kernel/gemm) ──> `done` stores */
#ifndef FM_LLM_OP_CPU_CPU_INTERNAL_H
#define FM_LLM_OP_CPU_CPU_INTERNAL_H

#include "llm/kernel/draft_head/draft_head.h"
#include "llm/kernel/gemm/gemm.h"
#include "llm/kernel/gemm/gemm_few.h"
#include "llm/kernel/latent/latent.h"
#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu/exchange_internal.h"
#include "llm/op/run.h"

enum {
    FM_TILE_ROWS    = 512,  /* rows handed to the gemm kernel at once, at most */
    FM_PASS_ROWS    = 2048, /* rows an FFN takes through its wide middle at once */
    FM_PROMPT_KEYS  = 256,  /* keys of a block in the expanded form, counted from position 0 */
    FM_PROMPT_ROWS  = 2048, /* queries that share one expansion of the keys */
    FM_QUERY_TILE   = 64,   /* queries scored at once */
    FM_LATENT_UNITS = 256,  /* partial results of the absorbed form kept at once, at least */
};

/* The private memory of one thread. */
typedef struct {
    float *tile;     /* [FM_TILE_ROWS, 32] */
    void  *query;    /* [FM_QUERY_TILE, key width and a line] act, zeros behind each query */
    void  *key;      /* expanded keys [FM_PROMPT_KEYS, key width] act */
    void  *value;    /* expanded values [FM_PROMPT_KEYS, value width] act */
    void  *k_panel;  /* the keys as panels */
    void  *v_panel;  /* the values as panels */
    float *score;    /* [FM_PROMPT_KEYS/32][FM_QUERY_TILE, 32] or [FM_LATENT_KEYS, 16] */
    void  *weight;   /* as many act: softmax weights */
    float *out;      /* [FM_PROMPT_ROWS, value width] */
    void  *lanes;    /* 16 queries in the latent space as latent.h wants them */
    float *max, *sum; /* [FM_PROMPT_ROWS] */
    float *row;       /* [D] a sum under way */
    void  *rows;      /* [fm__rows_at_once, D and a line] act: rows of an expert side by side */
    void  *up;        /* [nope + value width, kv_lora] act: a head of kv_b, widened */
} fm_thread_scratch;

/* Rows of one prompt span that share an expansion of the keys. */
typedef struct {
    int32_t span, row0, n_row;
} fm_prompt_group;

/* A row and one of the experts it goes to. */
typedef struct {
    int32_t row;   /* of the pass */
    int32_t place; /* among the pairs of this rank's experts, by row and slot */
    int32_t group; /* of ranks that owns the row */
} fm_pair;

/* A block of rows of one expert. */
typedef struct {
    int32_t expert, pair0, n;
} fm_expert_block;

/* The largest logit of a row among a rank's words. */
typedef struct {
    float   logit;
    int32_t id;
} fm_best_word;
/* Rows of activations as a product takes them. */
typedef struct {
    char        *data;
    size_t       stride; /* bytes */
    float       *scale;  /* [row, fm__blocks(k)] of quantised rows (W8A8); NULL: rows are bf16 */
} fm_quantised;

typedef struct {
    const fm_gemm   *gemm;
    fm_gemm_few_fn  *few; /* or NULL */
    fm_gemm_few_fp8_fn *few_fp8; /* or NULL */
    const fm_pack   *pack;
    const fm_latent *latent;
    int              n_thread;
    fm_dtype         act;
    size_t           act_bytes; /* of one element */

    char  *kv;        /* [n_layer][n_page*page_size][kv_width] act */
    struct fm_prefault *prefault; /* of kv; NULL: there are no pages */
    size_t kv_layer, kv_token; /* bytes of one layer, and of one token in it */
    float *cos, *sin; /* [max_context, rope/2] */

    int32_t *row_span; /* [max_rows] which span a row of this pass belongs to */

    void            *mlp_middle; /* FFN: [FM_PASS_ROWS, widest inter] act */
    void            *middle;     /* experts: [pairs of a pass, inter and maybe a line] act */
    float           *pair_out;   /* [pairs of a pass, own columns] experts' outputs, before the sum over slots */
    fm_pair         *pair;       /* [pairs of a pass] by expert */
    int32_t         *count;      /* [own experts + 1] */
    fm_expert_block *block;

    fm_prompt_group *group; /* [max_rows] */

    char  *q_latent;  /* [FM_LATENT_UNITS rows, H, kv_width] act */
    char  *z_latent;  /* the same rows, [H, kv_lora] act */
    float *part;      /* [n_unit, H up to a multiple of 16, kv_lora] weighted latents of a part */
    float *part_stat; /* [n_unit, H/16 rounded up, 2, 16] their maxima and sums */
    int    n_unit;
    int32_t *unit_row;             /* [n_unit] */
    int32_t *first_unit;           /* [FM_LATENT_UNITS] of a row */
    int32_t *gen_row, *gen_span;   /* [max_rows] rows in the absorbed form */

    char         *kept;       /* [limits.n_kept, D] act: hidden states, for drafts */
    int32_t      *word;       /* [max_rows] tokens of a link */
    int32_t      *drafted;    /* [limits.max_draft, max_out] of the chain at hand */
    fm_best_word *best;       /* [n_attn, out rows] each rank's */
    size_t       *best_bytes; /* [n_attn] */
    fm_draft_head draft_head;  /* panel NULL: links use the BF16 head */
    uint8_t      *draft_row;   /* [max_out, D] a link's rows, in bytes, */
    float        *draft_scale; /* [max_out] and their scales */
    float        *embedded;   /* [vocab, D] by token (embedded.c), or NULL; */
    char         *is_embedded; /* [vocab] rows of it that are known */
    fm_batch      filling;      /* the rows of a pass that fill the cache for drafts, */
    fm_span      *filling_span; /* [2 * max_out] */
    int           filling_row;  /* and the first of them */

    fm_cpu_exchange exchange;

    fm_quantised quant; /* rows that a product of FP8 weights takes; data NULL: none are quantised */
    float *mlp_scale;   /* [FM_PASS_ROWS, widest inter / 128] of mlp_middle, quantised in place */
    float *middle_scale; /* [pairs of a pass, inter / 128] of middle */

    fm_thread_scratch *scratch; /* [n_thread] */
    void              *memory;  /* the slab of all the above */
    size_t             memory_bytes, kv_bytes;
} fm_cpu;

static inline int fm__min(int a, int b)
{
    return a < b ? a : b;
}

/* Rows of k values that stay in a core's cache while panels pass: what has AMX has 2 MB. */
static inline int fm__rows_at_once(const fm_cpu *b, int k)
{
    const size_t room = b->gemm->isa == FM_ISA_AMX ? 3u << 19 : 1u << 20;
    const int    rows = (int)(room / ((size_t)k * b->act_bytes)) / 32 * 32;
    return rows < 64 ? 64 : fm__min(rows, FM_TILE_ROWS);
}

/* m rows in as few blocks as possible, none of them much smaller than the others: each reads
 * all weights. */
static inline int fm__even_block(int m, int most)
{
    const int n_block = (m + most - 1) / most;
    return n_block < 2 ? most : (int)fm_round_up((size_t)((m + n_block - 1) / n_block), 16);
}

/* Bytes from row to row of k values, padded by a cache line so that strides do not map to the
 * same cache sets. */
static inline size_t fm__row_stride(const fm_cpu *b, int k)
{
    return (size_t)k * b->act_bytes + 64;
}

/* AMX loads a tile from rows at equal distances: scattered ones are moved side by side. */
static inline int fm__moves_rows(const fm_cpu *b)
{
    return b->gemm->isa == FM_ISA_AMX && b->act == FM_BF16;
}

static inline fm_cpu *fm__cpu(fm_run *r)
{
    return r->backend;
}

static inline char *fm__act_at(const fm_cpu *c, fm_act a, int row)
{
    return (char *)a.data + (size_t)row * (size_t)a.stride * c->act_bytes;
}

/* Elements between rows: padded where AMX gains by it. */
static inline int fm__act_padding(const fm_cpu *b)
{
    return fm__moves_rows(b) ? (int)(64 / b->act_bytes) : 0;
}

/* Elements from row to row of n.  Ranks exchange rows without padding. */
static inline int fm__act_stride(const fm_cpu *b, int n, int is_own)
{
    return n + (is_own ? fm__act_padding(b) : 0);
}

/* The cached token at position `pos` of a span's sequence. */
static inline char *fm__kv_at(const fm_run *r, const fm_cpu *c, int layer, const fm_span *s, int pos)
{
    const int ps   = r->limits.page_size;
    const int slot = s->page[pos / ps] * ps + pos % ps;
    return c->kv + (size_t)layer * c->kv_layer + (size_t)slot * c->kv_token;
}

/* n panels that wait for weights from memory, in pieces: one for each thread, half of all together;
 * then half of the others, and so on.  A piece begins with lines that nothing has prefetched and ends
 * with prefetches that are wasted, so the first are long; the last are short, so all threads end
 * together. */
static inline int fm__n_piece(int n, int n_thread)
{
    int round = 1;
    while (n >> (round - 1) > n_thread) round++;
    return round * n_thread;
}

static inline fm_range fm__piece(int n, int n_thread, int i)
{
    const int left = n >> (i / n_thread), at = n - left, t = i % n_thread;
    const int take = left > n_thread ? left - left / 2 : left;
    return (fm_range){at + take * t / n_thread, at + take * (t + 1) / n_thread};
}

/* Whether n x k weights times m rows are too few to share: a fork and a join cost more than
 * the other threads save.  A row alone waits for its weights about as long as two. */
static inline int fm__is_small_product(size_t n, int k, int m)
{
    return n * (size_t)k * (size_t)(m < 2 ? 2 : m) <= (size_t)1 << 17;
}

/* Whether one thread does `n` rows of `width` numbers sooner than it wakes the others. */
static inline int fm__are_few_numbers(int n, int width)
{
    return (long)n * width <= 1 << 12;
}

/* Prefetch for writing.  A tile's rows lie far apart and none of their cache lines is present:
 * fetched one by one when the tile is stored, they take longer than AMX takes to compute it. */
static inline void fm__expect(const void *p, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64) __builtin_prefetch((const char *)p + at, 1);
}

/* A result larger than the caches is written by non-temporal stores; only AMX is fast enough for
 * that to matter. */
static inline int fm__is_far(const fm_cpu *b, size_t bytes)
{
    return b->gemm->isa == FM_ISA_AMX && bytes > (size_t)4 << 20;
}

/* Scales of a quantised row of k values. */
static inline int fm__blocks(int k)
{
    return (k + FM_FP8_BLOCK - 1) / FM_FP8_BLOCK;
}

static inline const float *fm__scale_of_row(const float *scale, int k, int row)
{
    return scale + (size_t)row * (size_t)fm__blocks(k);
}

static inline const char *fm__panel_data(const fm_matrix *w, int panel)
{
    return (const char *)w->panels + (size_t)panel * fm_panel_bytes(w->dtype, w->k);
}

static inline const float *fm__panel_scale(const fm_matrix *w, int panel)
{
    return w->scale ? w->scale + (size_t)panel * (size_t)fm_panel_scales(w->k) : NULL;
}

/* A panel of a head's part of kv_b in the type of activations: where it lies, or, if the weights are
 * FP8, widened to `room`. */
static inline const void *fm__up_panel(const fm_cpu *c, const fm_matrix *up, int panel, void *room)
{
    if (up->dtype == c->act) return fm__panel_data(up, panel);
    c->gemm->widen(room, fm__panel_data(up, panel), fm__panel_scale(up, panel), up->k);
    return room;
}

/* One panel of a matrix applied to rows, c[m, 32]; `done` is called for every few rows that are
 * finished.  x_scale: of quantised rows, else NULL. */
static inline void fm__panel_told(const fm_cpu *c, float *tile, const void *const *x,
                                  const float *const *x_scale, const fm_matrix *w, int panel, int m,
                                  fm_rows_done *done, void *ctx)
{
    fm_gemm_told(c->gemm, w->dtype, tile, x, x_scale, fm__panel_data(w, panel),
                 fm__panel_scale(w, panel), m, w->k, done, ctx);
}

/* Panels that m rows are multiplied with at once; 1: one after the other.  Panels larger than those
 * of a small model come from memory, slower than one chain of sums takes them. */
static inline int fm__panels_together(const fm_cpu *c, const fm_matrix *w, int m)
{
    enum { TOGETHER = 4, LARGEST = 64 << 10 };
    const int is_few = c->few && w->dtype == FM_BF16 && m <= FM_GEMM_FEW_ROWS;
    return is_few && fm_panel_bytes(w->dtype, w->k) <= LARGEST ? TOGETHER : 1;
}

/* Where the rows of a panel's tile go. */
typedef struct {
    const float *tile;
    void        *to[FM_TILE_ROWS];
    size_t       bytes; /* of a row */
    int          m, far;
    int          ahead; /* rows that are expected before they are final */
} fm_outlet;

static inline void fm__expect_rows(const fm_outlet *o, int from, int n)
{
    for (int i = from; i < fm__min(from + n, o->m) && !o->far; i++) fm__expect(o->to[i], o->bytes);
}

/* Rows of f32, when they are final. */
static inline void fm__put_f32(const fm_outlet *o, int from, int n)
{
    const float *c = o->tile + from * FM_PANEL;
    if (o->far) fm_tile_scatter(o->to + from, FM_F32, c, n);
    for (int i = 0; i < n && !o->far; i++) memcpy(o->to[from + i], c + i * FM_PANEL, o->bytes);
}

/* fm__panel_told where `done` puts the rows into places that are in no cache. */
static inline void fm__panel_to(const fm_cpu *c, fm_outlet *o, float *tile, const void *const *x,
                                const float *const *x_scale, const fm_matrix *w, int panel,
                                fm_rows_done *done, void *ctx)
{
    o->tile  = tile;
    o->ahead = fm_gemm_telling(c->gemm, w->dtype) ? 32 : o->m;
    fm__expect_rows(o, 0, o->ahead);
    fm__panel_told(c, tile, x, x_scale, w, panel, o->m, done, ctx);
    if (o->far) fm_scatter_end();
}

/* The tiles of n neighbouring panels of few rows, if they are multiplied together; 0: they are not. */
static inline int fm__multiply_few(const fm_cpu *c, float *tile, const void *const *x,
                                   const fm_matrix *w, int panel, int n, int m)
{
    if (n < 2) return 0;
    c->few(tile, x, fm__panel_data(w, panel), n, m, w->k);
    return 1;
}

/* Rows of a tile that is final, to where they belong. */
static inline void fm__put_tile(fm_outlet *o, const float *tile, fm_rows_done *put, void *ctx)
{
    o->tile  = tile;
    o->ahead = o->m;
    put(ctx, 0, o->m);
    if (o->far) fm_scatter_end();
}

static inline int fm__panels(const fm_matrix *w)
{
    return (w->n + FM_PANEL - 1) / FM_PANEL;
}

/* rows.c */
void fm__cpu_embed(fm_run *r, fm_f32s x, const void *table);
void fm__cpu_rmsnorm(fm_run *r, fm_act y, fm_f32s x, const float *w);
void fm__cpu_gather_norm(fm_run *r, fm_act y, fm_f32s x, const float *w);
void fm__cpu_rope_q(fm_run *r, fm_act q);
void fm__cpu_store_kv(fm_run *r, int layer, fm_f32s ckv, const float *norm);
void fm__cpu_add(fm_run *r, fm_f32s x, fm_f32s y); /* x += y, of equal width */
void fm__note_spans(fm_run *r);                    /* the first thing in a pass */
/* linear.c */
void fm__cpu_linear_f32(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w, int n_row);
void fm__cpu_linear_act(fm_run *r, fm_act y, fm_act x, const fm_matrix *w, int n_row);
void fm__cpu_mlp(fm_run *r, fm_f32s y, fm_act h, const fm_mlp_weights *w);
void fm__finish_mlp(fm_run *r); /* mlp may leave its last pass under way; no y before this */
/* quantise.c: activations of FP8 weights (W8A8) */
void         fm__carve_quantised(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                                 const fm_run_limits *lim, fm_slab *s);
int          fm__quantises(const fm_run *r, const fm_matrix *w); /* what it multiplies */
fm_quantised fm__rows_for(fm_run *r, fm_act x, const fm_matrix *w, int row0, int n_row);
fm_quantised fm__rows_in_place(fm_run *r, fm_act x, float *scale, const fm_matrix *w, int n_row);
/* route.c */
void fm__cpu_route(fm_run *r, fm_routing out, fm_f32s score, const float *bias);
/* experts.c */
void fm__cpu_experts(fm_run *r, fm_f32s y, fm_act h, fm_routing rt, const fm_mlp_weights *expert,
                     int accumulate);
void fm__carve_experts(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                       const fm_run_limits *lim, fm_slab *s);
/* exchange*.c */
void      fm__carve_exchange(fm_cpu *b, fm_acts *a, const fm_model_config *c, const fm_shard *shard,
                             const fm_run_limits *lim, fm_slab *s);
void      fm__carve_stages(fm_cpu *b, fm_acts *a, const fm_model_config *c, const fm_shard *shard,
                           const fm_run_limits *lim, fm_slab *s);
void      fm__exchange_fini(fm_cpu *b); /* waits for what is still under way */
fm_pieces fm__pieces_of(fm_columns col, size_t element, fm_slab *s);
void     *fm__own_piece(const fm_pieces *p, void *room, int part, int n_row);
void      fm__start_job(fm_run *r, fm_comm_job *job, fm_comm *group, fm_comm_call call);
void      fm__start_gather(fm_run *r, fm_pieces *p, fm_comm *group, void *own, int n_row);
int       fm__finish_gather(fm_run *r, fm_pieces *p, void *rows); /* to rows; 0: a fault */
void      fm__gather_rows(fm_run *r, fm_pieces *p, fm_comm *group, void *own, void *rows);
const void *fm__gather_words(fm_run *r, const void *table, const int32_t *token);
void      fm__finish_dispatch(fm_run *r, fm_routing route_all);
void      fm__await_logits(fm_run *r); /* act.logits may be written */
void      fm__poke(fm_run *r);       /* what is under way to other stages moves on */
void      fm__cpu_gather_act(fm_run *r, fm_act all, fm_act mine);
void      fm__cpu_gather_add(fm_run *r, fm_f32s x, fm_f32s y);
void      fm__cpu_dispatch(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h, fm_routing route);
void      fm__cpu_pass_on(fm_run *r, fm_f32s x);
void      fm__cpu_receive(fm_run *r, fm_f32s x);
void      fm__cpu_collect(fm_run *r, fm_f32s logits);
fm_status fm__cpu_logits(fm_run *r, const fm_batch *b, const float **all);
/* prefault.c */
fm_status fm__prefault(fm_run *r); /* step buffers and the first KV pages */
void      fm__cpu_begin(fm_run *r);
void      fm__cpu_end(fm_run *r);
/* pages.c */
fm_status fm__cpu_copy_pages(fm_run *r, const fm_page_copy *copy, int n);
/* drafts.c */
void fm__carve_drafts(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                      const fm_run_limits *lim, fm_slab *s);
const int32_t *fm__words(fm_run *r); /* the batch's tokens, those drafted by the link before known */
void      fm__cpu_hidden(fm_run *r, fm_act h, fm_f32s x, const float *norm, const float *w);
void      fm__cpu_best(fm_run *r, fm_f32s logits, fm_act state);
int       fm__cpu_draft_rows(fm_run *r);
fm_status fm__cpu_drafted(fm_run *r, const fm_batch *b, int n_link, int32_t *id);
/* embedded.c */
void fm__carve_embedded(fm_cpu *b, const fm_model_config *c, const fm_shard *shard, fm_slab *s);
/* draft_head.c */
void fm__carve_draft_head(fm_cpu *b, const fm_model_config *c, const fm_shard *shard,
                          const fm_run_limits *lim, fm_slab *s);
void fm__fill_draft_head(fm_run *r); /* from the weights */
void fm__cpu_linear_draft(fm_run *r, fm_f32s y, fm_act x, const fm_matrix *w);
void fm__cpu_embed_product(fm_run *r, fm_f32s x, fm_act h, const void *table, const float *norm,
                           const fm_matrix *w);
/* attend*.c */
void fm__cpu_attend(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w);
void fm__attend_prompt(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w);
void fm__attend_generated(fm_run *r, fm_act o, fm_act q, int layer, const fm_attn_weights *w);

#endif
