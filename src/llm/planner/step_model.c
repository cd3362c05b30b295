/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/planner/step_model.h"

#include <math.h>

/* Bytes of activations that ops on single rows move in a layer, by number of the hidden state; a
 * scale for the table of shares, which knows what it was measured with. */
enum { ROW_BYTES = 20, OPS_OF_ROWS = 4 };

const char *fm_bound_name(fm_bound b)
{
    static const char *const name[] = {
#define X(id, text) text,
        FM_BOUND_MAP(X)
#undef X
    };
    return name[b];
}

/* --- rows of a step ----------------------------------------------------------- */

typedef struct {
    double          rows, outs;
    double          generated, texts; /* rows in the absorbed form, and sequences that have some */
    double          keys, tokens;     /* that these see, and that are cached for them */
    double          prompt_keys;      /* of prompts that have rows, cached ones included */
    const fm_batch *batch;
} group_rows;

static double keys_seen(const fm_span *s) { return s->n_row * (s->pos0 + (s->n_row + 1) / 2.0); }

static group_rows count_rows(const fm_batch *b)
{
    group_rows g = {.batch = b};
    if (!b) return g;
    g.rows = b->n_row;
    g.outs = b->n_out;
    for (int i = 0; i < b->n_span; i++) {
        const fm_span *s = &b->span[i];
        if (s->form == FM_FORM_PROMPT) g.prompt_keys += s->pos0 + s->n_row;
        if (s->form != FM_FORM_GENERATED) continue;
        g.generated += s->n_row;
        g.texts++;
        g.keys += keys_seen(s);
        g.tokens += s->pos0 + s->n_row;
    }
    return g;
}

/* --- ops ---------------------------------------------------------------------- */

/* Seconds by cause, and the same by kind of work where there is one. */
typedef struct {
    double by[FM_N_BOUND], work[FM_N_WORK];
    double reads; /* of them, those in which the memory's bandwidth is all that counts */
} spent;

static void add(spent *to, fm_bound cause, fm_work_kind kind, double seconds)
{
    to->by[cause] += seconds;
    to->work[kind] += seconds;
}

static double sum_of(const spent *s)
{
    double sum = 0;
    for (int i = 0; i < FM_N_BOUND; i++) sum += s->by[i];
    return sum;
}

static double roof(const fm_step_model *m, fm_dtype factor, double bytes, double flops, int *reads)
{
    const double read = bytes / m->tuned->read, multiply = flops / fm_tuned_peak(m->tuned, factor);
    *reads = read >= multiply;
    return *reads ? read : multiply;
}

static void add_product(spent *to, const fm_step_model *m, const fm_product *p, double rows)
{
    int          reads;
    const double t = roof(m, p->factor, p->bytes, p->flops * rows, &reads);
    if (rows <= 0) return;
    if (reads) to->reads += p->count * t;
    add(to, reads ? FM_BOUND_MEMORY : FM_BOUND_COMPUTE, p->kind,
        p->count * t / fm_table_at(&m->tuned->share[p->kind], rows, 1));
    to->by[FM_BOUND_ROWS] += p->count * m->op_s;
}

/* Sets of ranks do not get equally many rows: the busiest is this far above the mean.  Where ranks
 * share cores one that is done leaves its core to another, and the busiest core counts. */
static double imbalance(const fm_step_model *m, double pairs)
{
    const int    tp = m->size.tp, crowded = m->n_core > 0 && m->n_core < tp;
    const double share = crowded ? (double)tp / m->n_core : 1, sets = m->size.ep / share;
    return sets > 1 && pairs > 0 ? 1 + sqrt(2 * log(sets) / (share * pairs)) : 1;
}

static void add_experts(spent *to, const fm_step_model *m, const fm_stage_work *s, double rows,
                        double layers)
{
    int          reads;
    const double here = s->expert.count / s->n_expert; /* share of the experts that is here */
    const double mean = rows * s->top_k * here, much = imbalance(m, mean);
    const double met = fmin(fm_experts_met(s, rows) * here * much, s->expert.count);
    if (mean <= 0 || met <= 0) return;
    const double pairs = mean * much;
    const double t =
        roof(m, s->expert.factor, met * s->expert.bytes, pairs * s->expert.flops, &reads);
    if (reads) to->reads += layers * t;
    add(to, reads ? FM_BOUND_MEMORY : FM_BOUND_COMPUTE, FM_WORK_EXPERTS,
        layers * t / fm_table_at(&m->tuned->share[FM_WORK_EXPERTS], pairs / met, 1));
    to->by[FM_BOUND_ROWS] += 2 * layers * m->op_s;
}

static double attend_factor(const fm_step_model *m) { return m->tuned->peak_bf16; }

static double generated_seconds(const fm_step_model *m, const fm_stage_work *s, const group_rows *g,
                                double *reads)
{
    int is_read;
    *reads = 0;
    if (g->generated <= 0) return 0;
    const double bytes = g->tokens * s->cached_bytes + s->attend.up_bytes;
    const double flops = 2 * g->generated * s->attend.up + 2 * s->heads * g->keys * s->attend.wide;
    const double t     = roof(m, FM_BF16, bytes, flops, &is_read);
    *reads             = is_read ? t : 0;
    return t / fm_table_at(&m->tuned->share[FM_WORK_GENERATED], g->generated, g->tokens / g->texts);
}

/* A GPU rebuilds keys and values of all prompts in one product, and attends in tiles of rows, the
 * last of a prompt being as long as the others. */
enum { TILE_ROWS = 128 };

static double expand_seconds(const fm_step_model *m, const fm_stage_work *s, const group_rows *g)
{
    const double flops = 2 * g->prompt_keys * s->attend.up;
    const double t =
        fmax(g->prompt_keys * s->cached_bytes / m->tuned->read, flops / attend_factor(m));
    return g->prompt_keys > 0 ? t / fm_table_at(&m->tuned->share[FM_WORK_LINEAR], g->prompt_keys, 1)
                              : 0;
}

static double tiles_seconds(const fm_step_model *m, const fm_stage_work *s, const fm_span *p)
{
    const double rows  = ceil((double)p->n_row / TILE_ROWS) * TILE_ROWS;
    const double flops = 2 * s->heads * rows * (p->pos0 + (p->n_row + 1) / 2.0) * s->attend.head;
    return flops / attend_factor(m) / fm_table_at(&m->tuned->share[FM_WORK_PROMPT], rows, 1);
}

/* A CPU does both prompt by prompt, and its share is of both. */
static double span_seconds(const fm_step_model *m, const fm_stage_work *s, const fm_span *p)
{
    const double tokens = p->pos0 + p->n_row;
    const double flops  = 2 * tokens * s->attend.up + 2 * s->heads * keys_seen(p) * s->attend.head;
    const double t      = fmax(tokens * s->cached_bytes / m->tuned->read, flops / attend_factor(m));
    return t / fm_table_at(&m->tuned->share[FM_WORK_PROMPT], p->n_row, tokens);
}

static double prompt_seconds(const fm_step_model *m, const fm_stage_work *s, const group_rows *g)
{
    double sum = m->tuned->is_gpu ? expand_seconds(m, s, g) : 0;
    for (int i = 0; g->batch && i < g->batch->n_span; i++) {
        const fm_span *p = &g->batch->span[i];
        if (p->form != FM_FORM_PROMPT) continue;
        sum += m->tuned->is_gpu ? tiles_seconds(m, s, p) : span_seconds(m, s, p);
    }
    return sum;
}

static void add_attention(spent *to, const fm_step_model *m, const fm_stage_work *s,
                          const group_rows *g, double layers)
{
    double reads;
    if (g->rows <= 0) return;
    add(to, FM_BOUND_ATTENTION, FM_WORK_GENERATED, layers * generated_seconds(m, s, g, &reads));
    to->reads += layers * reads;
    add(to, FM_BOUND_ATTENTION, FM_WORK_PROMPT, layers * prompt_seconds(m, s, g));
    to->by[FM_BOUND_ROWS] += layers * m->op_s;
}

static void add_single_rows(spent *to, const fm_step_model *m, const fm_stage_work *s, double rows,
                            double layers)
{
    if (rows <= 0) return;
    const double bytes = ROW_BYTES * rows * s->hidden;
    add(to, FM_BOUND_ROWS, FM_WORK_ROWS,
        layers * bytes / m->tuned->read / fm_table_at(&m->tuned->share[FM_WORK_ROWS], rows, 1));
    to->by[FM_BOUND_ROWS] += layers * OPS_OF_ROWS * m->op_s;
}

/* --- what ranks send ----------------------------------------------------------- */

/* docs/cluster.md, "Which layout when", has the bytes. */
static double exchange_of_layers(const fm_step_model *m, const fm_stage_work *s, double rows,
                                 double all_rows)
{
    const fm_rank_sizes *z = &m->size;
    const int            a = z->tp / m->n_group, c = z->tp / z->ep, per = m->cluster->per_node;
    const double         D = s->hidden, part = (double)(a - 1) / a;
    const fm_group       attn = fm_group_of(a, 1, per), channel = fm_group_of(c, 1, per);
    const fm_group       stage = fm_group_of(z->tp, 1, per);
    double               layer = 0, moe = 0;
    layer += fm_gather_seconds(m->cluster, attn, rows * 2 * s->attend.out * part);
    layer += 2 * fm_gather_seconds(m->cluster, attn, rows * 4 * D * part);
    if (s->shared_inter > 0)
        layer += fm_gather_seconds(m->cluster, attn, rows * 2 * s->shared_inter * part);
    moe += fm_gather_seconds(m->cluster, channel,
                             all_rows * 2 * s->top_k * s->moe_inter * (c - 1) / c / z->ep);
    if (m->n_group > 1)
        moe += fm_gather_seconds(m->cluster, fm_group_of(m->n_group, a, per),
                                 (all_rows - rows) * (2 * D + 8 * s->top_k));
    if (z->ep > 1 || m->n_group > 1)
        moe += fm_all_to_all_seconds(m->cluster, stage,
                                     rows * 4 * s->top_k * D / a * (z->tp - 1) / z->tp);
    return s->n_layer * layer + s->n_moe * moe;
}

/* --- a stage ------------------------------------------------------------------- */

static void add_products(spent *to, const fm_step_model *m, const fm_stage_work *s, double rows,
                         double outs)
{
    for (int i = 0; i < s->n_product; i++) {
        const fm_product *p = &s->product[i];
        add_product(to, m, p, p->kind == FM_WORK_HEAD ? outs : rows);
    }
}

/* A link of a chain of drafts: one more layer over the newest token of each text, and the head. */
static void add_drafts(spent *to, const fm_step_model *m, const fm_stage_work *s, double texts)
{
    if (!m->n_draft || !s->n_draft_layer || !s->n_layer || texts <= 0) return;
    spent layers = {0}, head = {0}, experts = {0};
    add_products(&layers, m, s, texts, 0);
    add_product(&head, m, &s->link_head, texts);
    if (s->n_moe) add_experts(&experts, m, s, texts * m->n_group, 1);
    to->by[FM_BOUND_MEMORY] +=
        m->n_draft * (sum_of(&layers) / s->n_layer + sum_of(&experts) + sum_of(&head));
}

/* The attention group with the most to do in attention and products; experts serve all groups. */
static spent stage_seconds(const fm_step_model *m, const fm_stage_work *s, const group_rows *g)
{
    spent  worst = {0};
    double all = 0, most = 0, longest = -1;
    for (int i = 0; i < m->n_group; i++) {
        spent one = {0};
        add_products(&one, m, s, g[i].rows, g[i].outs);
        add_attention(&one, m, s, &g[i], s->n_layer);
        add_single_rows(&one, m, s, g[i].rows, s->n_layer);
        add_drafts(&one, m, s, g[i].texts);
        all += g[i].rows;
        most = fmax(most, g[i].rows);
        if (sum_of(&one) <= longest) continue;
        longest = sum_of(&one);
        worst   = one;
    }
    if (s->n_moe) add_experts(&worst, m, s, all, s->n_moe);
    for (int i = 0; i < FM_N_BOUND; i++) worst.by[i] *= m->slow;
    worst.reads *= m->slow;
    if (m->size.tp > 1) worst.by[FM_BOUND_LINKS] += exchange_of_layers(m, s, most, all);
    return worst;
}

/* --- ranks that are held up ----------------------------------------------------- */

/* Expected largest of n standard normal numbers, within 0.06 of it up to 64. */
static double largest_of(int n) { return n > 1 ? sqrt(2 * log(n)) - 0.615 / pow(n, 0.04) : 0; }

/* What others disturb are cores: ranks that share one are held up together. */
static double largest_of_ranks(const fm_step_model *m, int n)
{
    return largest_of(m->n_core > 0 && n > m->n_core ? m->n_core : n);
}

/* How much longer than its mean the work of a rank takes, if it waits for the slowest. */
static double hold_up(const fm_step_model *m)
{
    return 1 + m->jitter * largest_of_ranks(m, m->size.tp * m->size.pp);
}

/* Replicas do not meet in a step, but the job ends with the slowest: from the expected slowest to
 * the fastest in equal steps, such that the slowest rank of all is as slow as if they met. */
void fm_replica_paces(const fm_step_model *m, double *pace, int n)
{
    const int    ranks = m->size.tp * m->size.pp;
    const double all = largest_of_ranks(m, n * ranks), one = largest_of_ranks(m, ranks);
    const double most = m->jitter * (all - one) / hold_up(m);
    for (int i = 0; i < n; i++) pace[i] = n > 1 ? 1 + most * (1 - 2.0 * i / (n - 1)) : 1;
}

/* A rank by itself reads as fast as its threads can, and as the host can. */
fm_sim_cores fm_shared_cores(const fm_tuned *t, int on_host, int n_node, int n_rank)
{
    if (t->is_gpu) return (fm_sim_cores){0};
    const int at_once  = on_host < t->n_thread ? on_host : t->n_thread; /* compute at full speed */
    const double alone = fmin(t->read_one * t->n_thread / at_once, t->read);
    return (fm_sim_cores){
        .n_core = at_once * n_node, .n_rank = n_rank, .most_read = alone / (t->read / at_once)};
}

/* --- a step -------------------------------------------------------------------- */

static double correction(const fm_step_model *m, double rows, int has_prompt)
{
    if (!m->steps) return 1;
    return fm_table_at(has_prompt ? &m->steps->prompt : &m->steps->generated, rows, 1);
}

static double host_seconds(const fm_step_model *m, double outs)
{
    return m->hides_host ? 0 : m->slow * (m->tuned->step_s + outs * m->tuned->out_s);
}

static double pass_seconds(const fm_step_model *m, double rows)
{
    const int far = m->size.tp >= m->cluster->per_node;
    return m->size.pp > 1 ? fm_send_seconds(m->cluster, far, rows * 4 * m->stage[0].hidden) : 0;
}

void fm_step_work(const fm_step_model *m, const fm_batch *batch, double *work)
{
    const group_rows g = count_rows(batch);
    const spent      t = stage_seconds(m, &m->stage[0], &g);
    for (int k = 0; k < FM_N_WORK; k++) work[k] = t.work[k];
}

void fm_step_seconds(void *ctx, const fm_batch *const *batch, fm_sim_times *out)
{
    enum { MOST = 1024 };
    fm_step_model *m = ctx;
    group_rows     g[MOST];
    double         rows = 0, outs = 0, generated = 0;
    FM_BUG_UNLESS(m->n_group <= MOST);
    for (int i = 0; i < m->n_group; i++) {
        g[i] = count_rows(batch[i]);
        rows += g[i].rows;
        outs += g[i].outs;
        generated += g[i].generated;
    }
    const double factor = correction(m, rows, generated < rows);
    for (int s = 0; s < m->size.pp; s++) {
        spent t = stage_seconds(m, &m->stage[s], g);
        t.by[FM_BOUND_HOST] += s ? 0 : host_seconds(m, outs) / factor;
        out->stage[s] = factor * sum_of(&t) * hold_up(m);
        out->reads[s] = factor * t.reads * hold_up(m);
        for (int i = 0; i < FM_N_BOUND; i++) m->by[i] += factor * t.by[i];
    }
    out->pass = pass_seconds(m, rows);
}
