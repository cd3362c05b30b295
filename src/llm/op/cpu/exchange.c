/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges of the ranks of a stage: all-gather of columns, embeddings of divided vocabularies, and
 * the dispatch of rows to the ranks that have their experts. */
#include "llm/kernel/rows/rows.h"
#include "llm/op/cpu/cpu_internal.h"

enum { BLOCK_ROWS = 64, ALONE_BYTES = 128 << 10 }; /* less is done by one thread */

/* --- columns --------------------------------------------------------------- */

fm_pieces fm__pieces_of(fm_columns col, size_t element, fm_slab *s)
{
    return (fm_pieces){.col     = col,
                       .element = element,
                       .bytes   = fm_slab_take(s, (size_t)col.n_part * sizeof(size_t))};
}

/* Where a rank's piece of n_row rows lies in a room for all of them. */
void *fm__own_piece(const fm_pieces *p, void *room, int part, int n_row)
{
    if (!room) return NULL; /* only counting */
    return (char *)room + (size_t)n_row * (size_t)fm_columns_part(p->col, part).begin * p->element;
}

static fm_comm_call gather_call(fm_pieces *p, int me, void *own, int n_row)
{
    const size_t row = (size_t)n_row * p->element;
    p->n_row         = n_row;
    p->first         = (char *)own - row * (size_t)fm_columns_part(p->col, me).begin;
    for (int i = 0; i < p->col.n_part; i++)
        p->bytes[i] = row * (size_t)fm_range_len(fm_columns_part(p->col, i));
    return fm_call_all_gather(p->first, own, p->bytes);
}

/* A job that did not start is no job. */
void fm__start_job(fm_run *r, fm_comm_job *job, fm_comm *group, fm_comm_call call)
{
    if (!fm__is_well(r, fm_comm_start(group, job, call))) *job = (fm_comm_job){0};
}

void fm__start_gather(fm_run *r, fm_pieces *p, fm_comm *group, void *own, int n_row)
{
    fm__start_job(r, &p->job, group, gather_call(p, group->rank, own, n_row));
}

typedef void put_fn(void *to, const void *from, size_t bytes);

static void put_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

static void put_sum(void *to, const void *from, size_t bytes)
{
    fm_row_add(to, from, (int)(bytes / sizeof(float)));
}

static void put_block(const fm_pieces *p, put_fn *put, char *rows, int begin, int end)
{
    const size_t ld = (size_t)p->col.n * (size_t)p->col.width * p->element;
    const char  *from = p->first;
    for (int i = 0; i < p->col.n_part; from += p->bytes[i++]) {
        const fm_range part  = fm_columns_part(p->col, i);
        const size_t   bytes = (size_t)fm_range_len(part) * p->element;
        char          *to    = rows + (size_t)part.begin * p->element;
        for (int row = begin; row < end; row++)
            put(to + (size_t)row * ld, from + (size_t)row * bytes, bytes);
    }
}

static void put_rows(const fm_cpu *b, const fm_pieces *p, put_fn *put, void *rows)
{
    const size_t bytes = (size_t)p->n_row * (size_t)p->col.n * (size_t)p->col.width * p->element;
    if (bytes <= ALONE_BYTES) {
        put_block(p, put, rows, 0, p->n_row);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(b->n_thread)
    for (int at = 0; at < p->n_row; at += BLOCK_ROWS)
        put_block(p, put, rows, at, fm__min(at + BLOCK_ROWS, p->n_row));
}

int fm__finish_gather(fm_run *r, fm_pieces *p, void *rows)
{
    if (r->fault != FM_OK || !fm__is_well(r, fm_comm_wait(&p->job))) return 0;
    put_rows(fm__cpu(r), p, put_copy, rows);
    return 1;
}

/* Where nothing can be done meanwhile, so that a report sees who came late. */
static int gather_now(fm_run *r, fm_pieces *p, fm_comm *group, void *own)
{
    const int n = r->batch->n_row;
    return n && fm__is_well(r, fm_comm_run(group, gather_call(p, group->rank, own, n)));
}

void fm__gather_rows(fm_run *r, fm_pieces *p, fm_comm *group, void *own, void *rows)
{
    if (gather_now(r, p, group, own)) put_rows(fm__cpu(r), p, put_copy, rows);
}

void fm__cpu_gather_act(fm_run *r, fm_act all, fm_act mine)
{
    if (r->ranks.attn->n_rank == 1) return; /* the same buffer */
    fm__gather_rows(r, &fm__cpu(r)->exchange.o, r->ranks.attn, mine.data, all.data);
}

void fm__cpu_gather_add(fm_run *r, fm_f32s x, fm_f32s y)
{
    fm_cpu    *b = fm__cpu(r);
    fm_pieces *p = &b->exchange.y;
    fm__poke(r);
    if (r->ranks.attn->n_rank == 1) {
        fm__cpu_add(r, x, y);
        return;
    }
    fm__finish_mlp(r);
    if (r->fault == FM_OK && gather_now(r, p, r->ranks.attn, y.data))
        put_rows(b, p, put_sum, x.data);
}

/* --- words ----------------------------------------------------------------- */

/* Each rank contributes the rows of its words, in row order; word_at says where
 * each row then lies.  h is not yet in use and has room for all of them. */
const void *fm__gather_words(fm_run *r, const void *table, const int32_t *token)
{
    fm_cpu          *b     = fm__cpu(r);
    const fm_batch  *batch = r->batch;
    const fm_comm   *attn  = r->ranks.attn;
    const fm_columns words = fm__outputs_by(r->weights->shard.attn, r->config->vocab);
    const int        first = fm_columns_part(words, attn->rank).begin;
    const size_t     row   = (size_t)r->config->hidden * b->act_bytes;
    size_t          *bytes = b->exchange.y.bytes; /* y is not in use either */
    char            *all   = r->act.h.data;
    int32_t          at    = 0;
    for (int k = 0; k < attn->n_rank; k++) {
        const int32_t before = at;
        for (int i = 0; i < batch->n_row; i++) {
            if (fm__part_of(words, token[i]) != k) continue;
            if (k == attn->rank)
                memcpy(all + (size_t)at * row,
                       (const char *)table + (size_t)(token[i] - first) * row, row);
            b->exchange.word_at[i] = at++;
        }
        bytes[k] = (size_t)(at - before) * row;
    }
    size_t own = 0;
    for (int k = 0; k < attn->rank; k++) own += bytes[k];
    fm__is_well(r, fm_all_gather(r->ranks.attn, all, all + own, bytes));
    return all;
}

/* --- rows of all groups ---------------------------------------------------- */

static void copy_routing(int32_t *room, fm_routing rt, size_t n)
{
    memcpy(room, rt.expert, n * sizeof *rt.expert);
    memcpy(room + n, rt.weight, n * sizeof *rt.weight);
}

/* The shared expert runs while this is under way. */
void fm__cpu_dispatch(fm_run *r, fm_act h_all, fm_routing route_all, fm_act h, fm_routing route)
{
    fm_comm     *group = r->ranks.group;
    fm_cpu_exchange *x     = &fm__cpu(r)->exchange;
    if (group->n_rank == 1) return; /* the same buffers */
    (void)route_all;
    const size_t k   = (size_t)r->config->top_k;
    int32_t     *own = x->route_room;
    for (int g = 0; g < group->n_rank; g++) {
        const size_t n    = (size_t)fm__rows_of_group(r->batch, g);
        x->rows_bytes[g]  = n * (size_t)h.width * fm__cpu(r)->act_bytes;
        x->route_bytes[g] = 2 * n * k * sizeof *own;
        if (g < group->rank) own += 2 * n * k;
    }
    copy_routing(own, route, (size_t)r->batch->n_row * k);
    fm__start_job(r, &x->route_job, group, fm_call_all_gather(x->route_room, own, x->route_bytes));
    fm__start_job(r, &x->rows_job, group, fm_call_all_gather(h_all.data, h.data, x->rows_bytes));
}

/* The rows of h arrive in their place. */
void fm__finish_dispatch(fm_run *r, fm_routing route_all)
{
    fm_cpu_exchange *x = &fm__cpu(r)->exchange;
    if (r->ranks.group->n_rank == 1 || !fm__is_well(r, fm_comm_wait(&x->route_job)) ||
        !fm__is_well(r, fm_comm_wait(&x->rows_job)))
        return;
    const int32_t *room = x->route_room;
    size_t         at   = 0;
    for (int g = 0; g < r->ranks.group->n_rank; g++) {
        const size_t n = (size_t)fm__rows_of_group(r->batch, g) * (size_t)r->config->top_k;
        memcpy(route_all.expert + at, room, n * sizeof *room);
        memcpy(route_all.weight + at, room + n, n * sizeof *room);
        room += 2 * n;
        at += n;
    }
}
