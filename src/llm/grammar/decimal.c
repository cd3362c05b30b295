/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/grammar/decimal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIGNIFICANT = 17 };

void fm__decimal_of_integer(fm__decimal *d, int64_t x)
{
    *d = (fm__decimal){.is_negative = x < 0, .whole = x < 0 ? 0 - (uint64_t)x : (uint64_t)x};
}

/* The digits of |x| and the power of ten of the first. */
static int shortest_digits(char digit[MAX_SIGNIFICANT + 1], double x, int *power)
{
    char buf[40];
    int  n = 1;
    for (; n <= MAX_SIGNIFICANT; n++) {
        snprintf(buf, sizeof buf, "%.*e", n - 1, x);
        if (strtod(buf, NULL) == x) break;
    }
    if (n > MAX_SIGNIFICANT) n = MAX_SIGNIFICANT;
    digit[0] = buf[0];
    if (n > 1) memcpy(digit + 1, buf + 2, (size_t)n - 1); /* behind the point */
    *power = atoi(strchr(buf, 'e') + 1);
    while (n > 1 && digit[n - 1] == '0') n--;
    return n;
}

static void read_real(fm__decimal *d, double x)
{
    char digit[MAX_SIGNIFICANT + 1];
    int  power = 0, n = 0;
    if (x == 0) return;
    d->is_huge = !(fabs(x) < 0x1p63);
    if (d->is_huge) return;
    n = shortest_digits(digit, fabs(x), &power);
    for (int i = 0; i <= power; i++)
        d->whole = 10 * d->whole + (uint64_t)(i < n ? digit[i] - '0' : 0);
    for (int i = power < -1 ? power + 1 : 0; i < 0 && d->n_fraction < FM__MAX_FRACTION; i++)
        d->fraction[d->n_fraction++] = '0';
    for (int i = power < 0 ? 0 : power + 1; i < n && d->n_fraction < FM__MAX_FRACTION; i++)
        d->fraction[d->n_fraction++] = digit[i];
}

void fm__decimal_read(fm__decimal *d, const json_t *number)
{
    if (json_is_integer(number)) {
        fm__decimal_of_integer(d, json_integer_value(number));
        return;
    }
    *d = (fm__decimal){.is_negative = json_real_value(number) < 0};
    read_real(d, json_real_value(number));
}

/* Without the signs. */
static int compare_sizes(const fm__decimal *a, const fm__decimal *b)
{
    if (a->whole != b->whole) return a->whole < b->whole ? -1 : 1;
    return strcmp(a->fraction, b->fraction); /* neither ends in a zero */
}

int fm__decimal_compare(const fm__decimal *a, const fm__decimal *b)
{
    const int zero_a = !a->whole && !a->n_fraction, zero_b = !b->whole && !b->n_fraction;
    const int sign_a = zero_a ? 0 : a->is_negative ? -1 : 1;
    const int sign_b = zero_b ? 0 : b->is_negative ? -1 : 1;
    if (sign_a != sign_b) return sign_a < sign_b ? -1 : 1;
    return sign_a < 0 ? compare_sizes(b, a) : compare_sizes(a, b);
}
