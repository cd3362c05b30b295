/* SPDX-License-Identifier: Apache-2.0 */
#include "llm/model/model.h"

#include <string.h>

static const fm_model *const families[] = {&fm_model_deepseek};

fm_status fm_model_find(const fm_model **out, const fm_model_config *c)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        for (const char *const *t = families[i]->model_types; *t; t++)
            if (!strcmp(*t, c->model_type)) {
                *out = families[i];
                return FM_OK;
            }
    return fm_fail(FM_E_NOSUP, "config.json: model_type %s is of no family that fathom runs",
                   c->model_type);
}
