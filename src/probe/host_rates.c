/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/host_rates.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "device/host.h"
#include "probe/numa.h"
#include "probe/peak.h"
#include "probe/read_bandwidth.h"

/* Per round a window of reading and one of multiplying; types and nodes beside the main one get
 * shorter windows in the first rounds.  Where the rounds of one of several ranks differ much, all
 * measure as many again: a disturbance that came or went in the middle shows in most of them then.
 */
enum { ROUNDS = 5, MOST_ROUNDS = 10, SIDE_ROUNDS = 3, SIDE_PART = 3, MIN_ARENA_MIB = 32 };
#define MUCH_SCATTER 0.10
#define LONGEST_WINDOW 0.25
#define SHORTEST_WINDOW 0.03

typedef struct {
    fm_threads *threads;
    fm_numa    *numa;
    char       *arena;
    size_t      bytes;
    int         n_thread, n_node;
    fm_isa      isa;
    fm_factor   main_factor;
    double      window;
    int         round, n_round;
    double      read[MOST_ROUNDS], product[FM_N_FACTOR][MOST_ROUNDS];
    double      level[FM_RATES_LEVELS][SIDE_ROUNDS];
    double      node_read[FM_RATES_MAX_NODE][SIDE_ROUNDS];
    double      node_product[FM_RATES_MAX_NODE][SIDE_ROUNDS];
    double      on_cpu; /* sum over the windows */
    int         n_window;
    fm_status   rc;
} work;

/* --- memory ------------------------------------------------------------------ */

static size_t greater(size_t a, size_t b) { return a > b ? a : b; }

/* Twice the largest cache and half a GiB, but not more than an eighth of what this rank may
 * take; every thread needs a few MiB. */
static size_t arena_bytes(const work *w, int n_rank)
{
    const size_t mib   = (size_t)1 << 20,
                 least = greater(MIN_ARENA_MIB, 8 * (size_t)w->n_thread) * mib;
    const size_t most  = fm_host_available() / 8 / (size_t)n_rank;
    const size_t wish  = greater(2 * fm_numa_cache(w->numa), 512 * mib);
    return greater(wish < most ? wish : most, least) / mib * mib;
}

/* Every thread touches the share it will read, so that it lies on the thread's node. */
static void touch(char *p, size_t bytes, int n_thread)
{
#pragma omp parallel for num_threads(n_thread) schedule(static)
    for (size_t i = 0; i < bytes; i += 4096) p[i] = 1;
}

static void count(work *w, fm_sustained s)
{
    w->on_cpu += s.on_cpu;
    w->n_window++;
}

/* --- a turn ------------------------------------------------------------------- */

static void measure_node(work *w, int node)
{
    const int n = fm_numa_cores(w->numa, node);
    char     *p = NULL;
    if (fm_host_alloc((void **)&p, w->bytes, "memory of a NUMA node") != FM_OK) return;
    fm_numa_place(w->numa, node, p, w->bytes);
    fm_numa_gather(w->numa, node);
    touch(p, w->bytes, n);
    w->node_read[node][w->round] = fm_read_sustained(p, w->bytes, n, w->window / SIDE_PART).rate;
    w->node_product[node][w->round] =
        fm_peak_sustained(w->isa, w->main_factor, n, w->window / SIDE_PART).rate;
    fm_numa_release(w->numa);
    fm_host_free(p, w->bytes);
}

static void measure_side(work *w)
{
    if (w->round >= SIDE_ROUNDS) return;
    for (int f = 0; f < FM_N_FACTOR; f++)
        if (f != (int)w->main_factor)
            w->product[f][w->round] =
                fm_peak_sustained(w->isa, (fm_factor)f, w->n_thread, w->window / SIDE_PART).rate;
    for (int l = 0; l < (int)w->isa; l++)
        w->level[l][w->round] =
            fm_peak_sustained((fm_isa)l, l > FM_ISA_REF ? FM_FACTOR_BF16 : FM_FACTOR_F32,
                              w->n_thread, w->window / SIDE_PART)
                .rate;
    for (int i = 0; w->n_node > 1 && i < w->n_node; i++) measure_node(w, i);
}

static void take_turn(void *ctx)
{
    work *w = ctx;
    fm_threads_pin(w->threads);
    const fm_sustained read    = fm_read_sustained(w->arena, w->bytes, w->n_thread, w->window);
    const fm_sustained product = fm_peak_sustained(w->isa, w->main_factor, w->n_thread, w->window);
    w->read[w->round]          = read.rate;
    w->product[w->main_factor][w->round] = product.rate;
    count(w, read);
    count(w, product);
    measure_side(w);
    fm_threads_dismiss(); /* threads that have nothing to do would still poll */
    fm_threads_roam(w->threads);
}

static void prepare(void *ctx)
{
    work *w = ctx;
    w->rc   = fm_host_alloc((void **)&w->arena, w->bytes, "memory to read");
    if (w->rc != FM_OK) return;
    fm_threads_pin(w->threads);
    touch(w->arena, w->bytes, w->n_thread);
    fm_threads_dismiss();
    fm_threads_roam(w->threads);
}

/* --- the whole ------------------------------------------------------------------ */

static double window_of(double seconds, int n_rank)
{
    const double w = seconds / n_rank / (2 * ROUNDS);
    return w > LONGEST_WINDOW ? LONGEST_WINDOW : w < SHORTEST_WINDOW ? SHORTEST_WINDOW : w;
}

/* fm_rate_of sorts what it is given. */
static int is_scattered(const double *x)
{
    double copy[ROUNDS];
    memcpy(copy, x, sizeof copy);
    const fm_rate r = fm_rate_of(copy, ROUNDS);
    return r.spread > MUCH_SCATTER * r.median;
}

/* On all ranks, or on none. */
static fm_status choose_rounds(work *w, const fm_turns *turns)
{
    fm_comm *c = fm_world_comm(turns->world);
    float    n = is_scattered(w->read) || is_scattered(w->product[w->main_factor]);
    w->n_round = ROUNDS;
    if (c->n_rank == 1) return FM_OK;
    FM_TRY(fm_all_reduce_f32(c, &n, 1));
    if (n > 0) w->n_round = MOST_ROUNDS;
    return FM_OK;
}

static fm_status run_rounds(work *w, const fm_turns *turns)
{
    for (; w->round < w->n_round; w->round++) FM_TRY(fm_turns_run(turns, take_turn, w));
    return FM_OK;
}

static fm_status measure(work *w, const fm_turns *turns)
{
    FM_TRY(fm_turns_run(turns, prepare, w));
    FM_TRY(w->rc);
    w->n_round = ROUNDS;
    FM_TRY(run_rounds(w, turns));
    FM_TRY(choose_rounds(w, turns));
    return run_rounds(w, turns);
}

static fm_rate rate_of(double *x, int n) { return x[0] > 0 ? fm_rate_of(x, n) : (fm_rate){0}; }

static void describe(fm_rates_rank *out, work *w)
{
    out->n_core = 0;
    for (int i = 0; i < fm_numa_count(w->numa); i++) out->n_core += fm_numa_cores(w->numa, i);
    out->n_thread = w->n_thread;
    out->memory   = fm_host_total();
    snprintf(out->isa, sizeof out->isa, "%s", fm_isa_name(w->isa));
    out->read = rate_of(w->read, w->n_round);
    for (int f = 0; f < FM_N_FACTOR; f++)
        out->product[f] =
            rate_of(w->product[f], f == (int)w->main_factor ? w->n_round : SIDE_ROUNDS);
    for (int l = 0; l < FM_RATES_LEVELS; l++) out->level[l] = rate_of(w->level[l], SIDE_ROUNDS);
    out->level[w->isa] = out->product[w->main_factor];
    out->n_node        = w->n_node;
    for (int i = 0; i < w->n_node; i++) {
        const int is_only   = w->n_node == 1;
        out->node[i].id     = fm_numa_id(w->numa, i);
        out->node[i].n_core = fm_numa_cores(w->numa, i);
        out->node[i].read   = is_only ? out->read : rate_of(w->node_read[i], SIDE_ROUNDS);
        out->node[i].product =
            is_only ? out->product[w->main_factor] : rate_of(w->node_product[i], SIDE_ROUNDS);
    }
}

fm_status fm_host_rates(fm_rates_rank *out, double *on_cpu, const fm_host_rates_plan *plan,
                        const fm_turns *turns)
{
    work w = {.threads     = plan->threads,
              .n_thread    = fm_threads_count(plan->threads),
              .isa         = fm_cpu_isa(),
              .main_factor = fm_cpu_isa() > FM_ISA_REF ? FM_FACTOR_BF16 : FM_FACTOR_F32,
              .window      = window_of(plan->seconds, turns->most)};
    FM_TRY(fm_numa_open(&w.numa));
    w.n_node = fm_numa_count(w.numa);
    if (w.n_node > FM_RATES_MAX_NODE) w.n_node = FM_RATES_MAX_NODE;
    w.bytes            = arena_bytes(&w, turns->n);
    const fm_status rc = measure(&w, turns);
    if (rc == FM_OK) {
        describe(out, &w);
        *on_cpu = w.n_window ? w.on_cpu / w.n_window : 0;
    }
    fm_host_free(w.arena, w.bytes);
    fm_numa_close(w.numa);
    return rc;
}
