/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace_ranks.h"

#include <stdio.h>
#include <string.h>

#include "trace/histogram.h"

/* FILE of a single rank, FILE.rank3 of one among several. */
static void path_of(fm_str *out, const char *file, int rank, int n_rank)
{
    fm_str_clear(out);
    fm_str_puts(out, file);
    if (n_rank > 1) fm_str_printf(out, ".rank%d", rank);
}

fm_status fm_trace_open_ranks(fm_trace **out, fm_world *w, const fm_trace_options *o)
{
    fm_comm         *all  = fm_world_comm(w);
    fm_str           path = {0};
    fm_trace_options own  = *o;
    own.rank              = all->rank;
    own.n_rank            = all->n_rank;
    own.host              = fm_world_host(w, all->rank);
    own.job               = fm_trace_now();
    FM_TRY(fm_broadcast(all, &own.job, sizeof own.job, 0));
    path_of(&path, o->path, all->rank, all->n_rank);
    own.path           = path.text;
    const fm_status rc = fm_trace_open(out, &own);
    fm_str_fini(&path);
    return rc;
}

/* --- clocks ------------------------------------------------------------------ */

enum { ROUNDS = 24, TAG_ASK = 1, TAG_TELL = 2 };

static fm_status ask_time(fm_comm *all, fm_trace_clock *best)
{
    best->error_ns = UINT64_MAX / 8;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t theirs = 0;
        uint64_t sent   = fm_trace_now();
        FM_TRY(fm_send(all, &sent, sizeof sent, 0, TAG_ASK));
        FM_TRY(fm_recv(all, &theirs, sizeof theirs, 0, TAG_TELL));
        const uint64_t back = fm_trace_now(), half = (back - sent) / 2;
        if (half >= best->error_ns) continue;
        *best = (fm_trace_clock){back, (int64_t)(theirs - (sent + half)), half};
    }
    return FM_OK;
}

static fm_status tell_time(fm_comm *all, int rank)
{
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t theirs = 0;
        FM_TRY(fm_recv(all, &theirs, sizeof theirs, rank, TAG_ASK));
        const uint64_t now = fm_trace_now();
        FM_TRY(fm_send(all, &now, sizeof now, rank, TAG_TELL));
    }
    return FM_OK;
}

/* An offset that may as well be none is none: ranks of a host have one clock. */
static fm_trace_clock rounded(fm_trace_clock c)
{
    const uint64_t size = (uint64_t)(c.offset_ns < 0 ? -c.offset_ns : c.offset_ns);
    if (size <= c.error_ns) c.offset_ns = 0;
    return c;
}

/* One rank after the other, so that none waits in another's round trip. */
fm_status fm_trace_compare_clocks(fm_trace *t, fm_comm *all, int end)
{
    fm_trace_clock mine = {.at_ns = fm_trace_now()};
    for (int i = 1; i < all->n_rank; i++) {
        FM_TRY(fm_barrier(all));
        if (all->rank == 0) FM_TRY(tell_time(all, i));
        if (all->rank == i) FM_TRY(ask_time(all, &mine));
    }
    if (!t) return FM_OK;
    fm_trace_set_clock(t, end, rounded(mine));
    if (!end) fm_trace_begin(t); /* the comparison is no part of what is measured */
    return FM_OK;
}

/* --- calls ------------------------------------------------------------------- */

static int make_key(const fm_trace_calls *c, const fm_comm_note *n)
{
    fm_trace_key k = {.cls = FM_TRACE_COLLECTIVE};
    snprintf(k.name, sizeof k.name, "%s", fm_comm_kind_name(n->kind));
    snprintf(k.part, sizeof k.part, "%s", n->group);
    return fm_trace_key_of(c->trace, &k);
}

static int group_of(fm_trace_calls *c, const char *name)
{
    for (int i = 0; i < c->n_group; i++)
        if (c->group[i] == name) return i;
    if (c->n_group == FM_TRACE_GROUPS) return FM_TRACE_GROUPS - 1;
    c->group[c->n_group] = name;
    memset(c->key[c->n_group], -1, sizeof c->key[0]);
    return c->n_group++;
}

static uint64_t to_ns(double seconds) { return seconds > 0 ? (uint64_t)(1e9 * seconds) : 0; }

static void record(void *ctx, const fm_comm_note *n)
{
    fm_trace_calls *c    = ctx;
    int            *key  = &c->key[group_of(c, n->group)][n->kind];
    const uint64_t  busy = to_ns(n->busy_s);
    if (*key < 0) *key = make_key(c, n);
    c->ns += busy;
    const int            alone = n->kind == FM_COMM_SEND || n->kind == FM_COMM_RECV;
    const fm_trace_event e     = {.begin   = to_ns(n->began),
                                  .end     = to_ns(n->ended),
                                  .comm_ns = busy,
                                  .tag     = alone ? 0 : (uint64_t)n->id << 32 | n->serial,
                                  .rows =
                                      (uint32_t)(busy / 1000 < UINT32_MAX ? busy / 1000 : UINT32_MAX),
                                  .layer = (uint16_t)fm_bucket_of(n->bytes),
                                  .bytes = (double)n->bytes};
    fm_trace_add(c->trace, *key, &e);
}

void fm_trace_calls_begin(fm_trace_calls *c, fm_trace *t, fm_world *w)
{
    *c = (fm_trace_calls){.trace = t, .world = w};
    fm_world_observe(w, record, c);
}

void fm_trace_calls_end(fm_trace_calls *c)
{
    if (c->world) fm_world_observe(c->world, NULL, NULL);
    c->world = NULL;
}
