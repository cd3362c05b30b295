/* SPDX-License-Identifier: Apache-2.0 */
/* A unit is p / 10^k.  A number with j <= k digits behind the point is a multiple
 * if its digits, followed by k - j zeros, are one of p: the states count the
 * remainder modulo p and the digits behind the point.  Of a whole unit q * 10^z,
 * the states count the remainder modulo q, and z zeros follow. */
#include "llm/grammar/schema_number.h"

enum { MAX_STATE = 4096, MAX_TOGETHER = 8192, MIN_DIGITS = 5, MAX_DIGITS = 15 };

/* p without the zeros at its end, which are counted; 0: too large. */
static uint64_t digits_of(const fm__decimal *unit, int *n_zero)
{
    uint64_t p = unit->whole;
    for (*n_zero = 0; !unit->n_fraction && p && p % 10 == 0; ++*n_zero) p /= 10;
    for (int i = 0; i < unit->n_fraction; i++) {
        if (p > MAX_STATE) return 0;
        p = 10 * p + (uint64_t)(unit->fraction[i] - '0');
    }
    return unit->is_huge || p * (uint64_t)(unit->n_fraction + 1) > MAX_STATE ? 0 : p;
}

int fm__multiples_digits(const fm__decimal *unit)
{
    int            n_zero = 0;
    const uint64_t p      = digits_of(unit, &n_zero);
    const int      n      = p ? (int)(MAX_TOGETHER / (p * (uint64_t)(unit->n_fraction + 1))) : 0;
    const int      digits = (n < MIN_DIGITS ? MIN_DIGITS : n) + n_zero;
    return digits > MAX_DIGITS ? MAX_DIGITS : digits;
}

typedef struct {
    fm__nfa *n;
    int      p, k, z;
    int32_t  first; /* state of remainder r with j digits behind the point: first + j * p + r */
    int32_t  end;
} multiples;

/* Is the remainder 0 with k - j zeros behind the digits? */
static int is_multiple(const multiples *m, int r, int j)
{
    for (; j < m->k; j++) r = 10 * r % m->p;
    return r == 0;
}

static void add_row(const multiples *m, int j)
{
    for (int r = 0; r < m->p; r++) {
        const int32_t at   = m->first + j * m->p + r;
        const int     next = j ? j + 1 : 0; /* before the point nothing is counted */
        if (!m->z && is_multiple(m, r, j)) fm__nfa_empty(m->n, at, m->end);
        if (next <= m->k)
            for (int d = 0; d < 10; d++)
                fm__nfa_bytes(m->n, at, m->first + next * m->p + (10 * r + d) % m->p, '0' + d,
                              '0' + d);
    }
}

/* The point and the first digit behind it. */
static void add_point(const multiples *m, int r)
{
    const int32_t behind = fm__nfa_word(m->n, m->first + r, ".");
    for (int d = 0; d < 10; d++)
        fm__nfa_bytes(m->n, behind, m->first + m->p + (10 * r + d) % m->p, '0' + d, '0' + d);
}

/* Zeros behind a multiple of p, and 0 itself. */
static void add_zeros(const multiples *m, int32_t from)
{
    int32_t at = m->first;
    for (int i = 0; i < m->z; i++) at = fm__nfa_word(m->n, at, "0");
    fm__nfa_empty(m->n, at, m->end);
    fm__nfa_empty(m->n, fm__nfa_word(m->n, from, "0"), m->end);
}

fm_status fm__nfa_multiples(fm__nfa *n, int32_t from, int32_t *to, const fm__decimal *unit)
{
    multiples m = {.n = n, .k = unit->n_fraction};
    m.p         = (int)digits_of(unit, &m.z);
    if (!m.p) return fm_fail(FM_E_NOSUP, "schema: multipleOf: its digits are too many to follow");
    m.end   = fm__nfa_state(n);
    m.first = fm__nfa_state(n);
    for (int i = 1; i < m.p * (m.k + 1); i++) fm__nfa_state(n);
    fm__nfa_empty(n, from, m.first);
    fm__nfa_empty(n, fm__nfa_word(n, from, "-"), m.first);
    for (int j = 0; j <= m.k; j++) add_row(&m, j);
    if (m.z) add_zeros(&m, from);
    for (int r = 0; m.k && r < m.p; r++) add_point(&m, r);
    *to = m.end;
    return FM_OK;
}
