/* SPDX-License-Identifier: Apache-2.0 */
/* bench_xc [DECK [THREADS]]: what one pass of exchange-correlation over the grid of a deck's
 * last dft task costs.
 *
 *     grid      seconds to make points, weights and boxes
 *     pass      seconds of processor time for energy and V from given orbitals
 *     peak      multiply-adds of the dense products against the cores' FP64 peak
 *
 * Orbitals are random numbers: the cost does not depend on them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "chem/input/deck.h"
#include "chem/xc/xc_internal.h"
#include "probe/peak.h"

enum { PASSES = 5 };

static double process_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Multiply-adds of psi = chi C, X = psi C^T and U = chi^T Y. */
static double multiply_adds(const fm_xc *x, const int *n_occ)
{
    double sum = 0;
    for (int i = 0; i < x->boxes.n_box; i++)
        for (int s = 0; s < x->n_spin; s++) {
            const double n = x->boxes.n_function[i];
            sum += FM_BOX * n * (2 * n_occ[s] + n);
        }
    return sum;
}

static double *random_orbitals(int n, int n_occ)
{
    double *C = malloc(((size_t)n * (size_t)n_occ + 1) * sizeof *C);
    for (int i = 0; i < n * n_occ; i++)
        C[i] = ((double)fm_rng_u32(1, (uint64_t)i) * 0x1p-31 - 1) / sqrt(n);
    return C;
}

static fm_status measure(const fm_deck_task *task, int n_thread)
{
    fm_xc_options o    = task->xc;
    fm_comm       self = fm_comm_self();
    fm_xc        *x    = NULL;
    o.n_thread         = n_thread;
    double start       = process_s();
    FM_TRY(fm_xc_open(&x, task->molecule, task->basis, &o, &self));
    printf("grid %.2f s, %d points in %d boxes, at most %d functions a box\n", process_s() - start,
           fm_xc_points(x), x->boxes.n_box, x->boxes.max_function);

    const int    n = task->basis->n_function, n_occ[2] = {task->n_alpha, task->n_beta};
    double      *C[2], *V[2], best = INFINITY;
    fm_xc_result r;
    fm_status    rc = FM_OK;
    for (int s = 0; s < 2; s++) {
        C[s] = random_orbitals(n, n_occ[s]);
        V[s] = malloc((size_t)n * (size_t)n * sizeof(double));
    }
    for (int i = 0; i < PASSES && rc == FM_OK; i++) {
        start = process_s();
        rc    = fm_xc_build(x, (const double *const *)C, n_occ, V, &r);
        best  = fmin(best, process_s() - start);
    }
    const double rate = multiply_adds(x, n_occ) / best;
    printf("pass %.2f s, products %.1f GFLOP/s a core, %.0f %% of peak\n", best, 2e-9 * rate,
           200 * rate / fm_peak_of_core(x->products->isa, FM_FACTOR_F64));
    for (int s = 0; s < 2; s++) free(C[s]), free(V[s]);
    fm_xc_close(x);
    return rc;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : FM_TEST_DATA "/chem/nwchem/w12_b3lyp_cc-pvtz_energy.nw";
    fm_deck     deck = {0};
    fm_status   rc   = fm_deck_read(&deck, path);
    int         last = deck.n_task - 1;
    while (rc == FM_OK && last >= 0 && deck.task[last].theory != FM_THEORY_DFT) last--;
    if (rc == FM_OK && last < 0) rc = fm_fail(FM_E_ARG, "%s has no dft task", path);
    if (rc == FM_OK) rc = measure(&deck.task[last], argc > 2 ? atoi(argv[2]) : 1);
    if (rc != FM_OK) fprintf(stderr, "bench_xc: %s\n", fm_why());
    fm_deck_fini(&deck);
    return rc != FM_OK;
}
