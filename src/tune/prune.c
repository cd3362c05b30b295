/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/prune.h"

#include <stdlib.h>

#include "base/ascending.h"

static double best_so_far(const fm_study *s, const fm_trial *t, int n)
{
    double best = fm_study_loss(s, t->report[0]);
    for (int i = 1; i < n; i++) {
        const double loss = fm_study_loss(s, t->report[i]);
        if (loss < best) best = loss;
    }
    return best;
}

int fm_prune(const fm_study *s, const fm_trial *t)
{
    const int step = t->n_report;
    if (step < 1) return 0;
    double *others = malloc((size_t)s->n * sizeof *others);
    FM_BUG_UNLESS(others != NULL);
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (s->trial[i].state == FM_TRIAL_OK && s->trial[i].n_report >= step)
            others[n++] = best_so_far(s, &s->trial[i], step);
    fm_sort_ascending(others, (size_t)n);
    const int hopeless = n >= FM_PRUNE_AFTER && best_so_far(s, t, step) > others[n / 2];
    free(others);
    return hopeless;
}
