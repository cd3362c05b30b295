/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "base/knobs.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fm_knob *fm_knob_find(const fm_knob *table, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}

static fm_status set_int(const fm_knob *k, int64_t *out, const char *value)
{
    char *end;
    errno             = 0;
    const long long v = strtoll(value, &end, 10);
    if (end == value || *end || errno)
        return fm_fail(FM_E_ARG, "--%s: \"%s\" is not a whole number", k->name, value);
    if ((double)v < k->lo || (double)v > k->hi)
        return fm_fail(FM_E_ARG, "--%s: %lld is not between %.0f and %.0f", k->name, v, k->lo,
                       k->hi);
    *out = v;
    return FM_OK;
}

static fm_status set_real(const fm_knob *k, double *out, const char *value)
{
    char        *end;
    const double v = strtod(value, &end);
    if (end == value || *end)
        return fm_fail(FM_E_ARG, "--%s: \"%s\" is not a number", k->name, value);
    if (!(v >= k->lo && v <= k->hi))
        return fm_fail(FM_E_ARG, "--%s: %g is not between %g and %g", k->name, v, k->lo, k->hi);
    *out = v;
    return FM_OK;
}

static fm_status set_flag(const fm_knob *k, int *out, const char *value)
{
    if (!value || !strcmp(value, "1") || !strcmp(value, "true"))
        *out = 1;
    else if (!strcmp(value, "0") || !strcmp(value, "false"))
        *out = 0;
    else
        return fm_fail(FM_E_ARG, "--%s: \"%s\" is neither true nor false", k->name, value);
    return FM_OK;
}

static fm_status set_word(char **out, const char *value)
{
    char *copy = strdup(value);
    if (!copy) return fm_fail(FM_E_OOM, "options");
    free(*out);
    *out = copy;
    return FM_OK;
}

fm_status fm_knob_set(const fm_knob *k, void *base, const char *value)
{
    void *at = (char *)base + k->offset;
    if (k->kind == FM_KNOB_FLAG) return set_flag(k, at, value);
    if (!value) return fm_fail(FM_E_ARG, "--%s needs a value", k->name);
    switch (k->kind) {
    case FM_KNOB_INT: return set_int(k, at, value);
    case FM_KNOB_REAL: return set_real(k, at, value);
    default: return set_word(at, value);
    }
}

void fm_knob_variable(char out[FM_KNOB_VARIABLE], const char *name)
{
    size_t n = (size_t)snprintf(out, FM_KNOB_VARIABLE, "FM_");
    for (; *name && n + 1 < FM_KNOB_VARIABLE; name++)
        out[n++] = *name == '-' ? '_' : (char)toupper((unsigned char)*name);
    out[n] = 0;
}

/* "" and unset leave the knob alone. */
static fm_status set_from_environment(const fm_knob *k, void *base)
{
    char var[FM_KNOB_VARIABLE], why[256];
    fm_knob_variable(var, k->name);
    const char     *value = getenv(var);
    const fm_status rc    = value && *value ? fm_knob_set(k, base, value) : FM_OK;
    if (rc == FM_OK) return FM_OK;
    snprintf(why, sizeof why, "%s", fm_why());
    return fm_fail(rc, "%s in the environment: %s", var, why);
}

static size_t value_bytes(fm_knob_kind kind)
{
    return kind == FM_KNOB_INT ? sizeof(int64_t) : kind == FM_KNOB_REAL ? sizeof(double)
         : kind == FM_KNOB_FLAG ? sizeof(int) : sizeof(char *);
}

fm_status fm_knobs_init(const fm_knob *table, int n, void *base)
{
    for (int i = 0; i < n; i++) {
        memset((char *)base + table[i].offset, 0, value_bytes(table[i].kind));
        if (table[i].initial) FM_TRY(fm_knob_set(&table[i], base, table[i].initial));
        FM_TRY(set_from_environment(&table[i], base));
    }
    return FM_OK;
}

void fm_knobs_fini(const fm_knob *table, int n, void *base)
{
    for (int i = 0; i < n; i++)
        if (table[i].kind == FM_KNOB_WORD) {
            char **at = (char **)((char *)base + table[i].offset);
            free(*at);
            *at = NULL;
        }
}
