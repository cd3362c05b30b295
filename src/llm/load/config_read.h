/* SPDX-License-Identifier: Apache-2.0 */
/* config.json -> fm_model_config.  Both spellings of the RoPE fields, defaults
 * by model family, and every bound checked: a config that comes out of here
 * can be computed with. */
#ifndef FM_LLM_LOAD_CONFIG_READ_H
#define FM_LLM_LOAD_CONFIG_READ_H

#include <stddef.h>

#include "base/status.h"
#include "base/str.h"
#include "llm/load/model_path.h"
#include "llm/weights/config.h"

struct json_t;

/* A reader of one family's config.json; its model (model/model.h) refers to it. */
typedef struct {
    const char *const *architectures; /* of config.json that it reads; NULL ends a list */
    const char *const *model_types;   /* that it knows by name */
    /* Everything but token ids; out->architecture is set. */
    fm_status (*read)(fm_model_config *out, const struct json_t *root, const char *file);
} fm_config_reader;

extern const fm_config_reader fm_config_deepseek;

/* `overrides`: NULL or a JSON object whose members replace the file's (nested
 * objects are merged member by member).  generation_config.json beside the
 * file adds its eos ids. */
fm_status fm_config_read(fm_model_config *out, const char *path, const char *overrides);
fm_status fm_config_parse(fm_model_config *out, const char *text, size_t len, const char *name,
                          const char *overrides);
/* Of a model that was found: its config.json, or the built-in shape. */
fm_status fm_config_of(fm_model_config *out, const fm_model_path *where, const char *overrides);

/* Adds overrides in one spelling, members sorted and without blanks: equal text, equal effect. */
fm_status fm_config_put_overrides(fm_str *out, const char *overrides);

/* Whether the config says that this linear weight is INT4: it is not on the ignore list. */
int fm_config_keeps_int4(const fm_model_config *c, const char *tensor);

#endif
