/* SPDX-License-Identifier: Apache-2.0 */
/* A parameter space: what may be varied, and between which values.
 *
 *     threads=1..64               whole numbers, both ends included
 *     batch=8..1024:log           the same on a logarithmic scale
 *     chunk=512..8192:step=512    every 512th
 *     ratio=0.1..0.9              real numbers (a point or an exponent in an end)
 *     mapping={core,socket}       choices; {8,16,32}, all numbers and ascending, is ordered
 *     drafts=1..8 if spec=NGRAM   exists only where another choice has one of these values
 *                                 (several: spec=NGRAM|EAGLE)
 *
 * A point has a number per parameter: the value, or the index of a choice, or
 * NaN where the parameter does not exist.  Parents come before their children.
 * Constraints are expressions (expr.h) over the values; a point that breaks one
 * is never suggested.  One thread; the space owns its strings. */
#ifndef FM_TUNE_SPACE_H
#define FM_TUNE_SPACE_H

#include <stdint.h>

#include "base/mt19937.h"
#include "base/status.h"
#include "base/str.h"

enum { FM_TUNE_MAX_PARAM = 32, FM_TUNE_MAX_CHOICE = 64, FM_TUNE_MAX_CONSTRAINT = 16 };

typedef enum { FM_PARAM_INT, FM_PARAM_REAL, FM_PARAM_CHOICE } fm_param_kind;

typedef struct {
    char         *name; /* owned, as are the choices */
    fm_param_kind kind;
    double        lo, hi;
    double        step;    /* INT; 1 if not given */
    int           is_log;  /* numbers: equal ratios are equally far apart */
    int           ordered; /* choices: neighbours in the list are alike */
    char        **choice;  /* [n_choice] */
    int           n_choice;
    int           parent;       /* -1: always exists */
    uint64_t      parent_value; /* bit i: exists where the parent has choice i */
} fm_param;

typedef struct {
    fm_param param[FM_TUNE_MAX_PARAM];
    int      n;
    char    *constraint[FM_TUNE_MAX_CONSTRAINT]; /* owned */
    int      n_constraint;
} fm_space; /* {0} is an empty one */

typedef struct {
    double v[FM_TUNE_MAX_PARAM];
} fm_point;

/* FM_E_ARG with a sentence that names the parameter. */
fm_status fm_space_add(fm_space *s, const char *text);
fm_status fm_space_constrain(fm_space *s, const char *expression);
void      fm_space_fini(fm_space *s);

int fm_space_find(const fm_space *s, const char *name, size_t len); /* index or -1 */

/* The number of values of a parameter; 0: not countable (REAL). */
int64_t fm_param_n_value(const fm_param *p);
/* Points, constraints aside; INFINITY if not countable. */
double fm_space_size(const fm_space *s);

/* A value's place in [0, 1] on the parameter's scale, and back (rounded to a
 * value that exists).  Choices: the middle of the i-th of n equal parts. */
double fm_param_unit(const fm_param *p, double value);
double fm_param_value(const fm_param *p, double unit);

/* Value i of a countable parameter. */
double fm_param_nth(const fm_param *p, int64_t i);

int fm_param_exists(const fm_space *s, int i, const fm_point *at); /* given its parents there */
/* NaN where a parameter does not exist. */
void fm_point_settle(const fm_space *s, fm_point *p);
int  fm_point_equal(const fm_space *s, const fm_point *a, const fm_point *b);
int  fm_point_allowed(const fm_space *s, const fm_point *p); /* by the constraints */

/* Equally likely on each scale; FM_E_FULL: no point that the constraints allow was found. */
fm_status fm_point_random(const fm_space *s, fm_mt *random, fm_point *out);

/* Value i as text: "32", "0.25", "core"; nothing where it does not exist. */
void fm_point_text(const fm_space *s, const fm_point *p, int i, fm_str *out);
/* The other way; FM_E_ARG: not a value of this parameter. */
fm_status fm_param_read(const fm_param *p, const char *text, double *out);

#endif
