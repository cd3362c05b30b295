/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/model/model.h"

#include <string.h>

static const fm_model *const families[] = {&fm_model_deepseek};

fm_status fm_model_find(const fm_model **out, const fm_model_config *c)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const char *const *t = families[i]->config->model_types; *t; t++)
            if (!strcmp(*t, c->model_type)) {
                *out = families[i];
                return FM_OK;
            }
    return fm_fail(FM_E_NOSUP, "config.json: model_type %s is of no family that fathom runs",
                   c->model_type);
}

void fm_model_declare(const fm_model *m, const fm_model_config *c, const fm_shard *s, fm_dtype cache,
                      fm_run_limits *lim)
{
    lim->planes      = m->planes(c, s, cache);
    lim->activations = m->activations(c, s);
}
