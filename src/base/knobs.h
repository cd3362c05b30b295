/* SPDX-License-Identifier: Apache-2.0 */
/* Settings as data: one line of a table gives a name its type, default,
 * bounds and help, and from it the command-line option, the environment
 * variable (FM_ + NAME), --help and the checks.
 *
 *     static const fm_knob knobs[] = {
 *         FM_KNOB(my_options, INT, page_size, "page-size", "16", 1, 64, "N", "tokens per KV page"),
 *     };
 *
 * Values live in the caller's struct: INT int64_t, REAL double, FLAG int,
 * WORD char * (owned, or NULL). */
#ifndef FM_BASE_KNOBS_H
#define FM_BASE_KNOBS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum { FM_KNOB_INT, FM_KNOB_REAL, FM_KNOB_FLAG, FM_KNOB_WORD } fm_knob_kind;

typedef struct {
    const char  *name;    /* "page-size" */
    fm_knob_kind kind;
    size_t       offset;
    const char  *initial; /* as text; NULL: zero */
    double       lo, hi;  /* INT and REAL */
    const char  *value;   /* what --help calls the value; NULL for flags */
    const char  *help;
} fm_knob;

#define FM_KNOB(type, KIND, field, name, initial, lo, hi, value, help)                             \
    {name, FM_KNOB_##KIND, offsetof(type, field), initial, lo, hi, value, help}

const fm_knob *fm_knob_find(const fm_knob *table, int n, const char *name); /* or NULL */

/* FM_E_ARG with a sentence that names the option.  A flag takes NULL, "1",
 * "true", "0" or "false". */
fm_status fm_knob_set(const fm_knob *k, void *base, const char *value);

/* "FM_PAGE_SIZE" of "page-size", cut to fit */
enum { FM_KNOB_VARIABLE = 96 };
void fm_knob_variable(char out[FM_KNOB_VARIABLE], const char *name);

/* Defaults, then what the environment says. */
fm_status fm_knobs_init(const fm_knob *table, int n, void *base);
void      fm_knobs_fini(const fm_knob *table, int n, void *base);

#endif
