/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON that strangers wrote: every complaint is one sentence with the
 * file and the dotted field ("config.json: rope_scaling.factor: expected a
 * number, found a string").  jansson underneath; nesting and size are bounded
 * before parsing. */
#ifndef FM_JSON_READ_H
#define FM_JSON_READ_H

#include <jansson.h>
#include <stdint.h>

#include "base/status.h"

enum { FM_JSON_MAX_DEPTH = 256 };

/* Parses a whole file or text; *out is owned by the caller (json_decref).
 * `name` stands for the text in messages. */
fm_status fm_json_load(json_t **out, const char *path);
fm_status fm_json_parse(json_t **out, const char *text, size_t len, const char *name);

/* Where a value was found: for messages only. */
typedef struct {
    const char *file;  /* borrowed */
    const char *scope; /* "" or "rope_scaling." */
} fm_json_at;

/* Required members of `obj`.  On failure *out is untouched. */
fm_status fm_json_int(int64_t *out, const json_t *obj, const char *key, int64_t lo, int64_t hi,
                      fm_json_at at);
fm_status fm_json_real(double *out, const json_t *obj, const char *key, double lo, double hi,
                       fm_json_at at);
fm_status fm_json_bool(int *out, const json_t *obj, const char *key, fm_json_at at);
fm_status fm_json_string(const char **out, const json_t *obj, const char *key, fm_json_at at);

/* Optional: *out is left as it is when the member is absent or null. */
fm_status fm_json_opt_int(int64_t *out, const json_t *obj, const char *key, int64_t lo, int64_t hi,
                          fm_json_at at);
fm_status fm_json_opt_real(double *out, const json_t *obj, const char *key, double lo, double hi,
                           fm_json_at at);
fm_status fm_json_opt_bool(int *out, const json_t *obj, const char *key, fm_json_at at);
fm_status fm_json_opt_string(const char **out, const json_t *obj, const char *key, fm_json_at at);

const char *fm_json_kind(const json_t *v); /* "an object", "a number", … */

#endif
