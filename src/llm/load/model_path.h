/* SPDX-License-Identifier: Apache-2.0 */
/* What the user calls a model -> where its files are: a directory, a Hugging
 * Face cache name ("deepseek-ai/DeepSeek-R1" under HF_HUB_CACHE, HF_HOME/hub
 * or ~/.cache/huggingface/hub, newest snapshot), or a built-in shape. */
#ifndef FM_LLM_LOAD_MODEL_PATH_H
#define FM_LLM_LOAD_MODEL_PATH_H

#include "base/status.h"

typedef struct {
    char        dir[4096];    /* "" for a built-in shape */
    const char *builtin;      /* its config.json as text, or NULL */
    char        name[256];    /* for people: what was asked for */
} fm_model_path;

fm_status   fm_model_path_find(fm_model_path *out, const char *asked);
const char *fm_builtin_config(const char *name); /* "r1", "v2-lite", "r1-mini"; else NULL */

#endif
