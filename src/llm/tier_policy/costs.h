/* SPDX-License-Identifier: Apache-2.0 */
/* Does it pay to load a prefix instead of computing it?  What a prompt token costs to compute
 * and what a page costs to load are measured as the engine runs. */
#ifndef FM_LLM_TIER_POLICY_COSTS_H
#define FM_LLM_TIER_POLICY_COSTS_H

#include <stdint.h>

typedef struct {
    double compute; /* seconds per prompt token; 0: not measured yet */
    double load[2]; /* seconds per page, from host memory (beside computing: of the link alone) and
                     * from files, while others load as well; 0: not measured yet */
    double step;    /* seconds of a step; 0: not measured yet */
    int n_declined; /* since a load was last tried */
    int is_forced;  /* for tests: whatever it costs */
} fm_load_costs;    /* {0}: nothing is known */

void fm_load_costs_computed(fm_load_costs *c, int n_token, double seconds);
void fm_load_costs_step(fm_load_costs *c, double seconds);
void fm_load_costs_loaded(fm_load_costs *c, int is_from_files, int n_page, double seconds);

/* How many of at most n pages cross the link from host memory while a step runs, so that the step
 * behind it need not wait for them; all, as long as nothing is measured. */
int fm_load_fits_step(const fm_load_costs *c, int n_page);

/* Yes as long as nothing is measured. Loads that do not pay are tried again from time to time: the
 * disk may have been slow only because it was busy. */
int fm_load_pays(fm_load_costs *c, int is_from_files, int n_page, int n_token);

#endif
