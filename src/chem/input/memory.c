/* SPDX-License-Identifier: Apache-2.0 */
/* memory [total] N [unit] [stack N [unit]] [heap N [unit]] [global N [unit]] [verify ...] */
#include "chem/input/state.h"

/* Bytes of the unit that may follow a number; a 64-bit word if none does. */
static double take_unit(fm__words *w)
{
    static const struct {
        const char *name;
        double      bytes;
    } unit[] = {{"byte", 1},    {"bytes", 1},   {"b", 1},       {"real", 8},    {"double", 8},
                {"integer", 8}, {"kb", 1024.0}, {"mb", 0x1p20}, {"gb", 0x1p30}, {"tb", 0x1p40},
                {"kw", 8192.0}, {"mw", 0x1p23}, {"gw", 0x1p33}};
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        if (fm__take(w, unit[i].name)) return unit[i].bytes;
    return 8;
}

static fm_status need_bytes(fm__words *w, double *bytes)
{
    FM_TRY(fm__need_positive(w, bytes, "an amount of memory"));
    *bytes *= take_unit(w);
    if (*bytes > 1e18)
        return fm__bad(w, "%g bytes of memory are more than any machine has", *bytes);
    return FM_OK;
}

fm_status fm__read_memory(fm__state *s)
{
    fm__words *w     = &s->words;
    double     total = 0, parts = 0, bytes;
    while (fm__peek(w)) {
        if (fm__take(w, "stack") || fm__take(w, "heap") || fm__take(w, "global")) {
            FM_TRY(need_bytes(w, &bytes));
            parts += bytes;
        } else if (fm__take(w, "verify") || fm__take(w, "noverify") || fm__take(w, "hardfail") ||
                   fm__take(w, "nohardfail"))
            continue;
        else {
            (void)fm__take(w, "total");
            FM_TRY(need_bytes(w, &total));
        }
    }
    s->deck->memory_bytes = (size_t)(total > 0 ? total : parts);
    return FM_OK;
}
