/* SPDX-License-Identifier: Apache-2.0 */
/* xc name [local|nonlocal] [factor] ... */
#include <ctype.h>
#include <string.h>

#include "chem/input/state.h"

fm_status fm__read_mix(fm__words *w, fm_xc_mix *mix)
{
    fm_xc_mix   out = {0};
    const char *name;
    FM_TRY(fm__need_word(w, &name, "the name of a functional"));
    for (; name; name = fm__next(w)) {
        if (out.n_term == FM_XC_TERM_MAX)
            return fm__bad(w, "more than %d functionals", FM_XC_TERM_MAX);
        fm_xc_term *t = &out.term[out.n_term++];
        if (strlen(name) >= sizeof t->name) return fm__bad(w, "functional \"%s\" is unknown", name);
        for (size_t i = 0; name[i]; i++) t->name[i] = (char)tolower((unsigned char)name[i]);
        t->part   = fm__take(w, "local")      ? FM_XC_LOCAL
                    : fm__take(w, "nonlocal") ? FM_XC_NONLOCAL
                                              : FM_XC_WHOLE;
        t->factor = fm_xc_usual_factor(t->name);
        (void)fm__take_real(w, &t->factor);
    }
    double exact;
    FM_TRY(fm__bad_as(w, fm_xc_check(&out, &exact)));
    *mix = out;
    return FM_OK;
}
