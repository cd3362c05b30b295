/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/report/report.h"

#include <math.h>
#include <string.h>

#include "base/cpu.h"
#include "chem/input/deck_print.h"

static int shows(const fm_scf *s, unsigned part) { return !(s->task->quiet & part); }

/* 1.0E-07 as Fortran writes it: 1.00D-07. */
static const char *fortran_digits(char out[16], double x, int digits)
{
    snprintf(out, 16, "%.*E", digits, x);
    char *e = strchr(out, 'E');
    if (e) *e = 'D';
    return out;
}

static const char *fortran(char out[16], double x) { return fortran_digits(out, x, 2); }

static void underlined(FILE *to, int indent, const char *title)
{
    fprintf(to, "\n%*s%s\n%*s", indent, "", title, indent, "");
    for (size_t i = 0; title[i]; i++) putc('-', to);
    fputs("\n\n", to);
}

/* --- before ---------------------------------------------------------------- */

void fm_report_begin(FILE *to, const fm_deck *d, const fm_report_job *job)
{
    underlined(to, 10, "fathom: Hartree-Fock and DFT energies");
    fprintf(to, "    input           = %s\n    prefix          = %s.\n", job->deck, d->name);
    fprintf(to, "    version         = %s\n    status          = %s\n", job->version,
            d->is_restart ? "restart" : "startup");
    fprintf(to, "    nproc           = %8d\n    threads         = %8d\n", job->n_rank,
            job->n_thread);
    fprintf(to, "    instructions    = %s\n", fm_isa_name(fm_cpu_isa()));
}

static void geometry(FILE *to, const fm_scf *s)
{
    static const double angstrom = 1 / 1.88972598858;
    const fm_molecule  *m        = s->task->molecule;
    underlined(to, 29, "Geometry");
    fprintf(to, " Output coordinates in angstroms, group %s\n\n", m->group);
    fprintf(to, "  No.       Tag          Charge          X              Y              Z\n");
    fprintf(to, " ---- ---------------- ---------- -------------- -------------- --------------\n");
    for (int i = 0; i < m->n_atom; i++) {
        const fm_atom *a = &m->atom[i];
        fprintf(to, " %4d %-16s %10.4f %14.8f %14.8f %14.8f\n", i + 1, a->tag, a->charge,
                a->xyz[0] * angstrom, a->xyz[1] * angstrom, a->xyz[2] * angstrom);
    }
    fprintf(to, "\n Effective nuclear repulsion energy (a.u.) %18.10f\n", s->energy.repulsion);
}

static int count_shells(const fm_basis *b)
{
    int n = 0;
    for (int i = 0; i < b->n_shell; i++) n += b->shell[i].n_contr;
    return n;
}

static void scf_information(FILE *to, const fm_scf *s)
{
    underlined(to, 33, "NWChem-style SCF: module scf");
    fprintf(to, "  functions       = %5d\n  shells          = %5d\n  atoms           = %5d\n", s->n,
            count_shells(s->task->basis), s->task->molecule->n_atom);
    fprintf(to, "  closed shells   = %5d\n  open shells     = %5d\n  charge          = %6.2f\n",
            s->n_occ[1], s->n_occ[0] - s->n_occ[1], (double)s->task->molecule->charge);
    fprintf(to, "  wavefunction    = %s\n", fm_scf_name(s));
    fprintf(to, "  threshold       = %.1e\n  tol2e           = %.1e\n", s->task->thresh,
            s->task->tol2e);
}

static void mixture(FILE *to, const fm_xc_mix *x)
{
    static const char *const part[] = {"", " local", " non-local"};
    underlined(to, 13, "XC Information");
    for (int i = 0; i < x->n_term; i++)
        fprintf(to, "          %-24s %8.4f%s\n", x->term[i].name, x->term[i].factor,
                part[x->term[i].part]);
}

static void dft_information(FILE *to, const fm_scf *s)
{
    static const char *const level[] = {"xcoarse", "coarse", "medium", "fine", "xfine", "huge"};
    char                     a[16], b[16], c[16];
    underlined(to, 33, "NWChem-style DFT: module dft");
    fprintf(to, "          Wavefunction type:  %s\n",
            s->n_set == 1 ? "closed shell." : "spin polarized.");
    fprintf(to, "          No. of atoms     : %5d\n          No. of electrons : %5d\n",
            s->task->molecule->n_atom, s->n_occ[0] + s->n_occ[1]);
    fprintf(to, "           Alpha electrons : %5d\n            Beta electrons : %5d\n", s->n_occ[0],
            s->n_occ[1]);
    fprintf(to, "          Charge           : %5d\n          Spin multiplicity: %5d\n",
            s->task->molecule->charge, s->n_occ[0] - s->n_occ[1] + 1);
    fprintf(to, "          AO basis - number of functions: %5d\n", s->n);
    fprintf(to, "                     number of shells: %5d\n", count_shells(s->task->basis));
    fprintf(to, "          Convergence on energy requested:  %s\n",
            fortran(a, s->task->tol_energy));
    fprintf(to, "          Convergence on density requested:  %s\n",
            fortran(b, s->task->tol_density));
    fprintf(to, "          Convergence on gradient requested:  %s\n",
            fortran(c, s->task->tol_gradient));
    mixture(to, &s->task->xc.mix);
    underlined(to, 13, "Grid Information");
    fprintf(to,
            "          Grid used for XC integration:  %s\n          Number of grid points: %d\n",
            level[s->task->xc.level], s->n_grid_point);
}

void fm_report_task(FILE *to, const fm_scf *s)
{
    if (s->task->title[0]) fprintf(to, "\n          %s\n", s->task->title);
    if (shows(s, FM_PRINT_GEOMETRY)) geometry(to, s);
    if (shows(s, FM_PRINT_PARAMETERS)) (s->is_dft ? dft_information : scf_information)(to, s);
    if (s->cache_bytes > 0 && shows(s, FM_PRINT_PARAMETERS))
        fprintf(to, "  semidirect: integrals kept, at most %.1f MB a rank\n",
                (double)s->cache_bytes * 1e-6);
    if (s->m < s->n)
        fprintf(to,
                "\n !! linear dependence: %d of %d combinations of functions dropped,"
                " smallest overlap eigenvalue %.1e\n",
                s->n - s->m, s->n, s->smallest_overlap);
}

/* --- during ---------------------------------------------------------------- */

static void head(FILE *to, const fm_scf *s)
{
    if (s->is_dft)
        fputs("\n   convergence    iter        energy       DeltaE   RMS-Dens  Diis-err    time\n"
              " ---------------- ----- ----------------- --------- --------- ---------  ------\n",
              to);
    else
        fputs("\n              iter       energy          gnorm     gmax       time\n"
              "             ----- ------------------- --------- --------- --------\n",
              to);
}

void fm_report_guess(FILE *to, const fm_scf *s)
{
    switch (s->opt.vectors_from) {
    case FM_VECTORS_FILE: fprintf(to, "\n Loading old vectors from %s\n", s->opt.vectors_in); break;
    case FM_VECTORS_CORE: fprintf(to, "\n Eigenvectors of the one-electron Hamiltonian\n"); break;
    default:
        underlined(to, 5, "Superposition of Atomic Density Guess");
        fprintf(to, " Sum of atomic energies: %20.8f\n", s->atoms_energy);
    }
    if (shows(s, FM_PRINT_ITERATIONS)) head(to, s);
    fflush(to);
}

void fm_report_step(FILE *to, const fm_scf *s, const fm_scf_step *step)
{
    char a[16], b[16], c[16];
    if (!shows(s, FM_PRINT_ITERATIONS)) return;
    if (s->is_dft)
        fprintf(to, " d= 0,ls=%3.1f,%-4.4s %5d %17.10f %9s %9s %9s %7.1f\n", step->level_shift,
                step->method, step->iteration, step->energy, fortran(a, step->change),
                fortran(b, step->rms_density), fortran(c, step->gradient), step->seconds);
    else
        fprintf(to, "             %5d %19.10f %9s %9s %8.1f\n", step->iteration, step->energy,
                fortran(a, step->gradient), fortran(b, step->largest), step->seconds);
    fflush(to);
}

/* --- after ----------------------------------------------------------------- */

static void scf_energies(FILE *to, const fm_scf *s, const fm_props *p)
{
    char        title[32];
    const char *hyphen = s->n_set == 2 ? " " : "-"; /* NWChem's UHF writes it so */
    snprintf(title, sizeof title, "Final %s  results", fm_scf_name(s));
    underlined(to, 7, title);
    fprintf(to, "         Total SCF energy = %19.12f\n", s->energy.total);
    fprintf(to, "      One%selectron energy = %19.12f\n", hyphen, s->energy.one_electron);
    fprintf(to, "      Two%selectron energy = %19.12f\n", hyphen, s->energy.two_electron);
    fprintf(to, " Nuclear repulsion energy = %19.12f\n", s->energy.repulsion);
    if (s->n_set == 2) {
        const double sz = 0.5 * (s->n_occ[0] - s->n_occ[1]);
        fprintf(to, "\n                       Sz = %11.4f\n                 Sz(Sz+1) = %11.4f\n",
                sz, sz * (sz + 1));
        fprintf(to, "                      S^2 = %11.4f\n", p->s2);
    }
    fprintf(to, "\n        Time for solution = %8.1fs\n", s->times.total);
}

static void dft_energies(FILE *to, const fm_scf *s, const fm_props *p)
{
    fprintf(to, "\n\n         Total DFT energy = %21.12f\n", s->energy.total);
    fprintf(to, "      One electron energy = %21.12f\n", s->energy.one_electron);
    fprintf(to, "           Coulomb energy = %21.12f\n", s->energy.coulomb);
    fprintf(to, "    Exchange-Corr. energy = %21.12f\n", s->energy.exchange_correlation);
    fprintf(to, " Nuclear repulsion energy = %21.12f\n", s->energy.repulsion);
    fprintf(to, "\n Numeric. integr. density = %21.12f\n", s->energy.electrons);
    fprintf(to, "\n     Total iterative time = %8.1fs\n", s->times.total);
    if (s->n_set == 2)
        fprintf(to,
                "\n     Expectation value of S2:\n     ------------------------\n"
                "      <S2> = %11.4f (Exact = %10.4f)\n",
                p->s2, p->s2_exact);
}

static void eigenvalues(FILE *to, const fm_scf *s)
{
    static const char *const of[] = {"Final eigenvalues", "Final alpha eigenvalues",
                                     "Final beta eigenvalues"};
    for (int i = 0; i < s->n_set; i++) {
        const int n_occ = s->n_occ[i], n = n_occ + 10 < s->m ? n_occ + 10 : s->m;
        underlined(to, 13, of[s->n_set == 1 ? 0 : i + 1]);
        fprintf(to, "              1      \n");
        for (int k = 0; k < n; k++) fprintf(to, " %4d %9.4f\n", k + 1, s->eps[i][k]);
        if (n_occ > 0) fprintf(to, "\n HOMO = %12.6f\n", s->eps[i][n_occ - 1]);
        if (n_occ < s->m) fprintf(to, " LUMO = %12.6f\n", s->eps[i][n_occ]);
    }
}

/* Electrons in an orbital of set i. */
static int occupation(const fm_scf *s, int i, int orbital)
{
    if (s->n_set == 2) return orbital < s->n_occ[i];
    return (orbital < s->n_occ[0]) + (orbital < s->n_occ[1]);
}

/* A line an orbital, as scripts read it; NWChem's RHF calls itself ROHF here. */
static void vectors(FILE *to, const fm_scf *s)
{
    static const char *const spin[] = {"", " Alpha", " Beta"};
    const char *const        name   = s->is_dft ? "DFT" : s->n_set == 2 ? "UHF" : "ROHF";
    char                     title[64], occ[16], e[16];
    for (int i = 0; i < s->n_set; i++) {
        const int n_occ = s->n_occ[i], n = n_occ + 10 < s->m ? n_occ + 10 : s->m;
        snprintf(title, sizeof title, "%s Final%s Molecular Orbital Analysis", name,
                 spin[s->n_set == 1 ? 0 : i + 1]);
        underlined(to, 23, title);
        for (int k = 0; k < n; k++)
            fprintf(to, " Vector %4d  Occ=%s  E=%13s\n", k + 1,
                    fortran_digits(occ, occupation(s, i, k), 6),
                    fortran_digits(e, s->eps[i][k], 6));
    }
}

static void mulliken(FILE *to, const fm_scf *s, const fm_props *p)
{
    const fm_molecule *m = s->task->molecule;
    const fm_basis    *b = s->task->basis;
    underlined(to, 2, "Mulliken analysis of the total density");
    fprintf(to, "    Atom       Charge   Shell Charges\n");
    fprintf(to,
            " -----------   ------   -------------------------------------------------------\n");
    for (int a = 0; a < m->n_atom; a++) {
        fprintf(to, " %4d %-4s%3d %8.2f  ", a + 1, m->atom[a].tag, m->atom[a].z, p->population[a]);
        for (int i = 0; i < b->n_shell; i++)
            if (b->shell[i].atom == a) fprintf(to, "%6.2f", p->by_shell[i]);
        fputc('\n', to);
    }
    if (s->n_set == 2 || s->n_spin == 2) {
        underlined(to, 2, "Mulliken analysis of the spin density");
        for (int a = 0; a < m->n_atom; a++)
            fprintf(to, " %4d %-4s%3d %8.2f\n", a + 1, m->atom[a].tag, m->atom[a].z, p->spin[a]);
    }
}

static void dipole(FILE *to, const fm_props *p)
{
    const double *d = p->dipole;
    const double  a = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    underlined(to, 5, "Multipole analysis of the density");
    fprintf(to, "     L   x y z        total\n     -   - - -        -----\n");
    fprintf(to, "     1   1 0 0 %13.6f\n     1   0 1 0 %13.6f\n     1   0 0 1 %13.6f\n", d[0], d[1],
            d[2]);
    fprintf(to, "\n Dipole moment %15.10f A.U.\n", a);
    fprintf(to, "               %15.10f Debye(s)\n", a * FM_DEBYE);
}

void fm_report_result(FILE *to, const fm_scf *s, const fm_props *p)
{
    if (!s->is_converged)
        fprintf(to,
                "\n !! Calculation failed to converge in %d iterations: the energies below are"
                " not final !!\n",
                s->step.iteration);
    (s->is_dft ? dft_energies : scf_energies)(to, s, p);
    if (shows(s, FM_PRINT_VECTORS)) {
        eigenvalues(to, s);
        vectors(to, s);
    }
    if (shows(s, FM_PRINT_MULLIKEN)) mulliken(to, s, p);
    if (shows(s, FM_PRINT_MULTIPOLE)) dipole(to, p);
    fflush(to);
}
