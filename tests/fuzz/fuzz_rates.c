/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of rates: a sentence that says why not, or rates that print and read again.
 */
#include <stdint.h>

#include "base/status.h"
#include "probe/rates.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fm_rates r = {0}, again = {0};
    fm_str   text = {0};
    if (fm_rates_parse(&r, (const char *)data, size, "fuzz") != FM_OK) {
        FM_BUG_UNLESS(fm_why()[0]);
        return 0;
    }
    FM_BUG_UNLESS(r.n_rank > 0);
    fm_rates_print(&r, &text);
    FM_BUG_UNLESS(fm_rates_parse(&again, text.text, text.len, "again") == FM_OK);
    FM_BUG_UNLESS(again.n_rank == r.n_rank);
    fm_str_fini(&text);
    fm_rates_fini(&again);
    fm_rates_fini(&r);
    return 0;
}
