/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the file of a study: refused with a sentence, or trials that can be judged. */
#define _GNU_SOURCE
#include "fuzz_file.h"

#include "tune/study.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fm_space space;
    fm_study        s = {0};
    int             best[4];
    if (!space.n && (fm_space_add(&space, "threads=1..64:log") != FM_OK ||
                     fm_space_add(&space, "mapping={core,socket}") != FM_OK))
        abort();
    if (fm_study_open(&s, file_of(data, size), &space,
                      &(fm_study_aim){.maximize = 1, .what = "bench"}) != FM_OK) {
        FM_BUG_UNLESS(fm_why()[0]);
        fm_study_close(&s);
        return 0;
    }
    double *loss = calloc((size_t)s.n + 1, sizeof *loss);
    FM_BUG_UNLESS(loss != NULL);
    fm_study_losses(&s, loss);
    for (int i = 0, n = fm_study_best(&s, best, 4); i < n; i++) {
        int    n_run  = 0;
        double spread = 0;
        fm_study_mean(&s, best[i], &n_run, &spread);
        FM_BUG_UNLESS(n_run > 0);
    }
    fm_study_winner(&s);
    free(loss);
    fm_study_close(&s);
    return 0;
}
