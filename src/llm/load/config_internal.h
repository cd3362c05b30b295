/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of reading config.json, a file each: RoPE, routing and experts, quantisation,
 * overrides. */
#ifndef FM_LLM_LOAD_CONFIG_INTERNAL_H
#define FM_LLM_LOAD_CONFIG_INTERNAL_H

#include "json/read.h"
#include "llm/weights/config.h"

/* Needs max_position and rope to be read already. */
fm_status fm__config_rope(fm_model_config *c, const json_t *root, const char *file);

/* Needs model_type; afterwards every field of routing and experts is set. */
fm_status fm__config_moe(fm_model_config *c, const json_t *root, const char *file);

/* An integer member that must also be a multiple of `multiple`; NULL-safe
 * defaults: with `optional`, *out stays when it is absent or null. */
fm_status fm__config_dim(int *out, const json_t *obj, const char *key, int lo, int hi, int multiple,
                         int optional, fm_json_at at);

/* A word into dst[size]; FM_E_FORMAT: it is longer. */
fm_status fm__config_word(char *dst, size_t size, const char *word, const char *key, fm_json_at at);

/* config_quant.c */
fm_status fm__config_quantisation(fm_model_config *c, const json_t *root, const char *file);
/* Puts the option's members into a config; FM_E_ARG for a name that no reader knows. */
fm_status fm__config_override(json_t *root, const char *overrides);

#endif
