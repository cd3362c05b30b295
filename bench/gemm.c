/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the matrix kernel is against what the machine can do:
 *
 *     bench_gemm [THREADS [ISA]]
 *
 * Weights stream from 512 MB, so small m shows the memory and large m the
 * arithmetic; the two percentages say how close. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "device/host.h"
#include "llm/kernel/gemm/gemm.h"
#include "probe/peak.h"
#include "probe/read_bandwidth.h"

enum { MAX_M = 1024, MAX_K = 4096 };

static const size_t arena_bytes = (size_t)512 << 20;
static const int    shape_m[]   = {1, 2, 4, 8, 16, 32, 64, 256, 1024};
static const int    shape_k[]   = {1024, 4096};

static char *arena; /* weights; any bits but NaN and very small numbers will do */
static char *rows;  /* x, up to f32 */
static int   n_thread;

static void fill(void)
{
    enum { NO_NAN = 0xbfbfbfbfu, NORMAL = 0x20202020u };
    uint32_t *w = (uint32_t *)arena, *x = (uint32_t *)rows;
#pragma omp parallel for
    for (size_t i = 0; i < arena_bytes / 4; i++) w[i] = (fm_rng_u32(1, i) & NO_NAN) | NORMAL;
    for (size_t i = 0; i < (size_t)MAX_M * MAX_K; i++) x[i] = (fm_rng_u32(2, i) & NO_NAN) | NORMAL;
}

typedef struct {
    fm_gemm_fn *f;
    fm_dtype    type;
    int         m, k;
} job;

/* One thread streams its share of the arena until the time is up. */
static double calls_of_thread(const job *j, float *c, const void *const *x, double until)
{
    static const float scale[MAX_K / 128 * 2] = {1, 1};
    const size_t panel = fm_panel_bytes(j->type, j->k), share = arena_bytes / (size_t)n_thread;
    const char  *w    = arena + share * (size_t)omp_get_thread_num();
    size_t       at   = 0;
    double       done = 0;
    do {
        j->f(c, x, w + at, scale, j->m, j->k);
        at += panel;
        if (at + panel > share) at = 0;
        done++;
    } while (fm_now() < until);
    return done;
}

/* Calls per second, the best of three tries. */
static double measure(const job *j)
{
    static const void *x[MAX_M];
    const size_t       stride = (size_t)j->k * (j->type == FM_F32 ? 4 : 2);
    double             best   = 0;
    for (int i = 0; i < j->m; i++) x[i] = rows + (size_t)i * stride;
    for (int pass = 0; pass < 3; pass++) {
        const double began = fm_now();
        double       calls = 0;
#pragma omp parallel reduction(+ : calls)
        {
            float *c = aligned_alloc(64, (size_t)MAX_M * FM_PANEL * 4);
            if (c) calls = calls_of_thread(j, c, x, began + 0.05);
            free(c);
        }
        const double rate = calls / (fm_now() - began);
        if (rate > best) best = rate;
    }
    return best;
}

static void report(const fm_gemm *v, fm_dtype type, const char *name, double bandwidth)
{
    const double peak = fm_peak_of_team(v->isa, type == FM_F32 ? FM_FACTOR_F32 : FM_FACTOR_BF16, n_thread);
    for (size_t a = 0; a < sizeof shape_k / sizeof *shape_k; a++) {
        printf("\n%s%s %s k=%d, peak %.0f GFLOP/s\n     m  GFLOP/s  of peak     GB/s  of read\n",
               fm_isa_name(v->isa), v->vbmi ? " vbmi" : "", name, shape_k[a], peak * 1e-9);
        for (size_t b = 0; b < sizeof shape_m / sizeof *shape_m; b++) {
            const job    j     = {fm_gemm_for(v, type), type, shape_m[b], shape_k[a]};
            const double rate  = measure(&j);
            const double flops = rate * 2 * FM_PANEL * j.m * j.k;
            const double bytes = rate * (double)fm_panel_bytes(type, j.k);
            printf("%6d %8.1f %7.0f%% %8.1f %7.0f%%\n", j.m, flops * 1e-9,
                   peak > 0 ? 100 * flops / peak : 0, bytes * 1e-9, 100 * bytes / bandwidth);
        }
    }
}

int main(int argc, char **argv)
{
    const char *only = argc > 2 ? argv[2] : NULL;
    n_thread         = argc > 1 ? atoi(argv[1]) : 1;
    if (n_thread < 1 || n_thread > 512) n_thread = 1;
    omp_set_num_threads(n_thread);
    if (fm_host_alloc((void **)&arena, arena_bytes, "weights") != FM_OK ||
        fm_host_alloc((void **)&rows, (size_t)MAX_M * MAX_K * 4, "rows") != FM_OK) {
        fprintf(stderr, "bench_gemm: %s\n", fm_why());
        return 1;
    }
    fill();
    const double bandwidth = fm_read_bandwidth(arena, arena_bytes, n_thread);
    printf("%d thread(s), %.1f GB/s read\n", n_thread, bandwidth * 1e-9);

    size_t         count;
    const fm_gemm *all = fm_gemm_all(&count);
    for (size_t i = 0; i < count; i++) {
        if (!fm_gemm_runs_here(all + i) || (only && strcmp(only, fm_isa_name(all[i].isa))))
            continue;
        report(all + i, FM_BF16, "bf16", bandwidth);
        report(all + i, FM_FP8, "fp8", bandwidth);
        report(all + i, FM_INT4, "int4", bandwidth);
        report(all + i, FM_F32, "f32", bandwidth);
    }
    fm_host_free(rows, (size_t)MAX_M * MAX_K * 4);
    fm_host_free(arena, arena_bytes);
    return 0;
}
