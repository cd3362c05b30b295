/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that scf and dft blocks share: integrals kept or not, vectors, printing. */
#include <string.h>

#include "chem/input/deck_print.h"
#include "chem/input/state.h"

fm_status fm__read_direct(fm__words *w, fm__method *m)
{
    (void)w;
    m->is_direct   = 1;
    m->cache_bytes = 0;
    return FM_OK;
}

/* Kept where `semidirect` does not say how much: only integrals that cost more than reading
 * them are, so small molecules need a few MB of it. */
static const size_t usual_cache_bytes = (size_t)512 << 20;

/* memsize counts 64-bit words; files are not written, so filesize has no effect. */
fm_status fm__read_semidirect(fm__words *w, fm__method *m)
{
    double words;
    m->is_direct   = 0;
    m->cache_bytes = usual_cache_bytes;
    while (fm__peek(w)) {
        if (fm__take(w, "memsize")) {
            FM_TRY(fm__need_real(w, &words, "a number of words"));
            if (!(words >= 0 && words < 1e15))
                return fm__bad(w, "memsize %g is out of range", words);
            m->cache_bytes = (size_t)words * 8;
        } else if (fm__take(w, "filesize")) {
            FM_TRY(fm__need_real(w, &words, "a number of words"));
        } else if (fm__take(w, "filename")) {
            const char *name;
            FM_TRY(fm__need_word(w, &name, "a file"));
        } else
            return fm__need_end(w);
    }
    return FM_OK;
}

static fm_status read_input(fm__words *w, fm__method *m)
{
    if (fm__take(w, "atomic"))
        m->vectors_from = FM_VECTORS_ATOMIC;
    else if (fm__take(w, "hcore"))
        m->vectors_from = FM_VECTORS_CORE;
    else {
        const char *word = fm__peek(w);
        if (word &&
            (fm__same(word, "project") || fm__same(word, "fragment") || fm__same(word, "rotate"))) {
            fm__next(w);
            return fm__bad(w, "vectors input \"%s\" is not supported", word);
        }
        FM_TRY(fm__need_text(w, m->vectors_in, sizeof m->vectors_in, "a file of vectors"));
        m->vectors_from = FM_VECTORS_FILE;
    }
    return FM_OK;
}

fm_status fm__read_vectors(fm__words *w, fm__method *m)
{
    while (fm__peek(w)) {
        if (fm__take(w, "output")) {
            FM_TRY(fm__need_text(w, m->vectors_out, sizeof m->vectors_out, "a file of vectors"));
            m->vectors_out_line = fm__line(w);
            continue;
        }
        const char *word = fm__peek(w);
        if (fm__same(word, "swap") || fm__same(word, "reorder") || fm__same(word, "lock")) {
            fm__next(w);
            return fm__bad(w, "vectors \"%s\" is not supported", word);
        }
        (void)fm__take(w, "input");
        FM_TRY(read_input(w, m));
    }
    return FM_OK;
}

fm_status fm__read_on_off(fm__words *w, int *is_on)
{
    *is_on = !fm__take(w, "off");
    if (*is_on) (void)fm__take(w, "on");
    return fm__need_end(w);
}

fm_status fm__read_sym(fm__words *w, fm__method *m)
{
    int is_on;
    FM_TRY(fm__read_on_off(w, &is_on));
    m->without_symmetry = !is_on;
    return FM_OK;
}

/* The parts of the output a name in a (no)print line stands for; levels are 0. */
static unsigned parts_of(const char *name)
{
    static const struct {
        const char *name;
        unsigned    parts;
    } part[] = {
        {"final vectors analysis", FM_PRINT_VECTORS},
        {"final vectors", FM_PRINT_VECTORS},
        {"final vector symmetries", FM_PRINT_SYMMETRIES},
        {"vector symmetries", FM_PRINT_SYMMETRIES},
        {"mulliken", FM_PRINT_MULLIKEN},
        {"mulliken ao", FM_PRINT_MULLIKEN},
        {"multipole", FM_PRINT_MULTIPOLE},
        {"geometry", FM_PRINT_GEOMETRY},
        {"basis", FM_PRINT_BASIS},
        {"information", FM_PRINT_PARAMETERS},
        {"parameters", FM_PRINT_PARAMETERS},
        {"convergence", FM_PRINT_ITERATIONS},
        {"none", FM_PRINT_ALL},
        {"low", FM_PRINT_VECTORS | FM_PRINT_SYMMETRIES | FM_PRINT_MULLIKEN | FM_PRINT_BASIS}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (fm__same(part[i].name, name)) return part[i].parts;
    return 0;
}

fm_status fm__read_noprint(fm__words *w, unsigned *quiet)
{
    for (const char *name; (name = fm__next(w));) *quiet |= parts_of(name);
    return FM_OK;
}

fm_status fm__read_print(fm__words *w, unsigned *quiet)
{
    for (const char *name; (name = fm__next(w));) {
        if (fm__same(name, "none") || fm__same(name, "low"))
            *quiet |= parts_of(name);
        else if (fm__same(name, "medium") || fm__same(name, "default") || fm__same(name, "high") ||
                 fm__same(name, "debug"))
            *quiet = 0;
        else
            *quiet &= ~parts_of(name);
    }
    return FM_OK;
}
