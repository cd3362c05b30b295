/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "chem/basis/shells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chem/basis/basis.h"

enum { NUMBER_MAX = 1 << 20 }; /* more than any basis set needs */

int fm_shell_l(const char *letters)
{
    static const char letter[] = "spdfg";
    if (!strcasecmp(letters, "sp") || !strcasecmp(letters, "l")) return FM_L_SP;
    for (int l = 0; l <= FM_L_MAX; l++)
        if ((letters[0] | 32) == letter[l] && letters[1] == 0) return l;
    return FM_L_NONE;
}

double fm_primitive_norm(int l, double a)
{
    double odd = 1; /* (2l-1)!! */
    for (int i = 3; i < 2 * l; i += 2) odd *= i;
    return pow(2 * a / M_PI, 0.75) * pow(4 * a, 0.5 * l) / sqrt(odd);
}

double fm_primitive_overlap(int l, double a, double b)
{
    return pow(2 * sqrt(a * b) / (a + b), l + 1.5);
}

double fm_contraction_norm(int l, int n_prim, const double *exponent, const double *coef)
{
    double sum = 0;
    for (int i = 0; i < n_prim; i++)
        for (int j = 0; j < n_prim; j++)
            sum += coef[i] * coef[j] * fm_primitive_overlap(l, exponent[i], exponent[j]);
    return sqrt(sum);
}

/* Room for `more` elements behind `n`; doubling. */
static void *grown(void *array, int n, int more, int *cap, size_t size)
{
    if (n + more <= *cap) return array;
    *cap  = 2 * (n + more);
    array = realloc(array, (size_t)*cap * size);
    FM_BUG_UNLESS(array != NULL);
    return array;
}

static fm_status append(fm_shells *s, int l, const double *rows, int n_prim, int n_column,
                        int first, int n_contr)
{
    const int more = n_prim * (1 + n_contr);
    if (more > NUMBER_MAX - s->n_number)
        return fm_fail(FM_E_FORMAT, "more than %d numbers in one basis set", NUMBER_MAX);
    s->shell  = grown(s->shell, s->n_shell, 1, &s->shell_cap, sizeof *s->shell);
    s->number = grown(s->number, s->n_number, more, &s->number_cap, sizeof *s->number);

    double *exponent = s->number + s->n_number, *coef = exponent + n_prim;
    for (int i = 0; i < n_prim; i++) exponent[i] = rows[(size_t)i * n_column];
    for (int c = 0; c < n_contr; c++) {
        for (int i = 0; i < n_prim; i++)
            coef[c * n_prim + i] = rows[(size_t)i * n_column + first + c];
        const double norm = fm_contraction_norm(l, n_prim, exponent, coef + c * n_prim);
        if (!(norm > 1e-10) || !isfinite(norm))
            return fm_fail(FM_E_FORMAT, "contraction %d of a shell has norm %g", c + 1, norm);
    }
    s->shell[s->n_shell++] = (fm_shell_entry){l, n_prim, n_contr, s->n_number};
    s->n_number += more;
    return FM_OK;
}

fm_status fm_shells_add(fm_shells *s, int l, const double *rows, int n_prim, int n_column)
{
    if (n_prim < 1 || n_column < 2) return fm_fail(FM_E_FORMAT, "a shell has no primitives");
    for (int i = 0; i < n_prim; i++) {
        const double a = rows[(size_t)i * n_column];
        if (!(a > 0) || !isfinite(a)) return fm_fail(FM_E_FORMAT, "exponent %g is not positive", a);
    }
    if (l != FM_L_SP) return append(s, l, rows, n_prim, n_column, 1, n_column - 1);
    if (n_column != 3)
        return fm_fail(FM_E_FORMAT, "an SP shell has an exponent and two coefficients a line");
    const int n_shell = s->n_shell, n_number = s->n_number;
    fm_status rc = append(s, 0, rows, n_prim, n_column, 1, 1);
    if (rc == FM_OK) rc = append(s, 1, rows, n_prim, n_column, 2, 1);
    if (rc != FM_OK) s->n_shell = n_shell, s->n_number = n_number;
    return rc;
}

void fm_shells_copy(fm_shells *s, const fm_shells *from, int i)
{
    fm_shell_entry e = from->shell[i];
    const int      n = e.n_prim * (1 + e.n_contr);
    s->shell         = grown(s->shell, s->n_shell, 1, &s->shell_cap, sizeof *s->shell);
    s->number        = grown(s->number, s->n_number, n, &s->number_cap, sizeof *s->number);
    memcpy(s->number + s->n_number, from->number + e.at, (size_t)n * sizeof *s->number);
    e.at                   = s->n_number;
    s->shell[s->n_shell++] = e;
    s->n_number += n;
}

void fm_shells_fini(fm_shells *s)
{
    free(s->shell);
    free(s->number);
    memset(s, 0, sizeof *s);
}
