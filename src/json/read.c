/* SPDX-License-Identifier: Apache-2.0 */
#include "json/read.h"

#include <stdlib.h>
#include <string.h>

#include "base/mapped_file.h"

/* jansson recurses; count nesting first so that hostile input cannot. */
static fm_status check_depth(const char *text, size_t len, const char *name)
{
    int depth = 0, in_string = 0;
    for (size_t i = 0; i < len; i++) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            else if (c == '"') in_string = 0;
        } else if (c == '"') in_string = 1;
        else if (c == '[' || c == '{') {
            if (++depth > FM_JSON_MAX_DEPTH)
                return fm_fail(FM_E_FORMAT, "%s: nested deeper than %d", name, FM_JSON_MAX_DEPTH);
        } else if (c == ']' || c == '}') depth--;
    }
    return FM_OK;
}

/* Digits from here on, and whether they are a whole number. */
static size_t number_len(const char *text, size_t len, int *is_integer)
{
    size_t n    = 0;
    *is_integer = 1;
    for (; n < len && text[n] && strchr("0123456789.eE+-", text[n]); n++)
        if (strchr(".eE", text[n])) *is_integer = 0;
    return n;
}

/* Copies the text; integers that 64 bits may not hold get an exponent, which makes
 * them real numbers for jansson. */
static char *widen_integers(const char *text, size_t len, size_t *wide_len)
{
    enum { SURE = 18 }; /* digits that always fit */
    char  *wide      = malloc(2 * len + 1);
    size_t n         = 0;
    int    in_string = 0, is_integer;
    for (size_t i = 0; wide && i < len;) {
        const size_t digits = in_string ? 0 : number_len(text + i, len - i, &is_integer);
        const size_t take   = digits ? digits : in_string && text[i] == '\\' && i + 1 < len ? 2 : 1;
        if (text[i] == '"') in_string = !in_string;
        memcpy(wide + n, text + i, take);
        n += take;
        i += take;
        if (digits > SURE && is_integer) {
            memcpy(wide + n, "e0", 2);
            n += 2;
        }
    }
    *wide_len = n;
    return wide;
}

static json_t *parse(const char *text, size_t len, json_error_t *err)
{
    const size_t how = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    json_t      *v   = json_loadb(len ? text : "", len, how, err);
    size_t       n   = 0;
    if (v || json_error_code(err) != json_error_numeric_overflow) return v;
    char *wide = widen_integers(text, len, &n);
    if (wide) v = json_loadb(wide, n, how, err);
    free(wide);
    return v;
}

fm_status fm_json_parse(json_t **out, const char *text, size_t len, const char *name)
{
    FM_TRY(check_depth(text, len, name));
    json_error_t err;
    json_t      *v = parse(text, len, &err);
    if (!v)
        return fm_fail(FM_E_FORMAT, "%s: line %d: not valid JSON: %s", name, err.line, err.text);
    *out = v;
    return FM_OK;
}

fm_status fm_json_load(json_t **out, const char *path)
{
    fm_mapped_file f;
    FM_TRY(fm_mapped_file_open(&f, path));
    fm_status rc = fm_not_lfs_pointer(f.data, f.size, path);
    if (rc == FM_OK) rc = fm_json_parse(out, f.data, f.size, path);
    fm_mapped_file_close(&f);
    return rc;
}

const char *fm_json_kind(const json_t *v)
{
    if (!v) return "nothing";
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    case JSON_NULL: return "null";
    }
    return "something else";
}

static fm_status wrong(const json_t *v, const char *key, const char *wanted, fm_json_at at)
{
    if (!v) return fm_fail(FM_E_FORMAT, "%s: %s%s is missing", at.file, at.scope, key);
    return fm_fail(FM_E_FORMAT, "%s: %s%s: expected %s, found %s", at.file, at.scope, key, wanted,
                   fm_json_kind(v));
}

fm_status fm_json_int(int64_t *out, const json_t *obj, const char *key, int64_t lo, int64_t hi,
                      fm_json_at at)
{
    const json_t *v = json_object_get(obj, key);
    json_int_t    i;
    if (json_is_integer(v)) {
        i = json_integer_value(v);
    } else if (json_is_real(v) && json_real_value(v) > -1e15 && json_real_value(v) < 1e15 &&
               (double)(json_int_t)json_real_value(v) == json_real_value(v)) {
        i = (json_int_t)json_real_value(v); /* 40.0 where 40 was meant */
    } else if (json_is_real(v) && (json_real_value(v) >= 0x1p63 || json_real_value(v) < -0x1p63)) {
        return fm_fail(FM_E_FORMAT, "%s: %s%s is %.0f, must be between %lld and %lld", at.file,
                       at.scope, key, json_real_value(v), (long long)lo, (long long)hi);
    } else {
        return wrong(v, key, "an integer", at);
    }
    if (i < lo || i > hi)
        return fm_fail(FM_E_FORMAT, "%s: %s%s is %lld, must be between %lld and %lld", at.file,
                       at.scope, key, (long long)i, (long long)lo, (long long)hi);
    *out = i;
    return FM_OK;
}

fm_status fm_json_real(double *out, const json_t *obj, const char *key, double lo, double hi,
                       fm_json_at at)
{
    const json_t *v = json_object_get(obj, key);
    if (!json_is_number(v)) return wrong(v, key, "a number", at);
    const double x = json_number_value(v);
    if (!(x >= lo && x <= hi))
        return fm_fail(FM_E_FORMAT, "%s: %s%s is %g, must be between %g and %g", at.file, at.scope,
                       key, x, lo, hi);
    *out = x;
    return FM_OK;
}

fm_status fm_json_bool(int *out, const json_t *obj, const char *key, fm_json_at at)
{
    const json_t *v = json_object_get(obj, key);
    if (!json_is_boolean(v)) return wrong(v, key, "true or false", at);
    *out = json_is_true(v);
    return FM_OK;
}

fm_status fm_json_string(const char **out, const json_t *obj, const char *key, fm_json_at at)
{
    const json_t *v = json_object_get(obj, key);
    if (!json_is_string(v)) return wrong(v, key, "a string", at);
    *out = json_string_value(v);
    return FM_OK;
}

static int absent(const json_t *obj, const char *key)
{
    const json_t *v = json_object_get(obj, key);
    return !v || json_is_null(v);
}

fm_status fm_json_opt_int(int64_t *out, const json_t *obj, const char *key, int64_t lo, int64_t hi,
                          fm_json_at at)
{
    return absent(obj, key) ? FM_OK : fm_json_int(out, obj, key, lo, hi, at);
}

fm_status fm_json_opt_real(double *out, const json_t *obj, const char *key, double lo, double hi,
                           fm_json_at at)
{
    return absent(obj, key) ? FM_OK : fm_json_real(out, obj, key, lo, hi, at);
}

fm_status fm_json_opt_bool(int *out, const json_t *obj, const char *key, fm_json_at at)
{
    return absent(obj, key) ? FM_OK : fm_json_bool(out, obj, key, at);
}

fm_status fm_json_opt_string(const char **out, const json_t *obj, const char *key, fm_json_at at)
{
    return absent(obj, key) ? FM_OK : fm_json_string(out, obj, key, at);
}
