/* SPDX-License-Identifier: Apache-2.0 */
/* chem_energy FOLDER DECK...: energies of NWChem decks against NWChem's, within the
 * tolerances of energies.txt in tests/data/chem/FOLDER, and the integrated number of
 * electrons, which is the fingerprint of the grid. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem_run.h"

#define DATA FM_TEST_DATA "/chem/"

static const double tol_electrons = 1e-7; /* decks do not ask for tight grids */

typedef struct {
    char   deck[64], method[8];
    double energy, tol, electrons; /* electrons 0: no grid */
} reference;

static int read_references(reference *all, int most, const char *folder)
{
    char path[512];
    char line[256], task[8], electrons[32];
    int  n = 0;
    snprintf(path, sizeof path, DATA "%s/energies.txt", folder);
    FILE *f = fopen(path, "r");
    while (f && n < most && fgets(line, sizeof line, f)) {
        reference *r = &all[n];
        if (sscanf(line, "%63s %7s %7s %lf %lf %31s", r->deck, task, r->method, &r->energy, &r->tol,
                   electrons) != 6 ||
            r->deck[0] == '#')
            continue;
        r->electrons = electrons[0] == '-' ? 0 : strtod(electrons, NULL);
        n++;
    }
    if (f) fclose(f);
    return n;
}

static int check_task(const reference *want, const chem_result *got, int i)
{
    const double diff = got->task[i].energy - want->energy;
    const double lost = want->electrons != 0 ? got->task[i].electrons - want->electrons : 0;
    const int    good = got->task[i].is_converged && fabs(diff) <= want->tol &&
                     fabs(lost) <= tol_electrons && !strcmp(got->task[i].method, want->method);
    printf("%-28s %-4s %17.9f %+.1e (%.0e)  electrons %+.1e  %2d iterations  %s\n", want->deck,
           got->task[i].method, got->task[i].energy, diff, want->tol, lost,
           got->task[i].n_iteration, good ? "ok" : "FAILED");
    return !good;
}

static int check_deck(const char *folder, const char *deck, const reference *all, int n)
{
    char path[512];
    int  n_bad = 0, k = 0;
    snprintf(path, sizeof path, DATA "%s/%s", folder, deck);
    const chem_result got = chem_run_file(path, 2);
    if (got.rc != FM_OK) printf("%s: %s\n", deck, got.why);
    for (int i = 0; i < n; i++)
        if (!strcmp(all[i].deck, deck) && k < got.n_task) n_bad += check_task(&all[i], &got, k++);
    return n_bad + (got.rc != FM_OK) + (k == 0);
}

int main(int argc, char **argv)
{
    static reference all[256];
    const int        n     = argc > 1 ? read_references(all, 256, argv[1]) : 0;
    int              n_bad = n == 0;
    chem_open();
    for (int i = 2; i < argc; i++) n_bad += check_deck(argv[1], argv[i], all, n);
    chem_close();
    return n_bad != 0;
}
