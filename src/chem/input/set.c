/* SPDX-License-Identifier: Apache-2.0 */
/* set KEY [type] VALUE and unset KEY: NWChem's database entries.  Keys that choose a
 * geometry, a basis or a threshold we have are obeyed, keys that only tune NWChem are
 * passed over, all others are refused by name. */
#include <string.h>

#include "chem/input/state.h"

/* Memory and task sizes, integral codes, guesses: no effect on converged energies. */
static const char *const tuning[] = {
    "int:cando_txs", "int:cando_nw",    "int:txs:limxmem", "int:acc_std",
    "int:acc_high",  "fock:replicated", "fock:mirrmat",    "fock:task_bf",
    "quickguess",    "tolguess",        "grid_ptr",        "dft:grid_ptr",
    "scf:nw_hint",   "patch_size",      "print",           NULL};

static int only_tunes(const char *key)
{
    for (const char *const *k = tuning; *k; k++)
        if (fm__same(*k, key)) return 1;
    return 0;
}

static void skip_type(fm__words *w)
{
    (void)(fm__take(w, "string") || fm__take(w, "real") || fm__take(w, "double") ||
           fm__take(w, "integer") || fm__take(w, "logical"));
}

fm_status fm__read_set(fm__state *s)
{
    fm__words  *w = &s->words;
    const char *key;
    FM_TRY(fm__need_word(w, &key, "the name of a setting"));
    skip_type(w);
    if (fm__same(key, "geometry"))
        return fm__need_text(w, s->geometry_name, sizeof s->geometry_name,
                             "the name of a geometry");
    if (fm__same(key, "ao basis"))
        return fm__need_text(w, s->basis_name, sizeof s->basis_name, "the name of a basis");
    if (fm__same(key, "lindep:tol")) return fm__need_positive(w, &s->lindep, "lindep:tol");
    if (!only_tunes(key)) return fm__bad(w, "set \"%s\" is not supported", key);
    while (fm__next(w)) {
    }
    return FM_OK;
}

fm_status fm__read_unset(fm__state *s)
{
    fm__words  *w = &s->words;
    const char *key;
    FM_TRY(fm__need_word(w, &key, "the name of a setting"));
    if (fm__same(key, "geometry"))
        strcpy(s->geometry_name, "geometry");
    else if (fm__same(key, "ao basis"))
        strcpy(s->basis_name, "ao basis");
    else if (fm__same(key, "lindep:tol"))
        s->lindep = 1e-5;
    else if (!only_tunes(key))
        return fm__bad(w, "unset \"%s\" is not supported", key);
    return fm__need_end(w);
}
