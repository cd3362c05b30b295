/* SPDX-License-Identifier: Apache-2.0 */
/* digest.h for whatever instructions the including file may use. */
#include <math.h>
#include <string.h>

#include "chem/fock/digest.h"
#include "chem/integral/harmonic.h"
#include "chem/integral/vec.h"

enum { MAX_BLOCK = FM_CARTESIAN_MAX * FM_CARTESIAN_MAX };

static void copy_rows(double *rows, const double *D, int n, int first, int f)
{
    for (int k = 0; k < n; k++)
        for (int a = 0; a < f; a++)
            rows[k * f + a] = D[(size_t)k * (size_t)n + (size_t)(first + a)];
}

static void begin_bra(fm_digest *g, const fm_pair_list *list, int bra, const double *D)
{
    const fm_pair_class *c = &list->class[list->of[bra]];
    g->f_a                 = c->n_contr_a * c->n_a;
    g->f_b                 = c->n_contr_b * c->n_b;
    memset(g->J_bra, 0, (size_t)(g->f_a * g->f_b) * sizeof(vd));
    if (!g->has_K) return;
    copy_rows(g->D_a, D, g->n, list->function_a[bra], g->f_a);
    copy_rows(g->D_b, D, g->n, list->function_b[bra], g->f_b);
    memset(g->K_a, 0, (size_t)(g->n * g->f_a) * sizeof(double));
    memset(g->K_b, 0, (size_t)(g->n * g->f_b) * sizeof(double));
}

static int64_t fixed(double x) { return (int64_t)lrint(x); }

static void add_rows(int64_t *K, double scale, const double *rows, int n, int first, int f)
{
    for (int a = 0; a < f; a++)
        for (int k = 0; k < n; k++)
            K[(size_t)(first + a) * (size_t)n + (size_t)k] += fixed(scale * rows[k * f + a]);
}

static void end_bra(fm_digest *g, const fm_pair_list *list, int bra)
{
    for (int p = 0; p < g->f_a * g->f_b; p++)
        g->J_product[list->product[bra] + p] += fixed(g->J_scale * vd_sum(((vd *)g->J_bra)[p]));
    if (!g->has_K) return;
    add_rows(g->K, g->K_scale, g->K_a, g->n, list->function_a[bra], g->f_a);
    add_rows(g->K, g->K_scale, g->K_b, g->n, list->function_b[bra], g->f_b);
}

/* The four blocks of D and of K between the bra's and the kets' shells, [ket component][bra's]. */
typedef struct {
    vd ac[MAX_BLOCK], ad[MAX_BLOCK], bc[MAX_BLOCK], bd[MAX_BLOCK];
} blocks;

typedef struct {
    int           na, nb, nc, nd;
    const vd     *I; /* [na][nb][nc][nd] */
    const double *D_ab;
    const vd     *D_cd;
    vd           *J_ab, *J_cd;
    blocks       *D, *K;
} sums;

/* nc and nd are constants where this is expanded, so that rows of D and K stay in registers.
 * Everything is copied from *s first: a stored vector might otherwise have changed it. */
static inline __attribute__((always_inline)) void exchange(const sums *s, const int nc,
                                                           const int nd)
{
    const int     na = s->na, nb = s->nb;
    const vd     *I         = s->I;
    const double *D_ab      = s->D_ab;
    const vd     *D_cd      = s->D_cd;
    const blocks *D         = s->D;
    vd *restrict const J_ab = s->J_ab, *restrict const J_cd = s->J_cd;
    vd *restrict const K_ac = s->K->ac, *restrict const K_ad = s->K->ad;
    vd *restrict const K_bc = s->K->bc, *restrict const K_bd = s->K->bd;
    for (int a = 0; a < na; a++)
        for (int b = 0; b < nb; b++) {
            const vd d_ab = vd_set(D_ab[a * nb + b]);
            vd       j    = J_ab[a * nb + b], k_ad[15], k_bd[15], d_ad[15], d_bd[15];
            for (int d = 0; d < nd; d++) {
                k_ad[d] = K_ad[d * na + a];
                k_bd[d] = K_bd[d * nb + b];
                d_ad[d] = D->ad[d * na + a];
                d_bd[d] = D->bd[d * nb + b];
            }
            for (int c = 0; c < nc; c++, I += nd) {
                const vd d_ac = D->ac[c * na + a], d_bc = D->bc[c * nb + b];
                vd       k_ac = K_ac[c * na + a], k_bc = K_bc[c * nb + b];
                for (int d = 0; d < nd; d++) {
                    const vd v       = I[d];
                    j                = vd_fma(v, D_cd[c * nd + d], j);
                    J_cd[c * nd + d] = vd_fma(v, d_ab, J_cd[c * nd + d]);
                    k_ac             = vd_fma(v, d_bd[d], k_ac);
                    k_bc             = vd_fma(v, d_ad[d], k_bc);
                    k_ad[d]          = vd_fma(v, d_bc, k_ad[d]);
                    k_bd[d]          = vd_fma(v, d_ac, k_bd[d]);
                }
                K_ac[c * na + a] = k_ac;
                K_bc[c * nb + b] = k_bc;
            }
            for (int d = 0; d < nd; d++) {
                K_ad[d * na + a] = k_ad[d];
                K_bd[d * nb + b] = k_bd[d];
            }
            J_ab[a * nb + b] = j;
        }
}

static void coulomb_only(const sums *s)
{
    const int n = s->nc * s->nd;
    for (int ab = 0; ab < s->na * s->nb; ab++) {
        const vd  d = vd_set(s->D_ab[ab]);
        const vd *I = s->I + ab * n;
        vd        j = s->J_ab[ab];
        for (int k = 0; k < n; k++) {
            j          = vd_fma(I[k], s->D_cd[k], j);
            s->J_cd[k] = vd_fma(I[k], d, s->J_cd[k]);
        }
        s->J_ab[ab] = j;
    }
}

static void exchange_of(const sums *s)
{
    switch (s->nd) {
    case 1:
        if (s->nc == 1)
            exchange(s, 1, 1);
        else if (s->nc == 3)
            exchange(s, 3, 1);
        else if (s->nc == 5)
            exchange(s, 5, 1);
        else
            exchange(s, s->nc, 1);
        break;
    case 3:
        if (s->nc == 3)
            exchange(s, 3, 3);
        else if (s->nc == 5)
            exchange(s, 5, 3);
        else
            exchange(s, s->nc, 3);
        break;
    case 5: exchange(s, s->nc, 5); break;
    case 7: exchange(s, s->nc, 7); break;
    default: exchange(s, s->nc, s->nd);
    }
}

/* Every lane's run rows[at .. at + n) as n vectors. */
static inline void load_runs(vd *out, const double *rows, vi at, int n)
{
    int e = 0;
    for (; e + VEC <= n; e += VEC) {
        for (int lane = 0; lane < VEC; lane++)
            out[e + lane] = *(const vd_loose *)(rows + at[lane] + e);
        vd_transpose(out + e);
    }
    for (; e < n; e++) out[e] = vd_gather(rows + e, at);
}

static inline void add_runs(double *rows, const vd *in, vi at, int n)
{
    int e = 0;
    for (; e + VEC <= n; e += VEC) {
        vd x[VEC];
        for (int k = 0; k < VEC; k++) x[k] = in[e + k];
        vd_transpose(x);
        for (int lane = 0; lane < VEC; lane++) *(vd_loose *)(rows + at[lane] + e) += x[lane];
    }
    for (; e < n; e++)
        for (int lane = 0; lane < VEC; lane++) rows[at[lane] + e] += in[e][lane];
}

/* Blocks [ket component][bra component] of rows laid out [function][f]. */
static void load_block(vd *out, const double *rows, int f, vi at, int n_bra, int n_ket)
{
    if (f == n_bra)
        load_runs(out, rows, at, n_bra * n_ket);
    else
        for (int c = 0; c < n_ket; c++) load_runs(out + c * n_bra, rows + c * f, at, n_bra);
}

static void add_block(double *rows, const vd *in, int f, vi at, int n_bra, int n_ket)
{
    if (f == n_bra)
        add_runs(rows, in, at, n_bra * n_ket);
    else
        for (int c = 0; c < n_ket; c++) add_runs(rows + c * f, in + c * n_bra, at, n_bra);
}

typedef struct {
    vi ac, ad, bc, bd;
} places;

/* One contraction of bra and of ket. */
static void add_combo(fm_digest *g, sums *s, const places *p)
{
    blocks D, K;
    s->D = &D;
    s->K = &K;
    load_block(D.ac, g->D_a, g->f_a, p->ac, s->na, s->nc);
    load_block(D.ad, g->D_a, g->f_a, p->ad, s->na, s->nd);
    load_block(D.bc, g->D_b, g->f_b, p->bc, s->nb, s->nc);
    load_block(D.bd, g->D_b, g->f_b, p->bd, s->nb, s->nd);
    memset(K.ac, 0, (size_t)(s->na * s->nc) * sizeof(vd));
    memset(K.ad, 0, (size_t)(s->na * s->nd) * sizeof(vd));
    memset(K.bc, 0, (size_t)(s->nb * s->nc) * sizeof(vd));
    memset(K.bd, 0, (size_t)(s->nb * s->nd) * sizeof(vd));
    exchange_of(s);
    add_block(g->K_a, K.ac, g->f_a, p->ac, s->na, s->nc);
    add_block(g->K_a, K.ad, g->f_a, p->ad, s->na, s->nd);
    add_block(g->K_b, K.bc, g->f_b, p->bc, s->nb, s->nc);
    add_block(g->K_b, K.bd, g->f_b, p->bd, s->nb, s->nd);
}

static places places_of(const fm_digest *g, const fm_pair_list *list, const fm_pair_class *b,
                        int mb, const fm_pair_class *c, int mc, vi ket)
{
    const int a0 = mb / b->n_contr_b * b->n_a, b0 = mb % b->n_contr_b * b->n_b;
    const vi  k = vi_gather(list->function_a, ket) + mc / c->n_contr_b * c->n_a;
    const vi  l = vi_gather(list->function_b, ket) + mc % c->n_contr_b * c->n_b;
    return (places){k * g->f_a + a0, l * g->f_a + a0, k * g->f_b + b0, l * g->f_b + b0};
}

/* The kets' own sums are integers at once: each gets one number from a bra. */
static void add_kets(fm_digest *g, const vd *J, vi at, int n)
{
    int e = 0;
#if defined(__AVX512DQ__)
    for (; e + VEC <= n; e += VEC) {
        vd x[VEC];
        for (int k = 0; k < VEC; k++) x[k] = g->J_scale * J[e + k];
        vd_transpose(x);
        for (int lane = 0; lane < VEC; lane++)
            *(vl_loose *)(g->J_product + at[lane] + e) += (vl)_mm512_cvtpd_epi64((__m512d)x[lane]);
    }
#endif
    for (; e < n; e++) {
        const vd x = g->J_scale * J[e];
        for (int lane = 0; lane < VEC; lane++) g->J_product[at[lane] + e] += fixed(x[lane]);
    }
}

static void digest_batch(fm_digest *g, const fm_eri_work *w, int class, const int32_t *ket)
{
    const fm_pair_list  *list = w->list;
    const fm_pair_class *b = &list->class[list->of[w->bra]], *c = &list->class[class];
    const int            nab = fm_class_products(b), ncd = fm_class_products(c);
    const int            mb = fm_class_combos(b), mc = fm_class_combos(c);
    const vi             kets = *(const vi_loose *)ket, product = vi_gather(list->product, kets);
    vd                   D_cd[MAX_BLOCK], J_cd[MAX_BLOCK];
    sums s = {.na = b->n_a, .nb = b->n_b, .nc = c->n_a, .nd = c->n_b, .D_cd = D_cd, .J_cd = J_cd};
    for (int k = 0; k < mc; k++) {
        const vi at = product + k * ncd;
        load_runs(D_cd, g->D_product, at, ncd);
        memset(J_cd, 0, (size_t)ncd * sizeof *J_cd);
        for (int m = 0; m < mb; m++) {
            s.I    = (vd *)w->out + (m * mc + k) * nab * ncd;
            s.D_ab = g->D_product + list->product[w->bra] + m * nab;
            s.J_ab = (vd *)g->J_bra + m * nab;
            if (g->has_K) {
                const places p = places_of(g, list, b, m, c, k, kets);
                add_combo(g, &s, &p);
            } else
                coulomb_only(&s);
        }
        add_kets(g, J_cd, at, ncd);
    }
}

const fm_digest_kernel DIGEST_KERNEL = {DIGEST_ISA, begin_bra, digest_batch, end_bra};
