/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time went, rank by rank. */
#include "chem/report/report.h"

static double imbalance_of(double most, double sum, int n)
{
    return sum > 0 ? most * n / sum - 1 : 0;
}

double fm_report_imbalance(const fm_scf_times *of_rank, int n_rank)
{
    double most = 0, sum = 0;
    for (int i = 0; i < n_rank; i++) {
        sum += of_rank[i].fock_busy;
        if (of_rank[i].fock_busy > most) most = of_rank[i].fock_busy;
    }
    return imbalance_of(most, sum, n_rank);
}

static void parts(FILE *to, const fm_scf_times *t)
{
    const struct {
        const char *name;
        double      s;
    } row[] = {{"one-electron integrals", t->one_electron},
               {"guess", t->guess},
               {"two-electron integrals", t->fock},
               {"exchange-correlation", t->xc},
               {"DIIS and residual", t->mix},
               {"diagonalisation", t->eigen},
               {"vectors file", t->vectors}};
    fprintf(to, "\n Time of rank 0                seconds      %%\n"
                " ---------------------------- -------- ------\n");
    for (unsigned i = 0; i < sizeof row / sizeof *row; i++)
        fprintf(to, " %-28s %8.2f %6.1f\n", row[i].name, row[i].s,
                t->total > 0 ? 100 * row[i].s / t->total : 0);
    fprintf(to, " %-28s %8.2f\n", "all tasks", t->total);
}

void fm_report_times(FILE *to, const fm_scf_times *of_rank, int n_rank, fm_world *w)
{
    parts(to, &of_rank[0]);
    fprintf(to, "\n rank host             Fock builds    quartets  computing   waiting  %% waiting"
                "  rank 0's step\n"
                " ---- ---------------- ----------- ----------- ---------- ---------  ---------"
                "  -------------\n");
    for (int i = 0; i < n_rank; i++) {
        const fm_scf_times *t   = &of_rank[i];
        const double        all = t->fock_busy + t->fock_wait;
        fprintf(to, " %4d %-16.16s %11d %11.3e %10.2f %9.2f  %9.1f  %13.2f\n", i,
                fm_world_host(w, i), t->n_fock, (double)t->n_quartet, t->fock_busy, t->fock_wait,
                all > 0 ? 100 * t->fock_wait / all : 0, t->comm_wait);
    }
    fprintf(to, " imbalance of the Fock builds: %.1f %%\n",
            100 * fm_report_imbalance(of_rank, n_rank));
}

void fm_report_task_times(FILE *to, double cpu_s, double wall_s)
{
    fprintf(to, "\n Task  times  cpu: %10.1fs     wall: %10.1fs\n", cpu_s, wall_s);
}

void fm_report_end(FILE *to, double cpu_s, double wall_s, double peak_bytes)
{
    fprintf(to, "\n Peak memory of a rank: %.0f MB\n", peak_bytes / 1e6);
    fprintf(to, "\n Total times  cpu: %10.1fs     wall: %10.1fs\n", cpu_s, wall_s);
}
