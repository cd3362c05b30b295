/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/pairs.h"

#include <stdlib.h>

/* Ranks sorted by machine: those of machine m are rank[begin[m]] ... rank[begin[m + 1] - 1]. */
typedef struct {
    int *rank, *begin, n_machine;
    int  is_thin; /* not all pairs */
} fleet;

static int size_of(const fleet *f, int m) { return f->begin[m + 1] - f->begin[m]; }

static void sort_ranks(fleet *f, const int *machine, int n_rank)
{
    int n = 0;
    for (int i = 0; i < n_rank; i++) {
        int is_first = 1;
        for (int j = 0; j < i; j++) is_first &= machine[j] != machine[i];
        if (!is_first) continue;
        f->begin[f->n_machine++] = n;
        for (int j = i; j < n_rank; j++)
            if (machine[j] == machine[i]) f->rank[n++] = j;
    }
    f->begin[f->n_machine] = n;
}

/* --- pairs of two machines, and of one ----------------------------------------- */

static int is_power_of_two(int x) { return (x & (x - 1)) == 0; }

/* The k-th pair within a machine of n; 0: there are fewer. */
static int pair_within(const fleet *f, int n, int k, int *a, int *b)
{
    for (*a = 0; *a < n; ++*a)
        for (*b = *a + 1; *b < n; ++*b)
            if ((!f->is_thin || is_power_of_two(*b - *a)) && k-- == 0) return 1;
    return 0;
}

/* The k-th pair of one of na and one of nb. */
static int pair_between(const fleet *f, int na, int nb, int k, int *a, int *b)
{
    const int n = na < nb ? na : nb;
    *a          = f->is_thin ? k : k / nb;
    *b          = f->is_thin ? k : k % nb;
    return f->is_thin ? k < n : k < na * nb;
}

/* --- steps ----------------------------------------------------------------------- */

static fm_status add_step(fm_pairs_plan *p)
{
    const size_t n    = (size_t)p->n_rank;
    int         *more = realloc(p->partner, ((size_t)p->n_step + 1) * n * sizeof *more);
    if (!more) return fm_fail(FM_E_OOM, "plan of %d steps", p->n_step + 1);
    p->partner = more;
    for (size_t i = 0; i < n; i++) more[(size_t)p->n_step * n + i] = -1;
    p->n_step++;
    return FM_OK;
}

static void join(fm_pairs_plan *p, int a, int b)
{
    int *step = p->partner + (size_t)(p->n_step - 1) * (size_t)p->n_rank;
    step[a]   = b;
    step[b]   = a;
}

/* The partner of machine m in a round of a round-robin tournament of n (even): the last stays in
 * place, the others rotate around it. */
static int opponent(int m, int round, int n)
{
    if (m == n - 1) return round;
    if (m == round) return n - 1;
    return (2 * round - m + 2 * (n - 1)) % (n - 1);
}

/* Adds steps until no machine has a pair left; round -1: pairs within machines. */
static fm_status play(fm_pairs_plan *p, const fleet *f, int round)
{
    const int n = f->n_machine + f->n_machine % 2;
    for (int k = 0;; k++) {
        int is_over = 1;
        FM_TRY(add_step(p));
        for (int m = 0; m < f->n_machine; m++) {
            const int o = round < 0 ? m : opponent(m, round, n);
            int       a, b;
            if (o < m || o >= f->n_machine) continue;
            if (round < 0 ? !pair_within(f, size_of(f, m), k, &a, &b)
                          : !pair_between(f, size_of(f, m), size_of(f, o), k, &a, &b))
                continue;
            join(p, f->rank[f->begin[m] + a], f->rank[f->begin[o] + b]);
            is_over = 0;
        }
        if (is_over) break;
    }
    p->n_step--; /* the last one was empty */
    return FM_OK;
}

static fm_status plan(fm_pairs_plan *p, const fleet *f)
{
    const int n_round = f->n_machine > 1 ? f->n_machine + f->n_machine % 2 - 1 : 0;
    for (int round = -1; round < n_round; round++) FM_TRY(play(p, f, round));
    return FM_OK;
}

fm_status fm_pairs_plan_make(fm_pairs_plan *out, const int *machine, int n_rank, int most)
{
    const size_t  n  = (size_t)n_rank;
    fleet         f  = {.rank = calloc(n, sizeof(int)), .begin = calloc(n + 1, sizeof(int))};
    fm_pairs_plan p  = {.n_rank = n_rank};
    fm_status     rc = f.rank && f.begin ? FM_OK : fm_fail(FM_E_OOM, "plan of pairs");
    if (rc == FM_OK) sort_ranks(&f, machine, n_rank);
    if (rc == FM_OK) rc = plan(&p, &f);
    if (rc == FM_OK && p.n_step > most) {
        f.is_thin = 1;
        p.n_step  = 0;
        rc        = plan(&p, &f);
    }
    free(f.rank);
    free(f.begin);
    if (rc == FM_OK)
        *out = p;
    else
        fm_pairs_plan_fini(&p);
    return rc;
}

void fm_pairs_plan_fini(fm_pairs_plan *p)
{
    free(p->partner);
    *p = (fm_pairs_plan){0};
}
