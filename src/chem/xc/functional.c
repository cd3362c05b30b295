/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/xc/functional.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xc.h>

#include "chem/xc/functional_internal.h"
#include "chem/xc/functional_pw91.h"

enum { PART_MAX = 48 };

/* Factors of libxc's functionals, each number once. */
typedef struct {
    int    number[PART_MAX];
    double factor[PART_MAX];
    int    n;
    double exact;
    int    has_local_correlation, has_foreign_local;
    int    has_slater, has_optx;
    double gradient_only[2]; /* factors of perdew86; of perdew91 and cpbe96 */
} recipe;

struct fm_functional {
    xc_func_type part[PART_MAX];
    double       factor[PART_MAX];
    int          n_part;
    int          n_spin;
    int          has_gradient;
    double       exact;
};

static void add(recipe *r, int number, double factor)
{
    int i = 0;
    while (i < r->n && r->number[i] != number) i++;
    FM_BUG_UNLESS(i < PART_MAX);
    if (i == r->n) r->number[r->n] = number, r->factor[r->n++] = 0;
    r->factor[i] += factor;
}

/* Whether a local correlation comes with the functional, and another than pw91lda. */
static void note_local(recipe *r, int whole)
{
    if (whole == XC_LDA_X || whole == XC_GGA_X_PW86) return;
    r->has_local_correlation = 1;
    r->has_foreign_local |= whole != XC_LDA_C_PW_MOD;
}

/* Handy and Cohen, Mol. Phys. 99, 403 (2001). */
static const double optx_local = 1.05151, optx_gradient = 1.43169;

double fm_xc_usual_factor(const char *name)
{
    const fm__name *n = fm__functional_name(name);
    return n && n->kind == FM_NAME_OPTX ? optx_gradient : 1;
}

static fm_status add_name(recipe *r, const fm__name *name, const fm_xc_term *t)
{
    switch (name->kind) {
    case FM_NAME_EXACT: r->exact += t->factor; return FM_OK;
    case FM_NAME_LOCAL:
        if (t->part == FM_XC_NONLOCAL)
            return fm_fail(FM_E_ARG, "xc: %s is a local functional, nonlocal does not go with it",
                           t->name);
        note_local(r, name->whole);
        r->has_slater |= name->whole == XC_LDA_X && t->factor != 0;
        break;
    case FM_NAME_EXCHANGE:
        if (t->part == FM_XC_LOCAL)
            return fm_fail(FM_E_ARG, "xc: the local part of %s is slater, name that instead",
                           t->name);
        if (t->part == FM_XC_NONLOCAL) add(r, name->local, -t->factor);
        break;
    case FM_NAME_CORRELATION:
        if (t->part == FM_XC_LOCAL)
            return fm_fail(FM_E_ARG,
                           "xc: %s stands for its gradient part, local does not go with it",
                           t->name);
        add(r, name->local, -t->factor);
        r->gradient_only[name->local != XC_LDA_C_PZ] = t->factor;
        break;
    case FM_NAME_TOTAL: note_local(r, name->whole); break;
    case FM_NAME_OPTX:
        r->has_optx = 1;
        add(r, name->whole, t->factor / optx_gradient);
        add(r, name->local, -optx_local * t->factor / optx_gradient);
        return FM_OK;
    }
    add(r, name->whole, t->factor);
    return FM_OK;
}

static fm_status add_term(recipe *r, const fm_xc_term *t);

static fm_status add_combination(recipe *r, const fm__combination *c, const fm_xc_term *t)
{
    if (t->factor != 1 || t->part != FM_XC_WHOLE)
        return fm_fail(FM_E_ARG, "xc: %s names a whole mixture and takes no factor", t->name);
    r->exact += c->exact;
    if (c->whole) {
        add(r, c->whole, 1);
        if (c->whole_too) add(r, c->whole_too, 1);
        note_local(r, c->whole);
    }
    for (int i = 0; i < 6 && c->term[i].name[0]; i++) FM_TRY(add_term(r, &c->term[i]));
    return FM_OK;
}

static fm_status add_term(recipe *r, const fm_xc_term *t)
{
    if (!isfinite(t->factor))
        return fm_fail(FM_E_ARG, "xc: the factor of %s is not a number", t->name);
    const fm__name *name = fm__functional_name(t->name);
    if (name) return add_name(r, name, t);
    const fm__combination *c = fm__functional_combination(t->name);
    if (c) return add_combination(r, c, t);
    const char *why = fm__functional_refusal(t->name);
    if (why) return fm_fail(FM_E_ARG, "xc: %s %s", t->name, why);
    return fm_fail(FM_E_ARG, "xc: there is no functional %s", t->name);
}

/* NWChem's rule: a gradient part of a correlation without any local correlation
 * in the mixture gets its own, perdew86 with its factor, the others once. */
static fm_status join_local_correlation(recipe *r)
{
    if (r->gradient_only[1] != 0 && (r->has_foreign_local || r->gradient_only[0] != 0))
        return fm_fail(FM_E_ARG, "xc: perdew91 and cpbe96 go with no other correlation than "
                                 "pw91lda, from which their gradient part is made");
    if (r->has_local_correlation) return FM_OK;
    if (r->gradient_only[0] != 0)
        add(r, XC_LDA_C_PZ, r->gradient_only[0]);
    else if (r->gradient_only[1] != 0)
        add(r, XC_LDA_C_PW_MOD, 1);
    return FM_OK;
}

static fm_status resolve(recipe *r, const fm_xc_mix *mix)
{
    *r = (recipe){0};
    if (mix->n_term < 0 || mix->n_term > FM_XC_TERM_MAX)
        return fm_fail(FM_E_ARG, "xc: at most %d terms", FM_XC_TERM_MAX);
    for (int i = 0; i < mix->n_term; i++) FM_TRY(add_term(r, &mix->term[i]));
    if (r->has_optx && !r->has_slater) add(r, XC_LDA_X, optx_local);
    return join_local_correlation(r);
}

fm_status fm_xc_check(const fm_xc_mix *mix, double *exact)
{
    recipe r;
    FM_TRY(resolve(&r, mix));
    *exact = r.exact;
    return FM_OK;
}

fm_status fm_functional_open(fm_functional **out, const fm_xc_mix *mix, int is_polarised)
{
    recipe r;
    FM_TRY(resolve(&r, mix));
    fm_functional *f = calloc(1, sizeof *f);
    if (!f) return fm_fail(FM_E_OOM, "functional");
    f->exact  = r.exact;
    f->n_spin = is_polarised ? 2 : 1;
    for (int i = 0; i < r.n; i++) {
        if (fabs(r.factor[i]) < 1e-14) continue;
        xc_func_type *part = &f->part[f->n_part];
        if (xc_func_init(part, r.number[i], is_polarised ? XC_POLARIZED : XC_UNPOLARIZED) != 0) {
            fm_functional_close(f);
            return fm_fail(FM_E_NOSUP, "libxc has no functional number %d", r.number[i]);
        }
        f->factor[f->n_part++] = r.factor[i];
        f->has_gradient |= part->info->family != XC_FAMILY_LDA;
    }
    *out = f;
    return FM_OK;
}

void fm_functional_close(fm_functional *f)
{
    if (!f) return;
    for (int i = 0; i < f->n_part; i++) xc_func_end(&f->part[i]);
    free(f);
}

int fm_functional_has_gradient(const fm_functional *f) { return f->has_gradient; }

int fm_functional_is_empty(const fm_functional *f) { return f->n_part == 0; }

/* Side by side in the scratch: what one part of the mixture gives. */
typedef struct {
    double *e, *v_rho, *v_sigma;
} part_result;

static void accumulate(const fm_functional *f, int part, int n, const fm_functional_points *p,
                       const part_result *r)
{
    const double c = f->factor[part];
    const int    s = f->n_spin;
    for (int i = 0; i < n; i++)
        p->energy[i] += c * r->e[i] * (s == 1 ? p->rho[i] : p->rho[2 * i] + p->rho[2 * i + 1]);
    for (int i = 0; i < n * s; i++) p->v_rho[i] += c * r->v_rho[i];
    if (f->part[part].info->family == XC_FAMILY_LDA) return;
    for (int i = 0; i < n * (2 * s - 1); i++) p->v_sigma[i] += c * r->v_sigma[i];
}

void fm_functional_eval(const fm_functional *f, int n, const fm_functional_points *p,
                        double *scratch)
{
    const part_result r = {scratch, scratch + n, scratch + 3 * (size_t)n};
    memset(p->energy, 0, (size_t)n * sizeof(double));
    memset(p->v_rho, 0, (size_t)(n * f->n_spin) * sizeof(double));
    if (f->has_gradient) memset(p->v_sigma, 0, (size_t)(n * (2 * f->n_spin - 1)) * sizeof(double));
    for (int i = 0; i < f->n_part; i++) {
        if (f->part[i].info->family == XC_FAMILY_LDA)
            xc_lda_exc_vxc(&f->part[i], (size_t)n, p->rho, r.e, r.v_rho);
        else
            xc_gga_exc_vxc(&f->part[i], (size_t)n, p->rho, p->sigma, r.e, r.v_rho, r.v_sigma);
        accumulate(f, i, n, p, &r);
        if (f->part[i].info->number == XC_GGA_C_PW91)
            fm__pw91_refine(f->factor[i], f->n_spin, n, p);
    }
}
